#include "workflows/module_archive.h"

#include "base/base64.h"
#include "base/limits.h"
#include "json/value.h"
#include "modules/config_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace hangar::workflows {

namespace {

// A copy that somebody deleted is made again after that time, and a right that was missing is asked
// for again.
constexpr std::chrono::minutes kBelieved{10};

constexpr std::string_view kFieldManager = "hangar-workflows";
constexpr std::string_view kLabel = "workflows.example.com/machine";
constexpr std::string_view kNamePrefix = "machine-";
constexpr std::size_t kDigestDigits = 64;

kube::Resource controller_revisions() {
  return {.group = "apps",
          .version = "v1",
          .plural = "controllerrevisions",
          .kind = "ControllerRevision",
          .namespaced = true};
}

bool is_digest(std::string_view text) {
  return text.size() == kDigestDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The digest is somebody's word (a status): only one that is one becomes a name, here and on disk.
Result<kube::ObjectKey> key_of(const ArchivedModule& module) {
  if (!is_digest(module.sha256)) {
    return fail(ErrorKind::NotFound, fmt::format("{} is no module's digest", module.sha256));
  }
  return kube::ObjectKey{.namespace_ = module.namespace_,
                         .name = fmt::format("{}{}", kNamePrefix, module.sha256)};
}

json::Value manifest_of(const kube::ObjectKey& key, std::string packed) {
  json::Object labels;
  labels[kLabel] = "kept";
  return json::Object{{"apiVersion", "apps/v1"},
                      {"kind", "ControllerRevision"},
                      {"metadata", json::Object{{"name", key.name},
                                                {"namespace", key.namespace_},
                                                {"labels", std::move(labels)}}},
                      {"revision", 1},
                      {"data", json::Object{{"gzip", std::move(packed)}}}};
}

// Base64 of the module's gzip.
Result<std::string> read_packed(modules::ModuleStore& store, const std::string& sha256) {
  const std::string bytes = HANGAR_TRY(store.read(sha256));
  modules::ConfigMapContent content = HANGAR_TRY(modules::in_config_map("machine", bytes));
  return std::move(content.binary_data.begin()->second);
}

}  // namespace

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

io::Task<Result<>> ModuleArchive::keep(ArchivedModule module, std::stop_token stop) {
  const auto known = [&]() -> const Kept* {
    const auto found = kept_.find(module);
    return found != kept_.end() && io::Loop::now() < found->second.until ? &found->second : nullptr;
  };
  if (known() == nullptr) {
    const io::Semaphore::Slot slot = co_await writing_.acquire();
    if (known() == nullptr) {
      Result<> created = co_await create(module, std::move(stop));
      const bool may_pass = !created && (created.error().kind() == ErrorKind::Cancelled ||
                                         created.error().kind() == ErrorKind::Unavailable);
      if (may_pass) co_return created;
      if (kept_.size() >= limits::kModuleReferencesMax) kept_.clear();  // Costs a request each.
      kept_[module] = {.until = io::Loop::now() + kBelieved,
                       .error = created ? std::nullopt : std::optional(created.error())};
    }
  }
  if (const std::optional<Error>& error = kept_.at(module).error) co_return std::unexpected(*error);
  co_return Result<>();
}

io::Task<Result<>> ModuleArchive::create(ArchivedModule module, std::stop_token stop) {
  const kube::ObjectKey key = HANGAR_CO_TRY(key_of(module));
  std::string packed = HANGAR_CO_TRY(co_await parts_.workers.run(
      [&store = parts_.store, sha256 = module.sha256] { return read_packed(store, sha256); }));
  const Result<json::Value> created =
      co_await parts_.client.create(controller_revisions(), manifest_of(key, std::move(packed)),
                                    {.field_manager = std::string(kFieldManager)}, std::move(stop));
  if (!created && kube::reason_of(created.error()) != "AlreadyExists") {
    co_return std::unexpected(created.error());
  }
  co_return Result<>();
}

io::Task<Result<std::string>> ModuleArchive::read(ArchivedModule module, std::stop_token stop) {
  kube::ObjectKey key = HANGAR_CO_TRY(key_of(module));
  const json::Value copy = HANGAR_CO_TRY(
      co_await parts_.client.get(controller_revisions(), std::move(key), std::move(stop)));
  std::optional<std::string> packed = base64_decode(json::string_at(copy, {"data", "gzip"}));
  if (!packed) {
    co_return fail(ErrorKind::NotFound, "the copy of the module in the cluster is damaged");
  }
  co_return *std::move(packed);
}

io::Task<Result<std::vector<ArchivedModule>>> ModuleArchive::list(std::string namespace_,
                                                                  std::stop_token stop) {
  // A copy has up to a megabyte.
  const kube::List copies =
      HANGAR_CO_TRY(co_await parts_.client.list(controller_revisions(),
                                                {.namespace_ = std::move(namespace_),
                                                 .label_selector = std::string(kLabel),
                                                 .detail = kube::Detail::Metadata},
                                                std::move(stop)));
  std::vector<ArchivedModule> modules;
  for (const kube::ObjectPtr& copy : copies.items) {
    const kube::ObjectKey& key = copy->key();
    if (!key.name.starts_with(kNamePrefix)) continue;
    ArchivedModule module{.namespace_ = key.namespace_,
                          .sha256 = key.name.substr(kNamePrefix.size())};
    if (is_digest(module.sha256)) modules.push_back(std::move(module));
  }
  co_return modules;
}

io::Task<Result<>> ModuleArchive::remove_unless(ArchivedModule module,
                                                std::function<bool()> is_needed,
                                                std::stop_token stop) {
  kube::ObjectKey key = HANGAR_CO_TRY(key_of(module));
  const io::Semaphore::Slot slot = co_await writing_.acquire();
  if (is_held(module) || is_needed()) co_return Result<>();
  kept_.erase(module);
  const Result<json::Value> removed =
      co_await parts_.client.remove(controller_revisions(), std::move(key), {}, std::move(stop));
  if (!removed && removed.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(removed.error());
  }
  co_return Result<>();
}

}  // namespace hangar::workflows
