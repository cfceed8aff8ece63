#include "airways/storage_migration.h"

#include "airways/crd_template.h"
#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/find.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

// After a failed rewrite, all instances are tried again in this time.
constexpr std::chrono::seconds kAgain{30};
// Between two reports of progress.
constexpr std::chrono::seconds kReport{5};

// One instance as the list has it.
struct Stored {
  kube::ObjectKey key;
  std::string resource_version;
};

std::string_view stored_version(const json::Value& crd) {
  const json::Array* const versions = json::array_at(crd, {"spec", "versions"});
  if (versions == nullptr) return {};
  for (const json::Value& version : *versions) {
    if (json::bool_at(version, {"storage"})) return json::string_at(version, {"name"});
  }
  return {};
}

}  // namespace

bool has_other_stored_versions(const json::Value& crd) {
  const json::Array* const stored = json::array_at(crd, {"status", "storedVersions"});
  const std::string_view version = stored_version(crd);
  return stored != nullptr && std::ranges::any_of(*stored, [version](const json::Value& one) {
           return one.is_string() && std::string_view(one.get_string()) != version;
         });
}

struct StorageMigration::State {
  State(const Parts& parts_in, std::string name_in, kube::Resource instances_in)
      : parts(parts_in),
        name(std::move(name_in)),
        instances(std::move(instances_in)),
        ended(parts.loop) {
    progress.version = instances.version;
  }

  static io::Task<void> run(std::shared_ptr<State> self) {
    while (true) {
      const Result<> migrated = co_await self->migrate();
      if (migrated || self->stop.stop_requested()) break;
      self->progress.error = migrated.error().message();
      self->parts.log.warning("instances cannot be rewritten in the stored version",
                              {{"crd", self->name}, {"error", self->progress.error}});
      self->parts.changed();
      if (!co_await self->parts.loop.sleep(kAgain, self->stop.get_token())) break;
    }
    self->ended.set(true);
    if (!self->stop.stop_requested()) self->parts.changed();
  }

  io::Task<Result<>> migrate() {
    // Compared with the one at the end: if the definition has changed, instances may have been
    // stored in another version.
    const json::Value crd = HANGAR_CO_TRY(co_await read_crd());
    if (!has_other_stored_versions(crd)) co_return Result<>();
    const std::vector<Stored> all = HANGAR_CO_TRY(co_await list_instances(crd));
    progress.done = 0;
    progress.count = all.size();
    Result<> failed;
    Instant reported = io::Loop::now();
    for (const Stored& instance : all) {
      Result<> rewritten = co_await rewrite(instance);
      if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
      if (rewritten) ++progress.done;
      if (!rewritten && failed) failed = std::move(rewritten);
      if (io::Loop::now() - reported < kReport) continue;
      reported = io::Loop::now();
      parts.changed();
    }
    if (!failed) co_return failed;
    progress.error.clear();
    const json::Value after = HANGAR_CO_TRY(co_await read_crd());
    if (json::int_at(after, {"metadata", "generation"}) !=
        json::int_at(crd, {"metadata", "generation"})) {
      co_return fail(ErrorKind::Conflict, "the definition changed meanwhile");
    }
    const json::Value patch = json::Object{
        {"metadata", json::Object{{"resourceVersion",
                                   json::string_at(after, {"metadata", "resourceVersion"})}}},
        {"status", json::Object{{"storedVersions", json::Array{instances.version}}}}};
    (void)HANGAR_CO_TRY(co_await parts.client.patch(crd_resource(), {.name = name},
                                                    kube::PatchType::Merge, patch,
                                                    {.subresource = "status"}, stop.get_token()));
    co_return Result<>();
  }

  io::Task<Result<json::Value>> read_crd() {
    const kube::ObjectPtr crd = HANGAR_CO_TRY(
        co_await kube::find(parts.client, crd_resource(), {.name = name}, stop.get_token()));
    if (!crd) co_return fail(ErrorKind::NotFound, "the definition is gone");
    co_return crd->to_value();
  }

  // One instance that cannot be converted fails a list in the new version, which does not even name
  // it. A list in the version in which instances are stored works.
  io::Task<Result<std::vector<Stored>>> list_instances(const json::Value& crd) {
    Result<std::vector<Stored>> all = co_await list_in(instances.version);
    for (const json::Value& version : *json::array_at(crd, {"spec", "versions"})) {
      if (all) break;
      if (!json::bool_at(version, {"served"})) continue;
      Result<std::vector<Stored>> other =
          co_await list_in(std::string(json::string_at(version, {"name"})));
      if (other) all = std::move(other);
    }
    co_return all;
  }

  // All pages before the first rewrite: the API server forgets a list after some minutes, and a
  // slow converter takes longer. Of each page only the names stay.
  io::Task<Result<std::vector<Stored>>> list_in(std::string version) {
    kube::Resource resource = instances;
    resource.version = std::move(version);
    std::vector<Stored> all;
    kube::ListOptions options{.detail = kube::Detail::Metadata};
    options.on_begin = [&all] { all.clear(); };
    options.holds = [&all](const kube::ObjectPtr& instance) -> Result<kube::ObjectPtr> {
      all.push_back(
          {.key = instance->key(), .resource_version = std::string(instance->resource_version())});
      return nullptr;
    };
    const Result<kube::List> listed =
        co_await parts.client.list(std::move(resource), std::move(options), stop.get_token());
    if (!listed) co_return std::unexpected(listed.error());
    co_return all;
  }

  // A writer who has changed or deleted the instance meanwhile has done the same.
  io::Task<Result<>> rewrite(const Stored& instance) {
    const json::Value patch =
        json::Object{{"metadata", json::Object{{"resourceVersion", instance.resource_version}}}};
    const kube::ObjectKey& key = instance.key;
    const Result<json::Value> answer = co_await parts.client.patch(
        instances, key, kube::PatchType::Merge, patch, {}, stop.get_token());
    if (answer || answer.error().kind() == ErrorKind::NotFound ||
        answer.error().kind() == ErrorKind::Conflict) {
      co_return Result<>();
    }
    co_return std::unexpected(Error(answer.error()).in(key.to_string()));
  }

  const Parts parts;
  const std::string name;
  const kube::Resource instances;
  Progress progress;
  std::stop_source stop;
  io::OneShot<bool> ended;
};

StorageMigration::StorageMigration(Parts parts) : parts_(std::move(parts)) {}

StorageMigration::~StorageMigration() = default;

io::Task<void> StorageMigration::begin(std::string name, kube::Resource instances) {
  if (is_under_way() && state_->instances == instances) co_return;
  co_await stop();
  state_ = std::make_shared<State>(parts_, std::move(name), std::move(instances));
  parts_.loop.spawn(State::run(state_));
}

io::Task<void> StorageMigration::stop() {
  if (!is_under_way()) co_return;
  state_->stop.request_stop();
  co_await state_->ended.wait();
}

StorageMigration::Progress StorageMigration::progress() const {
  return state_ ? state_->progress : Progress();
}

bool StorageMigration::is_under_way() const {
  return state_ != nullptr && !state_->ended.is_set();
}

}  // namespace hangar::airways
