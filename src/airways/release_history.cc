#include "airways/release_history.h"

#include "airways/internal/digest.h"
#include "airways/limits.h"
#include "airways/ownership.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "reconcile/acting_rights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

kube::WriteOptions as_yoke() {
  return {.field_manager = std::string(kFieldManager)};
}

std::array<std::uint64_t, 2> content_digest_of(const Stages& stages) {
  std::string text;
  for (const Stage& stage : stages) {
    for (const json::Value& resource : stage)
      internal::append_canonical(resource, text);
    text += ';';
  }
  return internal::digest_of(text);
}

// Leaves what ref_of() and gvk_of() read.
void drop_content(Stages& stages) {
  for (Stage& stage : stages) {
    for (json::Value& resource : stage) {
      const auto text = [&resource](json::Path path) { return json::string_at(resource, path); };
      json::Value named =
          json::Object{{"apiVersion", text({"apiVersion"})},
                       {"kind", text({"kind"})},
                       {"metadata", json::Object{{"name", text({"metadata", "name"})},
                                                 {"namespace", text({"metadata", "namespace"})}}}};
      resource = std::move(named);
    }
  }
}

}  // namespace

io::Task<Result<UnpackedRevision>> read_revision(io::Workers& workers, budget::Consumer whose,
                                                 kube::Client client, kube::ObjectKey secret,
                                                 std::uint64_t bytes_max, std::stop_token stop,
                                                 io::Workers::Order order) {
  // A list, because the host needs no right to get Secrets for a history.
  kube::ListOptions options{.namespace_ = secret.namespace_,
                            .field_selector = fmt::format("metadata.name={}", secret.name)};
  kube::List list =
      HANGAR_CO_TRY(co_await client.list(kube::secret_resource(), std::move(options), stop));
  if (list.items.empty()) {
    co_return fail(ErrorKind::Conflict, fmt::format("revision {} no longer exists", secret.name));
  }
  co_return co_await workers.run(
      std::move(whose),
      [object = std::move(list.items.front()), bytes_max] {
        return unpack(object->to_value(), bytes_max);
      },
      order);
}

ReleaseHistory::ReleaseHistory(io::Workers& workers, const kube::Client& client,
                               const Release& release, Keep keep)
    : workers_(&workers),
      client_(client),
      whose_{.tenant = budget::Tenant::of_namespace(release.instance.namespace_),
             .name = "instance/" + release.history_name},
      release_(release.history_name),
      namespace_(release.namespace_),
      keep_(keep) {}

ReleaseHistory::Kept ReleaseHistory::kept_of(Stages stages, Keep keep) {
  if (keep == Keep::Content) return {.stages = std::move(stages)};
  Kept kept{.stages = {}, .digest = content_digest_of(stages)};
  drop_content(stages);
  kept.stages = std::move(stages);
  return kept;
}

io::Task<Result<>> ReleaseHistory::load(std::stop_token stop) {
  if (loaded_) co_return Result<>();
  Result<> read_all = co_await read(stop);
  // A command has removed a revision that was in the list. Retry once, not forever.
  if (!read_all && read_all.error().kind() == ErrorKind::Conflict) read_all = co_await read(stop);
  if (!read_all && read_all.error().kind() == ErrorKind::Denied) {
    co_return std::unexpected(
        reconcile::not_allowed_in(namespace_, read_all.error().message()).in("read the history"));
  }
  if (!read_all) {
    const Error& error = read_all.error();
    // The Secret is wrong, and not the instance. Corrupt is retried, because a user may repair it.
    const ErrorKind kind =
        error.kind() == ErrorKind::InvalidInput ? ErrorKind::Corrupt : error.kind();
    co_return std::unexpected(Error(kind, error.message()).in("read the history"));
  }
  loaded_ = true;
  co_return Result<>();
}

io::Task<Result<>> ReleaseHistory::reload(std::stop_token stop) {
  loaded_ = false;
  return load(std::move(stop));
}

io::Task<Result<>> ReleaseHistory::read(std::stop_token stop) {
  History history = HANGAR_CO_TRY(co_await read_revisions(stop));
  std::uint64_t bytes_left = limits::kHistoryBytesMax;
  Kept active;
  if (const Revision* const revision = history.active()) {
    active = HANGAR_CO_TRY(co_await read_resources(revision->secret, bytes_left, stop));
  }
  auto digest = active.digest;
  std::vector<Pending> pending;
  for (const Revision* const revision : history.interrupted()) {
    Kept kept = HANGAR_CO_TRY(co_await read_resources(revision->secret, bytes_left, stop));
    pending.push_back({.secret = revision->secret, .stages = std::move(kept.stages)});
    digest = kept.digest;
  }
  pending_ = std::move(pending);
  history_ = std::move(history);
  active_ = std::move(active.stages);
  digest_ = digest;
  take_inventory();
  co_return Result<>();
}

// Without their resources: a history may have many revisions, and nearly all are only counted.
io::Task<Result<History>> ReleaseHistory::read_revisions(std::stop_token stop) {
  constexpr std::uint32_t kPageSize = 50;  // A Secret may have 256 KiB of annotations.
  History history;
  const std::string deprecated = deprecated_history_selector(release_);
  for (const std::string& selector : {history_selector(release_), deprecated}) {
    if (selector.empty()) continue;
    std::size_t count = 0;
    kube::ListOptions options{.namespace_ = namespace_,
                              .label_selector = selector,
                              .page_size = kPageSize,
                              .detail = kube::Detail::Metadata,
                              .holds = [&count](kube::ObjectPtr secret) {
                                if (++count > limits::kHistoryRevisionsMax) secret = nullptr;
                                return secret;
                              }};
    const kube::List list =
        HANGAR_CO_TRY(co_await client_.list(kube::secret_resource(), std::move(options), stop));
    if (count > limits::kHistoryRevisionsMax) {
      co_return fail(
          ErrorKind::LimitExceeded,
          fmt::format("namespace {} has {} Secrets with the label {}, and the limit is {}: "
                      "delete old revisions, and Secrets that are not revisions",
                      namespace_, count, selector, limits::kHistoryRevisionsMax));
    }
    for (const kube::ObjectPtr& object : list.items) {
      json::Value secret = object->to_value();
      if (const auto patch = migration_patch(secret, release_)) {
        secret =
            HANGAR_CO_TRY(co_await client_.patch(kube::secret_resource(), object->key(),
                                                 kube::PatchType::Merge, *patch, as_yoke(), stop));
      }
      history.add(HANGAR_CO_TRY(revision_of(secret)));
    }
  }
  co_return history;
}

io::Task<Result<ReleaseHistory::Kept>> ReleaseHistory::read_resources(std::string secret_name,
                                                                      std::uint64_t& bytes_left,
                                                                      std::stop_token stop) {
  const std::uint64_t bytes_max = std::min(bytes_left, limits::kRevisionBytesMax);
  UnpackedRevision unpacked = HANGAR_CO_TRY(co_await read_revision(
      *workers_, whose_, client_, {.namespace_ = namespace_, .name = secret_name}, bytes_max, stop,
      order_));
  bytes_left -= std::min(bytes_left, unpacked.bytes);
  if (keep_ == Keep::Content) co_return kept_of(std::move(unpacked.stages), keep_);
  co_return co_await workers_->run(
      whose_,
      [stages = std::move(unpacked.stages), keep = keep_]() mutable {
        return kept_of(std::move(stages), keep);
      },
      order_);
}

io::Task<Result<>> ReleaseHistory::record(const Stages& stages, const Source& source, WallTime now,
                                          std::stop_token stop) {
  HANGAR_ASSERT(loaded_, "a history is read before it is written");
  const bool has_newest = is_interrupted() || history_.active() != nullptr;
  if (has_newest && is_newest(stages)) co_return Result<>();

  struct Prepared {
    Result<json::Value> secret;
    Kept kept;
  };
  Prepared prepared =
      co_await workers_->run(whose_, [release = release_, namespace_ = namespace_,
                                      copy = Stages(stages), source, now, keep = keep_]() mutable {
        Result<json::Value> secret = secret_of(release, namespace_, copy, source, now);
        return Prepared{.secret = std::move(secret), .kept = kept_of(std::move(copy), keep)};
      });
  const json::Value secret = HANGAR_CO_TRY(std::move(prepared.secret));
  loaded_ = false;  // Until the answer arrives.
  const Result<json::Value> created =
      co_await client_.create(kube::secret_resource(), secret, as_yoke(), stop);
  if (!created) co_return std::unexpected(Error(created.error()).in("record the revision"));
  Revision revision = HANGAR_CO_TRY(revision_of(*created));
  pending_.push_back({.secret = revision.secret, .stages = std::move(prepared.kept.stages)});
  digest_ = prepared.kept.digest;
  history_.add(std::move(revision));
  loaded_ = true;
  HANGAR_CO_TRY(co_await drop_superseded(stop));
  take_inventory();
  co_return Result<>();
}

bool ReleaseHistory::is_newest(const Stages& stages) const {
  return digest_ ? content_digest_of(stages) == *digest_ : same_resources(newest(), stages);
}

io::Task<Result<>> ReleaseHistory::drop_superseded(std::stop_token stop) {
  HANGAR_ASSERT(!pending_.empty(), "a revision was recorded");
  const Stages known = merge_inventory(active_, {pending_.back().stages});
  for (std::size_t index = 0; index + 1 < pending_.size();) {
    if (!is_covered(pending_[index].stages, known)) {
      ++index;
      continue;
    }
    HANGAR_CO_TRY(co_await remove(pending_[index].secret, stop));
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  co_return Result<>();
}

void ReleaseHistory::take_inventory() {
  std::vector<Stages> interrupted;
  for (const Pending& one : pending_)
    interrupted.push_back(one.stages);
  inventory_ = merge_inventory(active_, interrupted);
}

io::Task<Result<>> ReleaseHistory::activate(WallTime now, std::optional<std::uint32_t> count_max,
                                            std::stop_token stop) {
  HANGAR_ASSERT(loaded_, "a history is read before it is written");
  if (!pending_.empty()) {
    HANGAR_CO_TRY(co_await make_active(pending_.back().secret, now, stop));
    active_ = std::move(pending_.back().stages);
    pending_.clear();
    inventory_ = active_;
  }
  for (const std::string& secret : history_.beyond(count_max)) {
    HANGAR_CO_TRY(co_await remove(secret, stop));
  }
  co_return Result<>();
}

io::Task<Result<>> ReleaseHistory::activate_again(Revision revision, Stages stages, WallTime now,
                                                  std::stop_token stop) {
  HANGAR_ASSERT(loaded_, "a history is read before it is written");
  HANGAR_CO_TRY(co_await make_active(std::move(revision.secret), now, std::move(stop)));
  active_ = std::move(stages);
  digest_.reset();
  pending_.clear();
  inventory_ = active_;
  co_return Result<>();
}

io::Task<Result<>> ReleaseHistory::make_active(std::string secret, WallTime now,
                                               std::stop_token stop) {
  loaded_ = false;  // Until the answer arrives.
  const Result<json::Value> patched =
      co_await client_.patch(kube::secret_resource(), {.namespace_ = namespace_, .name = secret},
                             kube::PatchType::Merge, activation_patch(now), as_yoke(), stop);
  if (!patched) co_return std::unexpected(Error(patched.error()).in("activate the revision"));
  const auto found = std::ranges::find(history_.revisions, secret, &Revision::secret);
  HANGAR_ASSERT(found != history_.revisions.end(), "an activated revision is one of the history");
  found->active_at = now;
  // The resources of interrupted revisions have been pruned by now, so these are of no use.
  for (const Revision& other : std::vector<Revision>(history_.revisions)) {
    if (!other.active_at) HANGAR_CO_TRY(co_await remove(other.secret, stop));
  }
  loaded_ = true;
  co_return Result<>();
}

io::Task<Result<>> ReleaseHistory::erase(std::stop_token stop) {
  for (const Revision& revision : std::vector<Revision>(history_.revisions)) {
    HANGAR_CO_TRY(co_await remove(revision.secret, stop));
  }
  active_.clear();
  digest_.reset();
  inventory_.clear();
  pending_.clear();
  co_return Result<>();
}

io::Task<Result<>> ReleaseHistory::remove(std::string secret, std::stop_token stop) {
  const bool was_loaded = std::exchange(loaded_, false);
  const Result<json::Value> removed = co_await client_.remove(
      kube::secret_resource(), {.namespace_ = namespace_, .name = secret}, {}, stop);
  if (!removed && removed.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(Error(removed.error()).in("remove a revision"));
  }
  std::erase_if(history_.revisions, [&](const Revision& one) { return one.secret == secret; });
  loaded_ = was_loaded;
  co_return Result<>();
}

}  // namespace hangar::airways
