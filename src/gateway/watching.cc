#include "gateway/watching.h"

#include "base/metrics.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/slices.h"
#include "gateway/caller.h"
#include "gateway/documents.h"
#include "gateway/feed.h"
#include "gateway/feed_memory.h"
#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/newest.h"
#include "gateway/reply.h"
#include "gateway/request_target.h"
#include "gateway/view.h"
#include "io/task.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "kube/media_types.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

using Source = Reply::Source;

Watching::Watching(std::shared_ptr<Tools> tools, Feed::Window window, std::shared_ptr<Reply> reply,
                   const kube::Identity& identity, Gauge& open_count)
    : Feed::Viewer(std::move(window)),
      tools_(std::move(tools)),
      reply_(std::move(reply)),
      caller_(identity),
      open_count_(open_count) {
  reply_->set_worker(this);
  open_count_.add(1);
}

Watching::~Watching() {
  reply_->set_worker(nullptr);
  open_count_.add(-1);
}

io::Task<void> Watching::begin(std::shared_ptr<Watching> self, Beginning beginning) {
  self->wants_bookmarks_ = beginning.wants_bookmarks;
  if (beginning.timeout) {
    const auto on_timeout = [weak = std::weak_ptr(self)] {
      if (const auto alive = weak.lock()) alive->end();
    };
    self->ends_at_ = io::Loop::now() + *beginning.timeout;
    self->timeout_ = self->tools_->client.loop().after(*beginning.timeout, on_timeout);
  }
  if (beginning.seen) co_return co_await resume(self, *beginning.seen);
  const bool is_new_enough =
      !beginning.sends_initial_events ||
      (beginning.not_older_than && *beginning.not_older_than <= self->feed().version());
  if (!is_new_enough) co_return co_await begin_with_newest(self, beginning);
  co_await begin_with_known(self, beginning, nullptr);
}

io::Task<void> Watching::begin_with_known(std::shared_ptr<Watching> self, Beginning beginning,
                                          NewestPtr newest) {
  budget::Slices::Job job =
      self->tools_->slices.begin(budget::Tenant::of_namespace(tenant_of(self->identity())));
  if (!co_await take_turn(self, job)) co_return;
  if (!self->feed().is_ready()) co_return self->on_gone();
  std::uint64_t version = self->feed().version();
  // Up to the newest state, the changes that the feed has not received yet are deletions of objects
  // that are left out here, and objects that came and went.
  if (newest) version = std::max(version, newest->version());
  self->open();
  if (!co_await give_all(self, std::move(job), self->window().candidates(), std::move(newest))) {
    co_return;
  }
  if (beginning.sends_initial_events) self->give_initial_end(version);
  // Sending took several slices: continue with the changes that came meanwhile.
  co_await resume(self, version);
}

io::Task<void> Watching::begin_with_newest(std::shared_ptr<Watching> self, Beginning beginning) {
  const std::stop_token stop = self->reply_->stop_token();
  Result<NewestPtr> newest =
      co_await self->tools_->newest.get(self->feed().scope(), consumer_of(self->identity()), stop);
  if (!self->is_open()) co_return;
  if (!newest) co_return self->fail_with(newest.error());
  const Result<> reached = co_await self->feed().wait_for((*newest)->last_change(), stop);
  if (!self->is_open()) co_return;
  if (!reached) co_return self->on_gone();
  co_await begin_with_known(self, beginning, *std::move(newest));
}

io::Task<void> Watching::resume(std::shared_ptr<Watching> self, std::uint64_t seen) {
  const History& history = self->feed().history();
  if (!history.covers(seen)) co_return co_await catch_up(self, seen);
  std::vector<Change> changes;
  history.for_each_after(seen, [&](const Change& change) { changes.push_back(change); });
  self->open();
  self->give_changes(changes);
  self->told_ = std::max(self->told_, seen);
  self->attach(std::max(seen, history.version()));
}

io::Task<void> Watching::catch_up(std::shared_ptr<Watching> self, std::uint64_t seen) {
  // compare_with() has released its turn by now: resume() may have to catch up again, and would
  // wait for it.
  const auto told = co_await compare_with(self, seen);
  if (told) co_await resume(self, *told);
}

io::Task<std::optional<std::uint64_t>> Watching::compare_with(std::shared_ptr<Watching> self,
                                                              std::uint64_t seen) {
  const std::string tenant = tenant_of(self->identity());
  // With the stop, since a guest may begin and end any number of watches while one holds the turn.
  const auto one_at_a_time =
      co_await self->tools_->catch_ups.take(tenant, self->reply_->stop_token());
  if (!one_at_a_time || !self->is_open()) co_return std::nullopt;
  if (self->feed().history().covers(seen)) co_return seen;  // Another watch has asked meanwhile.
  const budget::Consumer consumer = consumer_of(self->identity());
  std::optional<budget::FairSlots::Slot> slot;
  if (!consumer.tenant.is_host()) {
    auto given = co_await self->tools_->upstream->acquire(consumer, {}, self->reply_->stop_token());
    if (!self->is_open()) co_return std::nullopt;
    if (!given) {
      self->fail_with(given.error());
      co_return std::nullopt;
    }
    slot.emplace(*std::move(given));
    if (self->feed().history().covers(seen)) co_return seen;
  }
  FeedMemory memory(self->tools_->feed_memory, consumer, self->feed().scope().resource.plural);
  std::uint64_t bytes = 0;
  kube::ListOptions then = self->selection();
  then.resource_version = std::to_string(seen);
  then.resource_version_match = "Exact";
  then.on_begin = [&bytes] { bytes = 0; };
  then.holds = [&](kube::ObjectPtr object) -> Result<kube::ObjectPtr> {
    if (auto known = self->window().same_as(*object)) return known;
    bytes += object->size_bytes();
    if (!consumer.tenant.is_host()) HANGAR_TRY(memory.resize(bytes));
    return object;
  };
  const kube::Resource& resource = self->feed().scope().resource;
  Result<kube::List> listed =
      co_await self->tools_->client.list(resource, std::move(then), self->reply_->stop_token());
  slot.reset();
  if (!self->is_open()) co_return std::nullopt;
  if (!listed && listed.error().kind() == ErrorKind::Unavailable) {
    self->fail_with(listed.error());
    co_return std::nullopt;
  }
  budget::Slices::Job job = self->tools_->slices.begin(budget::Tenant::of_namespace(tenant));
  if (!co_await take_turn(self, job)) co_return std::nullopt;
  const std::uint64_t now = self->feed().version();
  if (!listed || !self->feed().is_ready()) {
    self->expire(fmt::format("too old resource version: {} ({})", seen, now));
    co_return std::nullopt;
  }
  const std::vector<kube::ObjectPtr> present = self->window().candidates();

  // The net difference between then and now. Both lists are limited to what this watch sees, so
  // every difference is visible.
  using Key = std::pair<std::string_view, std::string_view>;
  const auto key_of = [](const kube::ObjectPtr& object) {
    return Key(object->key().namespace_, object->key().name);
  };
  std::map<Key, kube::ObjectPtr> before;
  for (const kube::ObjectPtr& object : listed->items) {
    if (job.is_over() && !co_await take_turn(self, job)) co_return std::nullopt;
    job.add(budget::kSliceObjectBytes);
    before.emplace(key_of(object), object);
  }
  std::vector<kube::ObjectPtr> gone;
  std::vector<kube::Delta> changed;
  for (const kube::ObjectPtr& object : present) {
    if (job.is_over() && !co_await take_turn(self, job)) co_return std::nullopt;
    job.add(budget::kSliceObjectBytes + object->labels().size());
    if (!self->view().sees(*object)) continue;
    const auto node = before.extract(key_of(object));
    // Another uid under the same name: the old object was deleted and a new one was created.
    const bool is_another = !node.empty() && node.mapped()->uid() != object->uid();
    if (is_another) gone.push_back(node.mapped());
    if (node.empty() || is_another) {
      changed.push_back({.type = kube::Delta::Type::Added, .object = object});
    } else if (object->resource_version() != node.mapped()->resource_version()) {
      changed.push_back(
          {.type = kube::Delta::Type::Modified, .object = object, .previous = node.mapped()});
    }
  }
  for (const auto& [key, object] : before)
    gone.push_back(object);
  // Watches that begin at one version are many after the host was replaced: this list serves all.
  if (self->feed().is_all_of(self->view())) {
    std::vector<kube::Delta> differences = changed;
    for (const kube::ObjectPtr& object : gone)
      differences.push_back(
          {.type = kube::Delta::Type::Deleted, .object = object, .previous = object});
    self->feed().reach_back(std::move(differences), seen, now);
  }

  self->open();
  // In the order that in_order() explains.
  for (const kube::ObjectPtr& object : gone) {
    if (job.is_over() && !co_await take_turn(self, job)) co_return std::nullopt;
    job.add(budget::kSliceObjectBytes + 2 * object->text_size());
    const bool is_last = object == gone.back() && changed.empty();
    self->on_line({WatchLine::Type::Deleted, with_version(object, is_last ? now : seen)});
  }
  for (Change& change : in_order(std::move(changed), seen, now)) {
    if (job.is_over() && !co_await take_turn(self, job)) co_return std::nullopt;
    job.add(budget::kSliceObjectBytes);
    self->on_line({change.type == kube::Delta::Type::Added ? WatchLine::Type::Added
                                                           : WatchLine::Type::Modified,
                   std::move(change.object)});
  }
  co_return now;
}

io::Task<bool> Watching::take_turn(std::shared_ptr<Watching> self, budget::Slices::Job& job) {
  const Result<> turn = co_await job.turn(self->reply_->stop_token());
  co_return turn && self->is_open();
}

void Watching::end() {
  if (!is_open()) return;
  open();
  if (is_attached() && feed().has_shown_all()) on_progress(feed().history().version());
  stop_looking();
  reply_->end();
}

void Watching::on_line(WatchLine line) {
  line.detail = view().detail();
  reply_->piece(std::move(line));
}

void Watching::on_progress(std::uint64_t version) {
  if (!wants_bookmarks_ || version <= told_) return;
  told_ = version;
  reply_->bookmark(bookmark(version, /*ends_initial_events=*/false));
}

void Watching::on_lost(std::uint64_t version) {
  tools_->client.loop().spawn(resume(shared_from_this(), version));
}

void Watching::on_gone() {
  // A shortage is told to the tenant that it is about; others learn of theirs when they watch
  // again.
  const std::optional<Error>& error = feed().error();
  const bool is_own = error && (error->reason() != kTooLargeToWatch || feed().payer() == tenant());
  expire(is_own ? error->message() : "the watch of this resource has ended");
}

void Watching::on_close() {
  const auto keep = shared_from_this();
  stop_looking();
}

// A watch that is not attached is being shown differences: only its own past tells which.
Continuation Watching::continuation() const {
  if (!is_attached() || !feed().is_ready() || !feed().has_shown_all()) return {};
  const kube::Resource& resource = feed().scope().resource;
  RequestTarget target;
  target.segments = resource.group.empty()
                        ? std::vector<std::string>{"api", resource.version}
                        : std::vector<std::string>{"apis", resource.group, resource.version};
  if (const std::string in = view().requested_namespace(); !in.empty()) {
    target.segments.insert(target.segments.end(), {"namespaces", in});
  }
  target.segments.push_back(resource.plural);
  const std::uint64_t seen = std::max(attached_at(), feed().history().version());
  target.query = {{"watch", "true"}, {"resourceVersion", std::to_string(seen)}};
  if (wants_bookmarks_) target.query.emplace_back("allowWatchBookmarks", "true");
  if (std::string labels = view().label_selector(); !labels.empty()) {
    target.query.emplace_back("labelSelector", std::move(labels));
  }
  if (std::string fields = view().field_selector(); !fields.empty()) {
    target.query.emplace_back("fieldSelector", std::move(fields));
  }
  if (ends_at_ != Instant()) {
    const auto left =
        std::chrono::ceil<std::chrono::seconds>(ends_at_ - io::Loop::now());  // Zero is for ever.
    target.query.emplace_back("timeoutSeconds",
                              std::to_string(std::max<std::int64_t>(1, left.count())));
  }
  return {.target = target.to_string(),
          .accept = std::string(view().detail() == kube::Detail::Whole ? kube::kJsonType
                                                                       : kube::kMetadataType)};
}

void Watching::open() {
  reply_->head_json(200, Source::Cache);
}

io::Task<bool> Watching::give_all(std::shared_ptr<Watching> self, budget::Slices::Job job,
                                  std::vector<kube::ObjectPtr> objects, NewestPtr newest) {
  using Entry = std::pair<std::uint64_t, kube::ObjectPtr>;
  std::vector<Entry> seen;
  for (kube::ObjectPtr& object : objects) {
    if (job.is_over() && !co_await take_turn(self, job)) co_return false;
    job.add(budget::kSliceObjectBytes + object->labels().size());
    if (!self->view().sees(*object) || (newest && !newest->has(*object))) continue;
    const std::uint64_t version = kube::parse_version(object->resource_version()).value_or(0);
    seen.emplace_back(version, std::move(object));
  }
  // A heap instead of a sort, so that ordering is cut into slices too.
  std::ranges::make_heap(seen, std::ranges::greater(), &Entry::first);
  while (!seen.empty()) {
    if (job.is_over() && !co_await take_turn(self, job)) co_return false;
    job.add(budget::kSliceObjectBytes);
    std::ranges::pop_heap(seen, std::ranges::greater(), &Entry::first);
    self->on_line({WatchLine::Type::Added, std::move(seen.back().second)});
    seen.pop_back();
  }
  co_return self->is_open();
}

void Watching::give_initial_end(std::uint64_t version) {
  told_ = version;
  reply_->piece(bookmark(version, /*ends_initial_events=*/true));
}

std::string Watching::bookmark(std::uint64_t version, bool ends_initial_events) const {
  return bookmark_line(feed().scope().resource, version, ends_initial_events, view().detail());
}

void Watching::give_changes(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    Sight sight(change);
    if (auto line = view().see(sight)) on_line(*std::move(line));
  }
}

void Watching::attach(std::uint64_t seen) {
  if (!is_open()) return;
  if (!feed().is_ready()) return on_gone();
  reply_->forget_stop_tokens();
  feed().attach(shared_from_this(), seen);
}

void Watching::expire(const std::string& message) {
  stop_looking();
  open();
  reply_->piece(error_line(expired(message)));
  reply_->end();
}

void Watching::fail_with(const Error& error) {
  stop_looking();
  if (reply_->has_head()) return reply_->end();
  if (error.kind() == ErrorKind::LimitExceeded) return reply_->refuse(too_many_requests());
  reply_->refuse(no_answer(error, /*is_write=*/false));
}

void Watching::stop_looking() {
  timeout_.cancel();
  feed().detach(*this);
}

kube::ListOptions Watching::selection() const {
  return {.namespace_ = view().namespace_(),
          .label_selector = view().label_selector(),
          .field_selector = view().field_selector(),
          .detail = view().detail()};
}

}  // namespace hangar::gateway
