#include "workflows/machine_modules.h"

#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/event.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/reference.h"
#include "wasm/digest.h"
#include "wasm/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::workflows {

namespace {

std::string key_of(const modules::Reference& reference, bool insecure) {
  return (insecure ? "insecure:" : "") + reference.key();
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

io::Task<Result<MachineModule>> MachineModules::prepare(MachineSource source,
                                                        std::stop_token stop) {
  const ModuleSource& wanted = source.module;
  HANGAR_CO_TRY(parts_.allow_list.check(wanted.reference));
  modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(wanted.reference));
  const std::string doing = fmt::format("module {}", reference.display());
  const std::string key = key_of(reference, wanted.insecure);
  const bool is_pinned = !source.pinned_sha256.empty();
  modules::FetchOptions options{.expected_sha256 = is_pinned ? std::string() : wanted.sha256,
                                .insecure = wanted.insecure,
                                .content = modules::Content::ModuleOrScript,
                                // Of what is pinned, other bytes are of no use.
                                .may_be_stale = !is_pinned};
  Candidate candidate;
  if (const auto seen = sha256_of_.find(key); seen != sha256_of_.end()) {
    candidate.machine = find(seen->second);  // Held until we know whether it is the one.
    if (candidate.machine) options.have_sha256 = seen->second;
  }
  modules::Fetched fetched =
      HANGAR_CO_TRY(co_await parts_.fetcher.fetch(std::move(reference), std::move(options), stop));
  remember(key, fetched.sha256);
  candidate.sha256 = fetched.sha256;
  if (!fetched.is_unchanged) {
    candidate.machine.reset();
    candidate.bytes = std::make_shared<const std::string>(std::move(fetched.wasm));
  }
  if (candidate.bytes && source.plugin) {
    const std::optional<std::string> missing = co_await parts_.workers.run(
        [bytes = candidate.bytes] { return abi::statemachine::missing_plugin(*bytes); });
    if (missing) {
      Result<Candidate> both = co_await with_plugin(std::move(candidate), *source.plugin,
                                                    /*may_be_stale=*/!is_pinned, stop);
      if (!both) {
        co_return std::unexpected(std::move(both).error().in(fmt::format(
            "{} is linked dynamically and needs its plugin {} (as the key {} of its ConfigMap, or "
            "with spec.plugin)",
            doing, *missing, modules::kPluginKey)));
      }
      candidate = *std::move(both);
    }
  }
  if (is_pinned) {
    Result<> same = modules::verify_sha256(source.pinned_sha256, candidate.sha256);
    if (!same) co_return std::unexpected(std::move(same).error().in(doing));
  }
  if (!candidate.machine) {
    Result<std::shared_ptr<Machine>> made = co_await make(candidate.sha256, candidate.bytes, stop);
    if (!made) co_return std::unexpected(std::move(made).error().in(doing));
    candidate.machine = *std::move(made);
  }
  co_return MachineModule{.machine = std::move(candidate.machine),
                          .sha256 = std::move(candidate.sha256),
                          .resolved = std::move(fetched.resolved)};
}

io::Task<Result<MachineModules::Candidate>> MachineModules::with_plugin(Candidate module,
                                                                        ModuleSource plugin,
                                                                        bool may_be_stale,
                                                                        std::stop_token stop) {
  HANGAR_CO_TRY(parts_.allow_list.check(plugin.reference));
  modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(plugin.reference));
  const std::string key = key_of(reference, plugin.insecure);
  modules::FetchOptions options{.expected_sha256 = std::move(plugin.sha256),
                                .insecure = plugin.insecure,
                                .may_be_stale = may_be_stale};
  Candidate both;
  if (const auto seen = sha256_of_.find(key); seen != sha256_of_.end()) {
    const auto known = sha256_of_both_.find({module.sha256, seen->second});
    if (known != sha256_of_both_.end()) both = {.sha256 = known->second};
    both.machine = find(both.sha256);
    if (both.machine) options.have_sha256 = seen->second;
  }
  modules::Fetched fetched =
      HANGAR_CO_TRY(co_await parts_.fetcher.fetch(std::move(reference), std::move(options), stop));
  remember(key, fetched.sha256);
  if (fetched.is_unchanged) co_return both;
  const std::string plugin_sha256 = fetched.sha256;
  both = HANGAR_CO_TRY(
      co_await parts_.workers.run([&store = parts_.store, bytes = module.bytes,
                                   plugin_bytes = std::move(fetched.wasm)]() -> Result<Candidate> {
        std::string carrying =
            HANGAR_TRY(wasm::carry_plugin(bytes_of(*bytes), bytes_of(plugin_bytes)));
        Candidate made{.sha256 = wasm::Digest::of(carrying).to_hex()};
        // A full disk costs doing this again, not the machine.
        (void)store.add(made.sha256, carrying);
        made.bytes = std::make_shared<const std::string>(std::move(carrying));
        return made;
      }));
  if (sha256_of_both_.size() >= limits::kModuleReferencesMax) sha256_of_both_.clear();
  sha256_of_both_[{module.sha256, plugin_sha256}] = both.sha256;
  co_return both;
}

void MachineModules::remember(const std::string& key, const std::string& sha256) {
  if (sha256_of_.size() >= limits::kModuleReferencesMax) sha256_of_.clear();  // Costs a look each.
  sha256_of_[key] = sha256;
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
