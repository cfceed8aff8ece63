// Verifies the signatures of modules: a module may run if hangar-compile finds a signature by one
// of the current keys.
//
// The bytes of a module are hostile, so hangar-compile reads them in a separate process and returns
// only a verdict. A verdict is kept in memory, by digest, until the keys change. It is never
// written to disk: with other keys, or on another host, the module is verified again. The number of
// verdicts is bounded, and refusals make room for approvals: many unsigned modules of a tenant
// displace no approval.
//
// Loop thread.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/limits.h"
#include "modules/verifier.h"
#include "schematics/keys.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::signatures {

class ModuleVerifier final : public modules::Verifier {
 public:
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    std::filesystem::path program;    // hangar-compile.
    std::filesystem::path directory;  // For modules that are being verified. Private to this user.
    std::size_t verdicts_max = limits::kModuleReferencesMax;
  };
  explicit ModuleVerifier(Parts parts);

  // Sets the keys. Before the first call, verify() returns Unavailable. If there are no keys, no
  // module may run.
  void use(schematics::PublicKeys keys);
  // Called when the keys have changed, also for the first ones.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }

  [[nodiscard]] std::uint64_t generation() const override { return generation_; }
  [[nodiscard]] std::optional<Result<>> verdict(const std::string& sha256) const override;
  [[nodiscard]] io::Task<Result<>> verify(std::string sha256,
                                          std::shared_ptr<const std::string> bytes,
                                          budget::Consumer consumer, std::stop_token stop) override;

 private:
  [[nodiscard]] io::Task<Result<>> look(std::shared_ptr<const std::string> bytes,
                                        budget::Consumer consumer, std::stop_token stop);
  void keep(const std::string& sha256, Result<> verdict);

  const Parts parts_;
  std::optional<schematics::PublicKeys> keys_;
  std::uint64_t generation_ = 0;
  std::map<std::string, Result<>> verdicts_;  // By digest; valid for the current keys.
  budget::FairSlots slots_;                   // Slots for processes.
  std::function<void()> listener_;
};

}  // namespace hangar::signatures
