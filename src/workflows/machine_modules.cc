#include "workflows/machine_modules.h"

#include "abi/statemachine/machine.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/event.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::workflows {

io::Task<Result<MachineModule>> MachineModules::prepare(MachineSource source,
                                                        std::stop_token stop) {
  modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(source.reference));
  const std::string display = reference.display();
  const std::string key = (source.insecure ? "insecure:" : "") + reference.key();
  modules::FetchOptions options{.expected_sha256 = std::move(source.sha256),
                                .insecure = source.insecure,
                                .content = modules::Content::ModuleOrScript};
  std::shared_ptr<Machine> known;  // Held until we know whether it is the one.
  if (const auto seen = sha256_of_.find(key); seen != sha256_of_.end()) {
    known = find(seen->second);
    if (known) options.have_sha256 = seen->second;
  }
  modules::Fetched fetched =
      HANGAR_CO_TRY(co_await parts_.fetcher.fetch(std::move(reference), std::move(options), stop));
  if (sha256_of_.size() >= limits::kModuleReferencesMax) sha256_of_.clear();  // Costs a look each.
  sha256_of_[key] = fetched.sha256;
  MachineModule module{.machine = std::move(known),
                       .sha256 = fetched.sha256,
                       .resolved = std::move(fetched.resolved)};
  if (fetched.is_unchanged) co_return module;
  Result<std::shared_ptr<Machine>> made = co_await make(
      fetched.sha256, std::make_shared<const std::string>(std::move(fetched.wasm)), stop);
  if (!made) {
    co_return std::unexpected(std::move(made).error().in(fmt::format("module {}", display)));
  }
  module.machine = *std::move(made);
  co_return module;
}

io::Task<Result<MachineModule>> MachineModules::load(std::string sha256, std::stop_token stop) {
  if (std::shared_ptr<Machine> known = find(sha256)) {
    co_return MachineModule{.machine = std::move(known), .sha256 = std::move(sha256)};
  }
  if (!parts_.store.has(sha256)) {
    co_return fail(ErrorKind::NotFound,
                   fmt::format("the module sha256:{} is not here any more", sha256));
  }
  Result<std::string> bytes =
      co_await parts_.workers.run([&store = parts_.store, sha256] { return store.read(sha256); });
  if (!bytes) {
    // What is not what was written is gone now: as if it had never been here.
    const ErrorKind kind =
        bytes.error().kind() == ErrorKind::Corrupt ? ErrorKind::NotFound : bytes.error().kind();
    co_return fail(kind, fmt::format("module sha256:{}: {}", sha256, bytes.error().message()));
  }
  Result<std::shared_ptr<Machine>> made =
      co_await make(sha256, std::make_shared<const std::string>(*std::move(bytes)), stop);
  if (!made) {
    co_return std::unexpected(std::move(made).error().in(fmt::format("module sha256:{}", sha256)));
  }
  co_return MachineModule{.machine = *std::move(made), .sha256 = std::move(sha256)};
}

std::shared_ptr<MachineModules::Machine> MachineModules::find(const std::string& sha256) {
  const auto found = by_sha256_.find(sha256);
  std::shared_ptr<Machine> machine =
      found == by_sha256_.end() ? nullptr : found->second->machine.lock();
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
  std::erase_if(by_sha256_, [](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second->machine.expired();
  });
}

io::Task<Result<std::shared_ptr<MachineModules::Machine>>> MachineModules::make(
    std::string sha256, std::shared_ptr<const std::string> bytes, std::stop_token stop) {
  auto& entry = by_sha256_[sha256];
  if (!entry) entry = std::make_shared<Shared>(parts_.loop);
  const std::shared_ptr<Shared> shared = entry;
  const io::Semaphore::Slot slot = co_await shared->making.acquire();
  if (std::shared_ptr<Machine> machine = shared->machine.lock()) co_return machine;
  std::shared_ptr<Machine> machine =
      HANGAR_CO_TRY(co_await parts_.runtime.load(std::move(bytes), parts_.limits, std::move(stop)));
  shared->machine = machine;
  keep(sha256, machine);
  co_return machine;
}

}  // namespace hangar::workflows
