// From the reference in an Operator to a module whose guests can sleep: fetched, verified,
// rewritten, compiled, each once, and shared by all operators of the same bytes.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "base/result.h"
#include "base/slots.h"
#include "budget/consumer.h"
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
  std::shared_ptr<const wasm::SleepableModule> code;  // Its digest: as its author made it.
  std::string resolved;  // The reference, pinned by digest where that can be.
};

// Programs that can ask for nothing and be woken by nothing, which the published contract allows.
// In an Operator such a module is a mistake, and mostly another contract's.
enum class RunOnce : std::uint8_t { Refused, Allowed };

// Loop thread only.
class OperatorModules final : public modules::Maker {
 public:
  // All of it outlives this.
  struct Parts {
    modules::Sources sources;
    wasm::CodeCache& code_cache;
    const abi::kube_runtime::Runtime& runtime;
    std::filesystem::path image_directory;  // Of images that instances share.
    RunOnce run_once = RunOnce::Refused;
  };
  explicit OperatorModules(Parts parts);

  // Errors, for the operator's status: InvalidInput (not Wasm, another contract, wrong checksum,
  // not allowed), NotFound, Denied, Unavailable, LimitExceeded.
  [[nodiscard]] modules::Supply& supply() { return supply_; }
  [[nodiscard]] static OperatorModule module_of(const modules::Supplied& supplied);

  // For who has nothing else to do: waits until the source, asked anew, has given it.
  [[nodiscard]] io::Task<Result<OperatorModule>> prepare(modules::Requester requester,
                                                         modules::Source source,
                                                         std::stop_token stop);

  // For the supply.
  [[nodiscard]] modules::Product find(const std::string& sha256) override;
  [[nodiscard]] io::Task<Result<modules::Product>> make(std::string sha256,
                                                        std::shared_ptr<const std::string> bytes,
                                                        budget::Consumer consumer,
                                                        std::stop_token stop) override;

 private:
  const Parts parts_;
  // Modules that no operator has any more are forgotten.
  using Known = std::pair<const wasm::Digest, std::weak_ptr<const wasm::SleepableModule>>;
  std::map<wasm::Digest, std::weak_ptr<const wasm::SleepableModule>, std::less<>,
           slots::Allocator<Known>>
      known_;
  modules::Supply supply_;
};

}  // namespace hangar::operators
