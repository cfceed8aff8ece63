// Whether a module may run, by who has signed it. Declared here for the supply; who knows keys and
// how bytes of strangers are looked at implements it.
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

  // Another number once the keys are others: what was said before does not count any more.
  [[nodiscard]] virtual std::uint64_t generation() const = 0;
  // What the keys of now say of the module with that digest; nothing: its bytes have to be looked
  // at, or there are no keys yet.
  [[nodiscard]] virtual std::optional<Result<>> verdict(const std::string& sha256) const = 0;
  // Looks at the bytes, which have that digest. InvalidInput says why the module may not run, and
  // is a verdict; any other error is none.
  [[nodiscard]] virtual io::Task<Result<>> verify(std::string sha256,
                                                  std::shared_ptr<const std::string> bytes,
                                                  budget::Consumer consumer,
                                                  std::stop_token stop) = 0;
};

}  // namespace hangar::modules
