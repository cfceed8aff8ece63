#include "gateway/watching.h"

#include "base/metrics.h"
#include "base/result.h"
#include "gateway/authorizer.h"
#include "gateway/documents.h"
#include "gateway/feed.h"
#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/reply.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "io/task.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::gateway {

using Source = Reply::Source;

Watching::Watching(const kube::Client& client, std::shared_ptr<Feed> feed,
                   std::shared_ptr<Reply> reply, const kube::Identity& identity, Options options,
                   Gauge& open_count)
    : client_(client),
      feed_(std::move(feed)),
      reply_(std::move(reply)),
      caller_(identity),
      options_(std::move(options)),
      open_count_(open_count) {
  reply_->set_worker(this);
  open_count_.add(1);
}

Watching::~Watching() {
  reply_->set_worker(nullptr);
  open_count_.add(-1);
}

io::Task<void> Watching::begin(std::shared_ptr<Watching> self, Beginning beginning) {
  if (beginning.timeout) {
    self->timeout_ = self->client_.loop().after(*beginning.timeout, [weak = std::weak_ptr(self)] {
      if (const auto alive = weak.lock()) alive->end();
    });
  }
  if (beginning.seen) co_return co_await resume(self, *beginning.seen);

  const std::uint64_t version = self->feed_->history().version();
  const bool is_new_enough = !beginning.sends_initial_events ||
                             (beginning.not_older_than && *beginning.not_older_than <= version);
  if (!is_new_enough) co_return co_await begin_with_newest(self);
  self->open();
  self->give_all(self->feed_->objects(self->view()));
  if (beginning.sends_initial_events) self->give_initial_end(version);
  self->attach(version);
}

io::Task<void> Watching::begin_with_newest(std::shared_ptr<Watching> self) {
  const Result<kube::List> listed = co_await self->client_.list(
      self->feed_->scope().resource, self->selection(), self->reply_->stop_token());
  if (!self->is_open()) co_return;
  if (!listed) co_return self->fail_with(listed.error());
  const auto version = parse_version(listed->resource_version);
  if (!version) co_return self->expire("the list has no version");
  self->open();
  self->give_all(listed->items);
  self->give_initial_end(*version);
  co_await resume(self, *version);
}

io::Task<void> Watching::resume(std::shared_ptr<Watching> self, std::uint64_t seen) {
  const History& history = self->feed_->history();
  if (!history.covers(seen)) co_return co_await catch_up(self, seen);
  std::vector<Change> changes;
  history.for_each_after(seen, [&](const Change& change) { changes.push_back(change); });
  self->open();
  self->give_changes(changes);
  self->attach(std::max(seen, history.version()));
}

io::Task<void> Watching::catch_up(std::shared_ptr<Watching> self, std::uint64_t seen) {
  kube::ListOptions then = self->selection();
  then.resource_version = std::to_string(seen);
  then.resource_version_match = "Exact";
  const kube::Resource& resource = self->feed_->scope().resource;
  Result<kube::List> listed =
      co_await self->client_.list(resource, std::move(then), self->reply_->stop_token());
  if (!self->is_open()) co_return;
  if (!listed && listed.error().kind() == ErrorKind::Unavailable) {
    co_return self->fail_with(listed.error());
  }
  const std::uint64_t now = self->feed_->history().version();
  if (!listed || !self->feed_->is_ready()) {
    co_return self->expire(fmt::format("too old resource version: {} ({})", seen, now));
  }
  // What a watcher who has slept since then has missed, in the outcome.
  kube::Store store;
  store.replace(std::move(listed->items), [](const kube::Delta&) {});
  std::vector<kube::Delta> differences;
  store.replace(self->feed_->objects(self->view()),
                [&](const kube::Delta& delta) { differences.push_back(delta); });
  self->open();
  // Both sides are of what is seen, so every difference is.
  for (Change& change : in_order(std::move(differences), seen, now)) {
    self->on_line({change.type == kube::Delta::Type::Added      ? WatchLine::Type::Added
                   : change.type == kube::Delta::Type::Modified ? WatchLine::Type::Modified
                                                                : WatchLine::Type::Deleted,
                   std::move(change.object)});
  }
  self->attach(now);
}

void Watching::end() {
  if (!is_open()) return;
  open();
  if (is_attached()) on_progress(feed_->history().version());
  stop_looking();
  reply_->end();
}

void Watching::on_line(WatchLine line) {
  reply_->piece(std::move(line));
}

void Watching::on_progress(std::uint64_t version) {
  if (!options_.wants_bookmarks || version <= told_) return;
  told_ = version;
  reply_->bookmark(bookmark_line(feed_->scope().resource, version, /*ends_initial_events=*/false));
}

void Watching::on_lost(std::uint64_t version) {
  client_.loop().spawn(resume(shared_from_this(), version));
}

void Watching::on_gone() {
  expire("the resource is not served any more");
}

void Watching::on_close() {
  const auto keep = shared_from_this();
  stop_looking();
}

void Watching::open() {
  reply_->head_json(200, Source::Cache);
}

void Watching::give_all(std::vector<kube::ObjectPtr> objects) {
  std::ranges::sort(objects, {}, [](const kube::ObjectPtr& object) {
    return parse_version(object->resource_version()).value_or(0);
  });
  for (const kube::ObjectPtr& object : objects)
    on_line({WatchLine::Type::Added, object});
}

void Watching::give_initial_end(std::uint64_t version) {
  told_ = version;
  reply_->piece(bookmark_line(feed_->scope().resource, version, /*ends_initial_events=*/true));
}

void Watching::give_changes(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    Sight sight(change);
    if (auto line = view().see(sight)) on_line(*std::move(line));
  }
}

void Watching::attach(std::uint64_t seen) {
  if (!is_open()) return;
  if (!feed_->is_ready()) return on_gone();
  told_ = std::max(told_, seen);
  reply_->forget_stop_tokens();
  feed_->attach(shared_from_this(), seen);
}

void Watching::expire(const std::string& message) {
  stop_looking();
  open();
  reply_->piece(error_line(expired(message)));
  reply_->end();
}

void Watching::fail_with(const Error& error) {
  stop_looking();
  if (!reply_->has_head()) return reply_->refuse(no_answer(error, /*is_write=*/false));
  reply_->end();
}

void Watching::stop_looking() {
  timeout_.cancel();
  feed_->detach(*this);
}

kube::ListOptions Watching::selection() const {
  return {.namespace_ = view().namespace_(),
          .label_selector = view().label_selector(),
          .field_selector = view().field_selector()};
}

Attributes Watching::attributes() const {
  const kube::Resource& resource = feed_->scope().resource;
  return {.verb = std::string(name_of(Verb::Watch)),
          .group = resource.group,
          .version = resource.version,
          .resource = resource.plural,
          .namespace_ = options_.is_of_namespace ? view().namespace_() : std::string(),
          .name = view().name(),
          .label_selector = view().label_selector(),
          .field_selector = view().field_selector()};
}

}  // namespace hangar::gateway
