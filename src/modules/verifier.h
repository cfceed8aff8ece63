// Decides by its signature whether a module may run. Declared here for the supply; the implementing
// folder knows keys, and how to inspect untrusted bytes safely.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "io/task.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::modules {

// Loop thread.
class Verifier {
 public:
  Verifier() = default;
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  virtual ~Verifier() = default;

  // Changes when the keys change: earlier verdicts are then void.
  [[nodiscard]] virtual std::uint64_t generation() const = 0;
  // The verdict of the current keys on the module with that digest; std::nullopt: its bytes have to
  // be inspected, or there are no keys yet.
  [[nodiscard]] virtual std::optional<Result<>> verdict(const std::string& sha256) const = 0;
  // Inspects the bytes, which have that digest. InvalidInput is a verdict, and says why the module
  // may not run; any other error is not a verdict.
  [[nodiscard]] virtual io::Task<Result<>> verify(std::string sha256,
                                                  std::shared_ptr<const std::string> bytes,
                                                  budget::Consumer consumer,
                                                  std::stop_token stop) = 0;
};

}  // namespace hangar::modules
