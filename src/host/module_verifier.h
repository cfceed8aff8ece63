// Which modules may run by their signatures: those that hangar-compile finds to be signed by one of
// the keys of now.
//
// A module's bytes are a stranger's, so they are read in that process, and what comes back is a
// verdict. It is kept in memory with the digest for as long as the keys are the same, and nowhere
// else: other keys, or another host, look again.
// Loop thread.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/verifier.h"
#include "schematics/keys.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::host {

class ModuleVerifier final : public modules::Verifier {
 public:
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    std::filesystem::path program;    // hangar-compile.
    std::filesystem::path directory;  // For a module while it is looked at. Private to this user.
  };
  explicit ModuleVerifier(Parts parts);

  // Until then nothing is verified: who asks is told to wait. None at all: nothing may run.
  void use(schematics::PublicKeys keys);
  // Told when the keys are others than before, of the first ones, too.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }

  [[nodiscard]] std::uint64_t generation() const override { return generation_; }
  [[nodiscard]] std::optional<Result<>> verdict(const std::string& sha256) const override;
  [[nodiscard]] io::Task<Result<>> verify(std::string sha256,
                                          std::shared_ptr<const std::string> bytes,
                                          budget::Consumer consumer, std::stop_token stop) override;

 private:
  [[nodiscard]] io::Task<Result<>> look(std::shared_ptr<const std::string> bytes,
                                        std::stop_token stop);

  const Parts parts_;
  std::optional<schematics::PublicKeys> keys_;
  std::uint64_t generation_ = 0;
  std::map<std::string, Result<>> verdicts_;  // By digest, of these keys.
  budget::FairSlots slots_;                   // Of processes.
  std::function<void()> listener_;
};

}  // namespace hangar::host
