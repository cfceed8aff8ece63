// From the reference in a StatefulWorkflow to a machine that decides: fetched, pinned by digest,
// loaded once, and shared by all workflows with the same bytes.
//
// A workflow keeps the machine that it started with, by the digest that was pinned then.
#pragma once

#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "io/task.h"
#include "modules/requester.h"
#include "modules/supply.h"

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::workflows {

struct MachineSource {
  modules::Source module;
  // Fetched only for a module that is linked dynamically and does not contain a plugin already.
  std::optional<modules::Source> plugin;
};

struct MachineModule {
  std::shared_ptr<abi::statemachine::Machine> machine;
  // Digest of the module or bundle as its author made it, uncompressed; hex. For a dynamically
  // linked module: of the module with its plugin linked in.
  std::string sha256;
  // The reference, pinned by digest; empty if the module was found by its digest.
  std::string resolved;
};

// Copies of the machines that workflows started with, in those workflows' namespaces.
[[nodiscard]] archive::CopyFormat machine_copies();

// Loop thread only.
class MachineModules final : public modules::Maker {
 public:
  // All parts outlive this object.
  struct Parts {
    modules::Sources sources;
    abi::statemachine::Runtime& runtime;
    abi::statemachine::MachineLimits limits = {};
  };
  explicit MachineModules(Parts parts);

  // The archive that holds copies of pinned machines. Null: none. Outlives its use.
  void use_archive(archive::ModuleArchive* archive) { archive_ = archive; }

  // Errors, for the workflow's status, each naming the reference: InvalidInput (neither a module
  // nor a bundle, another contract, a syntax error, wrong checksum, not allowed, a plugin that does
  // not fit), NotFound (no such ConfigMap, key, tag; no copy of the pinned module), Denied,
  // GuestFault (threw during loading), LimitExceeded, Unavailable.
  [[nodiscard]] modules::Supply& supply() { return supply_; }
  [[nodiscard]] static MachineModule module_of(const modules::Supplied& supplied);
  // `pinned_sha256`: a MachineModule::sha256 that the machine must have. The supply looks in
  // memory, in the store and in the archive before it asks the source. Empty: any.
  [[nodiscard]] static modules::Wish wish_for(modules::Requester requester, MachineSource source,
                                              std::string pinned_sha256);

  // For callers with nothing else to do: waits for the answer.
  [[nodiscard]] io::Task<Result<MachineModule>> get(modules::Wish wish, std::stop_token stop);

  // How many machines are in memory. Beyond kMachinesKeptMax the least recently used ones are
  // unloaded; they are loaded again on demand.
  [[nodiscard]] std::size_t kept_count() const { return kept_.size(); }

  // For the supply.
  [[nodiscard]] modules::Product find(const std::string& sha256) override;
  [[nodiscard]] io::Task<Result<modules::Product>> make(std::string sha256,
                                                        std::shared_ptr<const std::string> bytes,
                                                        budget::Beneficiaries beneficiaries,
                                                        std::stop_token stop) override;
  [[nodiscard]] io::Task<Result<std::shared_ptr<const void>>> charge(
      modules::Product product, budget::Consumer consumer) override;
  [[nodiscard]] std::string_view doing() const override { return "loading"; }
  [[nodiscard]] std::optional<std::string> missing_plugin(const std::string& bytes) const override;
  [[nodiscard]] Result<std::string> join(const std::string& bytes,
                                         const std::string& plugin) const override;
  [[nodiscard]] bool is_asked_by_digest() const override { return true; }
  [[nodiscard]] io::Task<Result<std::string>> recall(modules::Requester requester,
                                                     std::string sha256,
                                                     std::stop_token stop) override;

 private:
  using Machine = abi::statemachine::Machine;

  void keep(const std::string& sha256, std::shared_ptr<Machine> machine);

  const Parts parts_;
  archive::ModuleArchive* archive_ = nullptr;
  std::map<std::string, std::weak_ptr<Machine>> by_sha256_;
  using Kept = std::pair<std::string, std::shared_ptr<Machine>>;
  std::list<Kept> kept_;  // The most recently used first.
  modules::Supply supply_;
};

}  // namespace hangar::workflows
