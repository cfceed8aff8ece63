// Turns the reference in an Operator into a module whose guests can sleep: fetched, verified,
// rewritten and compiled, each once, and shared by all operators with the same bytes.
#pragma once

#include "abi/kube_runtime/local_guest.h"
#include "base/result.h"
#include "base/slots.h"
#include "budget/beneficiaries.h"
#include "io/task.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/snapshot/sleepable_module.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::operators {

struct OperatorModule {
  std::shared_ptr<const wasm::SleepableModule> code;  // Its digest is that of the author's bytes.
  std::string resolved;  // The reference, pinned by digest where possible.
};

// Programs that can request nothing and cannot be woken. The published contract allows them; in an
// Operator such a module is a mistake, usually a module for another contract.
enum class RunOnce : std::uint8_t { Refused, Allowed };

// Loop thread only.
class OperatorModules final : public modules::Maker {
 public:
  // All of it outlives this.
  struct Parts {
    modules::Sources sources;
    wasm::CodeCache& code_cache;
    const abi::kube_runtime::Runtime& runtime;
    std::filesystem::path image_directory;  // For images that instances share.
    RunOnce run_once = RunOnce::Refused;
  };
  explicit OperatorModules(Parts parts);

  // Errors, for the operator's status: InvalidInput (not Wasm, another contract, wrong checksum,
  // not allowed), NotFound, Denied, Unavailable, LimitExceeded.
  [[nodiscard]] modules::Supply& supply() { return supply_; }
  [[nodiscard]] static OperatorModule module_of(const modules::Supplied& supplied);

  // For callers without a reconcile loop: asks the source anew and waits for the module.
  [[nodiscard]] io::Task<Result<OperatorModule>> prepare(modules::Requester requester,
                                                         modules::Source source,
                                                         std::stop_token stop);

  // For the supply.
  [[nodiscard]] modules::Product find(const std::string& sha256) override;
  [[nodiscard]] io::Task<Result<modules::Product>> make(std::string sha256,
                                                        std::shared_ptr<const std::string> bytes,
                                                        budget::Beneficiaries beneficiaries,
                                                        std::stop_token stop) override;
  [[nodiscard]] io::Task<Result<std::shared_ptr<const void>>> charge(
      modules::Product product, budget::Consumer consumer) override;

 private:
  const Parts parts_;
  // A module that no operator uses any more is dropped.
  using Known = std::pair<const wasm::Digest, std::weak_ptr<const wasm::SleepableModule>>;
  std::map<wasm::Digest, std::weak_ptr<const wasm::SleepableModule>, std::less<>,
           slots::Allocator<Known>>
      known_;
  modules::Supply supply_;
};

}  // namespace hangar::operators
