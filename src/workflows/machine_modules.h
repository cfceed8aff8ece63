// From the reference in a StatefulWorkflow to a machine that decides: fetched, pinned by digest,
// loaded once, and shared by all workflows of the same bytes.
//
// A workflow goes on with the machine that it began with: prepare() says which bytes a reference
// means now, load() brings back the machine of a digest that was pinned earlier.
#pragma once

#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/allow_list.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::workflows {

// Where a module is.
struct ModuleSource {
  // As modules::Reference reads it: configmap://namespace/name[/key], https://, oci://, file://.
  std::string reference;
  std::string sha256;  // Expected, hex; empty: as the reference says, or any.
  bool insecure = false;

  bool operator==(const ModuleSource&) const = default;
};

struct MachineSource {
  ModuleSource module;
  // Asked only for a module that is linked dynamically, and carries no plugin already.
  std::optional<ModuleSource> plugin;
  // A MachineModule::sha256 that the machine must have; empty: any. `module.sha256` counts for
  // nothing then.
  std::string pinned_sha256;
};

struct MachineModule {
  std::shared_ptr<abi::statemachine::Machine> machine;
  // Of the module or bundle as its author made it, uncompressed; hex. Of a module that is linked
  // dynamically: of the module with its plugin in it.
  std::string sha256;
  std::string resolved;  // The reference, pinned by digest where that can be; empty after load().
};

// Loop thread only.
class MachineModules {
 public:
  // All of it outlives this.
  struct Parts {
    io::Loop& loop;
    io::Workers& workers;
    modules::Fetcher& fetcher;
    modules::ModuleStore& store;  // The fetcher's.
    abi::statemachine::Runtime& runtime;
    abi::statemachine::MachineLimits limits = {};
    modules::AllowList allow_list = {};
  };
  explicit MachineModules(Parts parts) : parts_(std::move(parts)) {}
  MachineModules(const MachineModules&) = delete;
  MachineModules& operator=(const MachineModules&) = delete;

  // Resolves the source anew (a tag may have moved, a ConfigMap may have been edited). What is
  // loaded already is neither read nor loaded again. Errors, for the workflow's status, each naming
  // the reference: InvalidInput (neither a module nor a bundle, another contract, a syntax error,
  // wrong checksum, not allowed, a plugin that does not fit), NotFound (no such ConfigMap, key,
  // tag), Denied, GuestFault (threw while it was loaded), LimitExceeded, Unavailable, Cancelled.
  [[nodiscard]] io::Task<Result<MachineModule>> prepare(MachineSource source, std::stop_token stop);

  // The machine with that digest, from memory or from the store of fetched modules. NotFound when
  // it is in neither (the cache directory is new): then a prepare() with `pinned_sha256`
  // finds it if the source still has those bytes.
  [[nodiscard]] io::Task<Result<MachineModule>> load(std::string sha256, std::stop_token stop);

  // Machines in memory now. Those that are not used for longest go beyond kMachinesKeptMax, and
  // are loaded again when they are wanted.
  [[nodiscard]] std::size_t kept_count() const { return kept_.size(); }

 private:
  using Machine = abi::statemachine::Machine;
  // Bytes that a machine is made of, and whether it has been made.
  struct Candidate {
    std::string sha256;
    std::shared_ptr<const std::string> bytes;  // Null when there is a machine.
    std::shared_ptr<Machine> machine;
  };
  struct Shared {
    explicit Shared(io::Loop& loop) : making(loop, 1) {}
    io::Semaphore making;
    std::weak_ptr<Machine> machine;
  };

  // The module with its plugin, which is fetched anew.
  [[nodiscard]] io::Task<Result<Candidate>> with_plugin(Candidate module, ModuleSource plugin,
                                                        bool may_be_stale, std::stop_token stop);
  void remember(const std::string& key, const std::string& sha256);

  [[nodiscard]] std::shared_ptr<Machine> find(const std::string& sha256);
  void keep(const std::string& sha256, std::shared_ptr<Machine> machine);
  [[nodiscard]] io::Task<Result<std::shared_ptr<Machine>>> make(
      std::string sha256, std::shared_ptr<const std::string> bytes, std::stop_token stop);

  const Parts parts_;
  std::map<std::string, std::shared_ptr<Shared>> by_sha256_;
  // By the reference's key: what it was when it was last looked at.
  std::map<std::string, std::string> sha256_of_;
  // By the digests of a module and of its plugin: that of both together.
  std::map<std::pair<std::string, std::string>, std::string> sha256_of_both_;
  using Kept = std::pair<std::string, std::shared_ptr<Machine>>;
  std::list<Kept> kept_;  // The most recently used first.
};

}  // namespace hangar::workflows
