#include "archive/copies.h"

#include "archive/module_archive.h"
#include "base/result.h"
#include "io/task.h"
#include "kube/object.h"
#include "reconcile/controller.h"

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::archive {

namespace {

// Removes copies of objects that were deleted while no host ran.
constexpr std::chrono::hours kTidying{1};

}  // namespace

std::optional<std::string> namespace_for(const std::string& kept_in, const std::string& tenant) {
  if (kept_in.empty() == tenant.empty()) return std::nullopt;
  return tenant.empty() ? kept_in : tenant;
}

Copies::Copies(Parts parts)
    : parts_(std::move(parts)),
      archive_({.loop = parts_.platform.loop,
                .workers = parts_.platform.workers,
                .client = parts_.platform.client,
                .store = parts_.store,
                .format = parts_.format}),
      tidier_(parts_.platform.loop, parts_.platform.metrics, parts_.log, {.name = parts_.name},
              [this](kube::ObjectKey key, std::stop_token stop) {
                return tidy(std::move(key), std::move(stop));
              }) {}

Copies::~Copies() = default;

void Copies::start() {
  tidier_.start();
}

io::Task<void> Copies::stop() {
  return tidier_.stop();
}

ArchivedModule Copies::of(std::string namespace_, std::string sha256) const {
  if (!parts_.kept_in.empty()) namespace_ = parts_.kept_in;
  return {.namespace_ = std::move(namespace_), .sha256 = std::move(sha256)};
}

void Copies::look_at_all() {
  tidier_.enqueue({});
}

void Copies::look_at(ArchivedModule copy) {
  if (copy.sha256.empty()) return;
  tidier_.enqueue({.namespace_ = std::move(copy.namespace_), .name = std::move(copy.sha256)});
}

void Copies::look_in(const std::string& namespace_) {
  if (looked_in_ && looked_in_->insert(namespace_).second) {
    tidier_.enqueue({.namespace_ = namespace_});
  }
}

io::Task<Result<Copies::Outcome>> Copies::remove(ArchivedModule copy, std::stop_token stop) {
  HANGAR_CO_TRY(co_await archive_.remove_unless(
      copy, [this, &copy] { return !parts_.is_synced() || parts_.is_needed(copy); },
      std::move(stop)));
  co_return Outcome{};
}

io::Task<Result<Copies::Outcome>> Copies::tidy(kube::ObjectKey key, std::stop_token stop) {
  if (!parts_.is_synced()) co_return Outcome{};  // look_at_all() follows once they are known.
  if (!key.name.empty()) {
    co_return co_await remove(
        {.namespace_ = std::move(key.namespace_), .sha256 = std::move(key.name)}, std::move(stop));
  }
  const bool is_of_all = key.namespace_.empty();
  const std::string where = is_of_all ? parts_.kept_in : key.namespace_;
  Result<std::vector<ArchivedModule>> copies = co_await archive_.list(where, std::move(stop));
  const bool is_denied = !copies && copies.error().kind() == ErrorKind::Denied;
  if (!copies && !is_denied) co_return std::unexpected(std::move(copies).error());
  if (is_denied && where.empty()) {
    // A host that has rights only in some namespaces looks in those that have objects. Where it
    // lacks the right, too, it has made no copies.
    looked_in_.emplace();
    for (const std::string& namespace_ : parts_.namespaces())
      look_in(namespace_);
  }
  if (copies) {
    for (ArchivedModule& copy : *copies)
      look_at(std::move(copy));
  }
  // Only the look at all namespaces is repeated.
  if (!is_of_all) co_return Outcome{};
  co_return Outcome{.requeue_after = kTidying};
}

}  // namespace hangar::archive
