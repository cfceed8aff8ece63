#include "workflows/machine_modules.h"

#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "archive/copy_format.h"
#include "archive/limits.h"
#include "archive/module_archive.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/plugin.h"
#include "workflows/limits.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::workflows {

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

archive::CopyFormat machine_copies() {
  return {.label = "workflows.example.com/machine",
          .name_prefix = "machine-",
          .field_manager = "hangar-workflows",
          .parts_max = limits::kCopyPartsMax,
          .objects_max = limits::kCopyObjectsMax};
}

MachineModules::MachineModules(Parts parts)
    : parts_(std::move(parts)), supply_(parts_.sources, *this) {}

MachineModule MachineModules::module_of(const modules::Supplied& supplied) {
  // make() creates machines as non-const; a Product only says that the supply does not change them.
  return {.machine = std::const_pointer_cast<Machine>(
              std::static_pointer_cast<const Machine>(supplied.product)),
          .sha256 = supplied.sha256,
          .resolved = supplied.resolved};
}

modules::Wish MachineModules::wish_for(modules::Requester requester, MachineSource source,
                                       std::string pinned_sha256) {
  return {.requester = std::move(requester),
          .module = std::move(source.module),
          .plugin = std::move(source.plugin),
          .pinned_sha256 = std::move(pinned_sha256),
          .content = modules::Content::ModuleOrScript};
}

io::Task<Result<MachineModule>> MachineModules::get(modules::Wish wish, std::stop_token stop) {
  const modules::Supplied supplied =
      HANGAR_CO_TRY(co_await supply_.get(std::move(wish), std::move(stop)));
  co_return module_of(supplied);
}

modules::Product MachineModules::find(const std::string& sha256) {
  const auto found = by_sha256_.find(sha256);
  std::shared_ptr<Machine> machine = found == by_sha256_.end() ? nullptr : found->second.lock();
  if (machine) keep(sha256, machine);
  return machine;
}

void MachineModules::keep(const std::string& sha256, std::shared_ptr<Machine> machine) {
  const auto at = std::ranges::find(kept_, sha256, &Kept::first);
  if (at != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, at);
    return;
  }
  kept_.emplace_front(sha256, std::move(machine));
  if (kept_.size() <= limits::kMachinesKeptMax) return;
  kept_.pop_back();
  std::erase_if(by_sha256_, [](const auto& entry) { return entry.second.expired(); });
}

io::Task<Result<modules::Product>> MachineModules::make(std::string sha256,
                                                        std::shared_ptr<const std::string> bytes,
                                                        budget::Beneficiaries beneficiaries,
                                                        std::stop_token stop) {
  std::shared_ptr<Machine> machine = HANGAR_CO_TRY(co_await parts_.runtime.load(
      std::move(bytes), parts_.limits, std::move(stop), std::move(beneficiaries)));
  by_sha256_[sha256] = machine;
  keep(sha256, machine);
  co_return modules::Product(std::move(machine));
}

io::Task<Result<std::shared_ptr<const void>>> MachineModules::charge(modules::Product product,
                                                                     budget::Consumer consumer) {
  co_return co_await parts_.runtime.charge(std::static_pointer_cast<const Machine>(product),
                                           std::move(consumer));
}

std::optional<std::string> MachineModules::missing_plugin(const std::string& bytes) const {
  return abi::statemachine::missing_plugin(bytes);
}

Result<std::string> MachineModules::join(const std::string& bytes,
                                         const std::string& plugin) const {
  return wasm::carry_plugin(bytes_of(bytes), bytes_of(plugin));
}

io::Task<Result<std::string>> MachineModules::recall(modules::Requester requester,
                                                     std::string sha256, std::stop_token stop) {
  if (archive_ == nullptr) {
    co_return co_await Maker::recall(std::move(requester), std::move(sha256), std::move(stop));
  }
  co_return co_await archive_->read({.namespace_ = requester.id(), .sha256 = std::move(sha256)},
                                    std::move(stop));
}

}  // namespace hangar::workflows
