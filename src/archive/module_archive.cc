#include "archive/module_archive.h"

#include "archive/copy_format.h"
#include "archive/limits.h"
#include "base/base64.h"
#include "base/digest.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "modules/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::archive {

namespace {

// After this time a deleted copy is written again, and a write that failed for lack of a right
// is retried.
constexpr std::chrono::minutes kBelieved{10};

// The digest comes from a status, which others may write: only a valid digest becomes part of a
// name, here and on disk.
Result<> check_digest(const ArchivedModule& module) {
  if (is_sha256_hex(module.sha256)) return {};
  return fail(ErrorKind::NotFound, fmt::format("\"{}\" is not a SHA-256 digest", module.sha256));
}

kube::ObjectKey key_of(const CopyFormat& format, const ArchivedModule& module,
                       std::size_t index = 0) {
  return {.namespace_ = module.namespace_, .name = name_of(format, module.sha256, index)};
}

json::Value manifest_of(const CopyFormat& format, const kube::ObjectKey& key,
                        std::string_view packed, std::size_t part_count) {
  json::Object labels;
  labels[format.label] = "kept";
  json::Object data{{"gzip", base64_encode(packed)}};
  if (part_count > 1) data["parts"] = part_count;
  return json::Object{{"apiVersion", "apps/v1"},
                      {"kind", "ControllerRevision"},
                      {"metadata", json::Object{{"name", key.name},
                                                {"namespace", key.namespace_},
                                                {"labels", std::move(labels)}}},
                      {"revision", 1},
                      {"data", std::move(data)}};
}

}  // namespace

ModuleArchive::ModuleArchive(Parts parts)
    : parts_(std::move(parts)),
      writing_(parts_.loop, {.slots = limits::kArchiveWritersMax,
                             .slots_per_tenant_max = 1,
                             .waiting_per_tenant_max = limits::kArchiveWaitingMax}) {}

ModuleArchive::Hold ModuleArchive::hold(const ArchivedModule& module) {
  std::erase_if(holds_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const ArchivedModule>& entry = holds_[module];
  std::shared_ptr<const ArchivedModule> held = entry.lock();
  if (!held) entry = held = std::make_shared<const ArchivedModule>(module);
  return Hold(std::move(held));
}

bool ModuleArchive::is_held(const ArchivedModule& module) const {
  const auto found = holds_.find(module);
  return found != holds_.end() && !found->second.expired();
}

io::Task<Result<budget::FairSlots::Slot>> ModuleArchive::take_turn(std::string namespace_,
                                                                   std::stop_token stop) {
  Result<budget::FairSlots::Slot> slot = co_await writing_.acquire(
      {.tenant = budget::Tenant::of_namespace(std::move(namespace_)), .name = "copies"}, {},
      std::move(stop));
  // Not LimitExceeded, which for keep() means that there can be no copy at all.
  if (!slot && slot.error().kind() == ErrorKind::LimitExceeded) {
    co_return fail(ErrorKind::Unavailable,
                   fmt::format("copies of modules: {}", slot.error().message()));
  }
  co_return slot;
}

io::Task<Result<>> ModuleArchive::keep(ArchivedModule module, std::stop_token stop) {
  const auto known = [&]() -> const Kept* {
    const auto found = kept_.find(module);
    return found != kept_.end() && io::Loop::now() < found->second.until ? &found->second : nullptr;
  };
  if (known() == nullptr) {
    budget::FairSlots::Slot slot = HANGAR_CO_TRY(co_await take_turn(module.namespace_, stop));
    if (known() == nullptr) {
      Result<> created = co_await create(module, slot, std::move(stop));
      const bool may_pass = !created && (created.error().kind() == ErrorKind::Cancelled ||
                                         created.error().kind() == ErrorKind::Unavailable);
      if (may_pass) co_return created;
      if (kept_.size() >= limits::kModuleReferencesMax)
        kept_.clear();  // Each entry costs one
                        // request to make again.
      kept_[module] = {.until = io::Loop::now() + kBelieved,
                       .error = created ? std::nullopt : std::optional(created.error())};
    }
  }
  if (const std::optional<Error>& error = kept_.at(module).error) co_return std::unexpected(*error);
  co_return Result<>();
}

io::Task<Result<>> ModuleArchive::create(ArchivedModule module, budget::FairSlots::Slot& slot,
                                         std::stop_token stop) {
  HANGAR_CO_TRY(check_digest(module));
  Result<std::string> stored = co_await parts_.workers.run(
      slot.consumer(),
      [&store = parts_.store, sha256 = module.sha256] { return store.read_packed(sha256); });
  if (!stored && stored.error().kind() == ErrorKind::NotFound) {
    // The store may have evicted the module; the copy may exist nevertheless.
    const Result<json::Value> copy = co_await parts_.client.get(
        kube::controller_revision_resource(), key_of(parts_.format, module), stop);
    if (copy) co_return Result<>();
  }
  if (!stored) co_return std::unexpected(std::move(stored).error());
  const std::string& packed = *stored;
  constexpr std::size_t kPartBytes = limits::kSecretBytesMax;
  const std::size_t count = std::max<std::size_t>((packed.size() + kPartBytes - 1) / kPartBytes, 1);
  if (count > parts_.format.parts_max) {
    co_return fail(ErrorKind::LimitExceeded,
                   fmt::format("the module has {} bytes when it is packed, a copy takes {}",
                               packed.size(), parts_.format.parts_max * kPartBytes));
  }
  if (!HANGAR_CO_TRY(co_await is_wanted(module, count, stop))) co_return Result<>();
  slot.charge(count - 1);  // acquire() has charged one.
  // The first object last: its presence says that the copy is complete.
  for (std::size_t index = count; index-- > 0;) {
    HANGAR_CO_TRY(co_await create_part(key_of(parts_.format, module, index), index,
                                       packed.substr(index * kPartBytes, kPartBytes), count, stop));
  }
  co_return Result<>();
}

io::Task<Result<bool>> ModuleArchive::is_wanted(ArchivedModule module, std::size_t parts,
                                                std::stop_token stop) {
  // A single object needs no check: the API server reports if it exists.
  if (parts == 1 && parts_.format.objects_max == 0) co_return true;
  const kube::List objects = HANGAR_CO_TRY(co_await objects_in(module.namespace_, std::move(stop)));
  std::set<std::string> names;
  for (const kube::ObjectPtr& object : objects.items)
    names.insert(object->key().name);
  const CopyState state = state_of(parts_.format, names, module.sha256, parts);
  if (state == CopyState::NoRoom) {
    co_return fail(ErrorKind::LimitExceeded,
                   fmt::format("the copies in the namespace would be more than {} objects",
                               parts_.format.objects_max));
  }
  co_return state == CopyState::Wanted;
}

io::Task<Result<>> ModuleArchive::create_part(kube::ObjectKey key, std::size_t index,
                                              std::string packed, std::size_t count,
                                              std::stop_token stop) {
  const json::Value manifest = manifest_of(parts_.format, key, packed, count);
  for (bool is_repeated = false;; is_repeated = true) {
    const Result<json::Value> created =
        co_await parts_.client.create(kube::controller_revision_resource(), manifest,
                                      {.field_manager = parts_.format.field_manager}, stop);
    if (created) co_return Result<>();
    if (kube::reason_of(created.error()) != "AlreadyExists") {
      co_return std::unexpected(created.error());
    }
    if (index == 0 || is_repeated) co_return Result<>();
    // A part of a copy that was never finished, perhaps compressed differently.
    const Result<json::Value> removed =
        co_await parts_.client.remove(kube::controller_revision_resource(), key, {}, stop);
    if (!removed && removed.error().kind() != ErrorKind::NotFound) {
      co_return std::unexpected(removed.error());
    }
  }
}

io::Task<Result<std::string>> ModuleArchive::read(ArchivedModule module, std::stop_token stop) {
  HANGAR_CO_TRY(check_digest(module));
  std::string packed;
  std::size_t count = 1;
  for (std::size_t index = 0; index < count; ++index) {
    const json::Value copy = HANGAR_CO_TRY(co_await parts_.client.get(
        kube::controller_revision_resource(), key_of(parts_.format, module, index), stop));
    const std::optional<std::string> part = base64_decode(json::string_at(copy, {"data", "gzip"}));
    const std::int64_t parts = json::int_at(copy, {"data", "parts"});
    if (!part || parts < 0 || std::cmp_greater(parts, parts_.format.parts_max)) {
      co_return fail(ErrorKind::NotFound, "the copy of the module in the cluster is damaged");
    }
    if (index == 0) count = std::max<std::size_t>(static_cast<std::size_t>(parts), 1);
    packed += *part;
  }
  co_return packed;
}

io::Task<Result<kube::List>> ModuleArchive::objects_in(std::string namespace_,
                                                       std::stop_token stop) {
  // Without the data: a copy has up to a megabyte.
  return parts_.client.list(kube::controller_revision_resource(),
                            {.namespace_ = std::move(namespace_),
                             .label_selector = parts_.format.label,
                             .detail = kube::Detail::Metadata},
                            std::move(stop));
}

io::Task<Result<std::vector<ArchivedModule>>> ModuleArchive::list(std::string namespace_,
                                                                  std::stop_token stop) {
  const kube::List copies =
      HANGAR_CO_TRY(co_await objects_in(std::move(namespace_), std::move(stop)));
  std::set<ArchivedModule> modules;  // Each copy once, however many objects it has.
  for (const kube::ObjectPtr& copy : copies.items) {
    const kube::ObjectKey& key = copy->key();
    std::string sha256 = digest_of(parts_.format, key.name);
    if (!sha256.empty()) {
      modules.insert({.namespace_ = key.namespace_, .sha256 = std::move(sha256)});
    }
  }
  co_return std::vector<ArchivedModule>(modules.begin(), modules.end());
}

io::Task<Result<>> ModuleArchive::remove_unless(ArchivedModule module,
                                                std::function<bool()> is_needed,
                                                std::stop_token stop) {
  HANGAR_CO_TRY(check_digest(module));
  const budget::FairSlots::Slot slot = HANGAR_CO_TRY(co_await take_turn(module.namespace_, stop));
  if (is_held(module) || is_needed()) co_return Result<>();
  kept_.erase(module);
  const Result<json::Value> removed = co_await parts_.client.remove(
      kube::controller_revision_resource(), key_of(parts_.format, module), {}, stop);
  if (!removed && removed.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(removed.error());
  }
  if (parts_.format.parts_max == 1) co_return Result<>();
  co_return co_await remove_parts(std::move(module), std::move(stop));
}

io::Task<Result<>> ModuleArchive::remove_parts(ArchivedModule module, std::stop_token stop) {
  const kube::List objects = HANGAR_CO_TRY(co_await objects_in(module.namespace_, stop));
  for (const kube::ObjectPtr& object : objects.items) {
    if (digest_of(parts_.format, object->key().name) != module.sha256) continue;
    const Result<json::Value> removed = co_await parts_.client.remove(
        kube::controller_revision_resource(), object->key(), {}, stop);
    if (!removed && removed.error().kind() != ErrorKind::NotFound) {
      co_return std::unexpected(removed.error());
    }
  }
  co_return Result<>();
}

}  // namespace hangar::archive
