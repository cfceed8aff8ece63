#include "gateway/gateway.h"

#include "base/in_slot.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/slots.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/slices.h"
#include "gateway/authorizer.h"
#include "gateway/caller.h"
#include "gateway/documents.h"
#include "gateway/feed.h"
#include "gateway/feed_memory.h"
#include "gateway/feeds.h"
#include "gateway/limits.h"
#include "gateway/own_writes.h"
#include "gateway/read_scope.h"
#include "gateway/read_version.h"
#include "gateway/reply.h"
#include "gateway/request_target.h"
#include "gateway/tenant_bounds.h"
#include "gateway/upstream.h"
#include "gateway/watching.h"
#include "http/client.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/part.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
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

namespace {

// Longer timeouts are reduced to this one: such a guest wants to watch for ever.
constexpr std::chrono::hours kTimeoutMax{24};

bool wants_upgrade(const http::Headers& headers, const RequestTarget& target) {
  if (http::find_header(headers, "upgrade")) return true;
  constexpr std::array<std::string_view, 3> kUpgrading = {"exec", "attach", "portforward"};
  return target.group.empty() && target.plural == "pods" &&
         std::ranges::find(kUpgrading, target.subresource) != kUpgrading.end();
}

bool is_method(std::string_view method) {
  constexpr std::array<std::string_view, 7> kMethods = {"GET",   "HEAD",   "POST",   "PUT",
                                                        "PATCH", "DELETE", "OPTIONS"};
  return std::ranges::find(kMethods, method) != kMethods.end();
}

std::string header_of(const http::Headers& headers, std::string_view name) {
  return std::string(http::find_header(headers, name).value_or(""));
}

// One request until its answer starts.
struct Work {
  kube::Identity identity;
  Request request;
  RequestTarget target;
  Accepts accepts;
  std::shared_ptr<Reply> reply;
};
// Passed on as a pointer: a copy in the coroutine frame of every task on the way would be most of a
// request's memory.
using WorkPtr = std::unique_ptr<Work>;

// A request that lasts as long as the server or the guest likes.
bool is_stream(const RequestTarget& target) {
  // With a slash at its end, a path is not interpreted here, but the API server serves it like the
  // one without: `pods/?watch=true` and `services/x/proxy/` must not keep a slot.
  const bool may_be_any = target.ends_with_slash && target.segments.size() > 2;
  return may_be_any || target.verb == Verb::Watch || target.subresource == "log" ||
         target.subresource == "proxy";
}

Forward forward_of(Work& work) {
  const std::string& method = work.request.method;
  Forward forward{.request = {.method = method,
                              .target = work.target.to_string(),
                              .body = std::move(work.request.body),
                              .traceparent = std::move(work.request.traceparent)},
                  .is_write = method != "GET" && method != "HEAD"};
  if (auto accept = header_of(work.request.headers, "accept"); !accept.empty()) {
    forward.request.accept = std::move(accept);
  }
  if (auto type = header_of(work.request.headers, "content-type"); !type.empty()) {
    forward.request.content_type = std::move(type);
  }
  if (work.target.verb == Verb::Watch) {
    forward.body = Forward::Body::Lines;
    forward.request.accept = work.accepts.json_only;
  } else if (is_stream(work.target)) {
    forward.body = Forward::Body::Pieces;
  }
  return forward;
}

// Where a watch begins; nothing when only the API server can interpret the options.
std::optional<Watching::Beginning> beginning_of(const ReadOptions& asked) {
  if (!asked.continue_token.empty()) return std::nullopt;
  Watching::Beginning beginning{.wants_bookmarks = asked.allow_watch_bookmarks};
  const auto version = kube::parse_version(asked.resource_version);
  if (!asked.resource_version.empty() && !version) return std::nullopt;
  const bool is_any = version.value_or(0) == 0;  // Also "00".
  if (asked.send_initial_events) {
    // `sendInitialEvents=false` starts from the newest state without initial events: rare, and left
    // to the server.
    if (!*asked.send_initial_events || asked.resource_version_match != "NotOlderThan") {
      return std::nullopt;
    }
    beginning.sends_initial_events = true;
    beginning.not_older_than = version;
  } else {
    if (!asked.resource_version_match.empty()) return std::nullopt;
    if (!is_any) beginning.seen = version;
  }
  if (asked.timeout_seconds && *asked.timeout_seconds > 0) {
    beginning.timeout = std::chrono::seconds(
        std::min<std::int64_t>(*asked.timeout_seconds, std::chrono::seconds(kTimeoutMax).count()));
  }
  return beginning;
}

class OwnWatches {
  using Counts = std::map<std::string, std::size_t>;

 public:
  // The count of one watch, until destroyed.
  class Place {
   public:
    Place(std::shared_ptr<Counts> counts, Counts::iterator at)
        : counts_(std::move(counts)), at_(at) {
      ++at_->second;
    }
    Place(Place&& other) noexcept = default;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (counts_ && --at_->second == 0) counts_->erase(at_);
    }

   private:
    std::shared_ptr<Counts> counts_;
    Counts::iterator at_;
  };

  // Nothing when the tenant has `most` already.
  [[nodiscard]] std::optional<Place> take(const std::string& tenant, std::size_t most) {
    if (count(tenant) >= most) return std::nullopt;
    return Place(counts_, counts_->try_emplace(tenant, 0).first);
  }

  [[nodiscard]] std::size_t count() const {
    std::size_t all = 0;
    for (const auto& [tenant, held] : *counts_)
      all += held;
    return all;
  }
  [[nodiscard]] std::size_t count(const std::string& tenant) const {
    const auto found = counts_->find(tenant);
    return found == counts_->end() ? 0 : found->second;
  }

 private:
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

// Sends the objects of a window in pieces of about one slice. If that is too much, the guest that
// receives them closes the reply, and no further piece is built.
io::Task<void> give_list(budget::Slices::Job job, Feed::Window window,
                         std::shared_ptr<Reply> reply) {
  if (!co_await job.turn(reply->stop_token()) || !reply->is_open()) co_return;
  const Feed& feed = *window.feed();
  if (!feed.is_ready()) {
    co_return reply->refuse(
        no_answer(Error(ErrorKind::Unavailable, "the watch of this resource has ended"),
                  /*is_write=*/false));
  }
  const std::vector<kube::ObjectPtr> candidates = window.candidates();
  ListText text(feed.scope().resource, feed.version(), window.view().detail());
  reply->head_json(200, Source::Cache);
  for (const kube::ObjectPtr& object : candidates) {
    if (job.is_over()) {
      if (text.size() > 0) reply->piece(text.take());
      if (!co_await job.turn(reply->stop_token()) || !reply->is_open()) co_return;
    }
    job.add(budget::kSliceObjectBytes + object->labels().size());
    if (!window.view().sees(*object)) continue;
    text.add(*object);
    job.add(object->text_size());
  }
  text.end();
  reply->piece(text.take());
  reply->end();
}

}  // namespace

struct Gateway::State : std::enable_shared_from_this<Gateway::State> {
  explicit State(Parts parts_in)
      : parts(std::move(parts_in)),
        upstream(std::make_shared<budget::FairSlots>(
            parts.loop,
            budget::FairSlots::Options{
                .slots = kUpstreamRequestsMax,
                .slots_per_tenant_max = kUpstreamRequestsPerTenantMax,
                .waiting_per_tenant_max = limits::kGatewayRequestsWaitingMax})),
        feed_memory(parts.feed_memory),
        tools(std::make_shared<Watching::Tools>(parts.client, upstream, feed_memory, parts.rates)),
        refused_watches(parts.metrics.counter(
            "hangar_gateway_refused_total",
            "Watches, objects and reviews refused because of a bound of the guest's namespace.",
            {{"what", "watch"}})),
        refused_objects(parts.metrics.counter(
            "hangar_gateway_refused_total",
            "Watches, objects and reviews refused because of a bound of the guest's namespace.",
            {{"what", "objects"}})),
        refused_reviews(parts.metrics.counter(
            "hangar_gateway_refused_total",
            "Watches, objects and reviews refused because of a bound of the guest's namespace.",
            {{"what", "review"}})),
        reads_behind(parts.metrics.counter(
            "hangar_gateway_reads_behind_total",
            "Reads that the cache could have answered, but for a write of the same guest that it "
            "had not seen.")),
        authorizer(parts.client),
        own_writes(parts.metrics),
        feeds(parts.loop, parts.cache, own_writes, parts.metrics, feed_memory, parts.rates),
        open_count(parts.metrics.gauge("hangar_gateway_watches",
                                       "Watches of guests that are answered from the cache.")) {
    parts.metrics.gauge_read(
        "hangar_gateway_feed_bytes", "Objects that watches of guests make the host hold.",
        [memory = feed_memory] { return static_cast<double>(memory->held_bytes()); });
  }

  static io::Task<void> answer_or_refuse(std::shared_ptr<State> self, WorkPtr work);
  static io::Task<void> answer(std::shared_ptr<State> self, WorkPtr work);
  static io::Task<void> watch(std::shared_ptr<State> self, WorkPtr work);
  static io::Task<void> read(std::shared_ptr<State> self, WorkPtr work);
  static io::Task<void> forward(std::shared_ptr<State> self, WorkPtr work);
  static io::Task<void> forward_stream(std::shared_ptr<State> self, WorkPtr work);
  [[nodiscard]] io::Task<void> pass_on_as_guest(Work& work);
  // The window of a watch; an error when the watch has to go upstream by itself.
  static io::Task<Result<Feed::Window>> open_feed(std::shared_ptr<State> self,
                                                  AuthorizedScope authorized,
                                                  kube::Identity identity,
                                                  std::stop_token reply_stop);
  static io::Task<void> recheck(std::shared_ptr<State> self);

  void look_after();
  void on_care();

  const Parts parts;
  const std::shared_ptr<budget::FairSlots> upstream;  // Requests at the API server.
  const std::shared_ptr<budget::Accounts> feed_memory;
  const std::shared_ptr<Watching::Tools> tools;
  OwnWatches own_watches;
  Counter& refused_watches;
  Counter& refused_objects;
  Counter& refused_reviews;
  Counter& reads_behind;
  Authorizer authorizer;
  OwnWrites own_writes;
  Feeds feeds;
  BoundsOf bounds_of;
  Gauge& open_count;
  std::vector<std::weak_ptr<Watching>> watchings;
  io::Loop::Timer care;
  bool is_cared_for = false;
  bool is_rechecking = false;
  std::stop_source stop;
};

namespace {

class Ticket final : public Exchange, public slots::InSlot {
 public:
  explicit Ticket(std::shared_ptr<Reply> reply) : reply_(std::move(reply)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() override { reply_->close(); }

  [[nodiscard]] std::optional<Continuation> continuation() const override {
    return reply_->continuation();
  }

 private:
  const std::shared_ptr<Reply> reply_;
};

}  // namespace

Gateway::Gateway(Parts parts) : state_(std::make_shared<State>(std::move(parts))) {}

Gateway::~Gateway() {
  state_->stop.request_stop();
  state_->care.cancel();
  state_->feeds.clear();
}

void Gateway::limit_tenants(BoundsOf bounds) {
  state_->bounds_of = bounds;
  state_->upstream->limit_tenants([bounds](const budget::Tenant& tenant) {
    return bounds(tenant.namespace_name()).upstream_requests;
  });
  state_->feeds.limit_tenants(std::move(bounds));
}

Gateway::Use Gateway::use_of(const std::string& namespace_name) const {
  // Counted by tenant_of().
  const budget::Tenant tenant = budget::Tenant::of_namespace(namespace_name);
  return {.feeds = state_->feeds.count(namespace_name),
          .feed_bytes = state_->feed_memory->held_bytes(tenant),
          .own_watches = state_->own_watches.count(namespace_name),
          .upstream_requests = state_->upstream->held_count(tenant),
          .upstream_requests_waiting = state_->upstream->waiting_count(tenant),
          .reviews = state_->authorizer.reviews_under_way(tenant),
          .reviews_waiting = state_->authorizer.reviews_waiting(tenant)};
}

std::vector<budget::Accounts::Holding> Gateway::feed_holdings() const {
  return state_->feed_memory->holdings();
}

std::vector<Attributes> Gateway::watches_of(std::string_view user) const {
  std::vector<Attributes> found;
  for (const std::weak_ptr<Watching>& weak : state_->watchings) {
    const std::shared_ptr<Watching> watching = weak.lock();
    if (watching && watching->is_open() && watching->identity().user == user)
      found.push_back(watching->attributes());
  }
  return found;
}

std::unique_ptr<Exchange> Gateway::begin(const kube::Identity& identity, Request request,
                                         Answer& answer) {
  auto reply =
      std::allocate_shared<Reply>(slots::Allocator<Reply>(), answer, state_->parts.metrics);
  state_->parts.loop.post(
      [state = state_,
       work = std::make_unique<Work>(
           Work{.identity = identity, .request = std::move(request), .reply = reply})]() mutable {
        if (!work->reply->is_open()) return;
        state->parts.loop.spawn(State::answer_or_refuse(state, std::move(work)));
      });
  return std::make_unique<Ticket>(std::move(reply));
}

io::Task<void> Gateway::State::answer_or_refuse(std::shared_ptr<State> self, WorkPtr work) {
  const io::Loop::Activity activity(self->parts.loop,
                                    fmt::format("request of {}: {} {}", work->identity.user,
                                                work->request.method, work->request.target),
                                    consumer_of(work->identity).tenant);
  const std::shared_ptr<Reply> reply = work->reply;
  const Result<> answered = co_await io::contained(answer(std::move(self), std::move(work)));
  if (answered || !reply->is_open()) co_return;
  if (reply->has_head()) co_return reply->end();
  reply->refuse({500, "InternalError", answered.error().message()});
}

io::Task<void> Gateway::State::answer(std::shared_ptr<State> self, WorkPtr work) {
  Reply& reply = *work->reply;
  if (!is_method(work->request.method)) {
    co_return reply.refuse({405, "MethodNotAllowed",
                            "the server does not allow this method on the requested resource"});
  }
  auto target = parse_target(work->request.method, work->request.target);
  if (!target) co_return reply.refuse(bad_request(target.error().message()));
  work->target = *std::move(target);
  reply.set_verb(work->target.verb);
  reply.understood(work->target, work->request);
  if (wants_upgrade(work->request.headers, work->target)) {
    co_return reply.refuse(bad_request("connections that are upgraded are not served here"));
  }
  work->accepts = read_accept(header_of(work->request.headers, "accept"), work->target.verb);
  switch (work->target.verb) {
    case Verb::Watch:
      co_return co_await watch(std::move(self), std::move(work));
    case Verb::Get:
    case Verb::List:
      co_return co_await read(std::move(self), std::move(work));
    default:
      co_return co_await forward(std::move(self), std::move(work));
  }
}

io::Task<void> Gateway::State::forward(std::shared_ptr<State> self, WorkPtr work) {
  // The host itself is not a tenant, and has no slots.
  if (work->identity.user.empty()) co_return co_await self->pass_on_as_guest(*work);
  if (is_stream(work->target)) co_return co_await forward_stream(std::move(self), std::move(work));
  const auto slot =
      co_await self->upstream->acquire(consumer_of(work->identity), {}, work->reply->stop_token());
  // Also on Cancelled: then the reply is closed, and no one receives this.
  if (!slot) co_return work->reply->refuse(too_many_requests());
  co_await self->pass_on_as_guest(*work);
}

io::Task<void> Gateway::State::forward_stream(std::shared_ptr<State> self, WorkPtr work) {
  const std::string tenant = tenant_of(work->identity);
  const TenantBounds bounds = self->bounds_of ? self->bounds_of(tenant) : TenantBounds();
  const std::size_t most =
      fair_bound(std::min(bounds.own_watches, kOwnWatchesPerTenantMax), self->own_watches.count());
  const auto place = self->own_watches.take(tenant, most);
  if (!place) {
    self->refused_watches.add();
    const std::string& set_by = bounds.own_watches_set_by;
    co_return work->reply->refuse(
        {429, "TooManyRequests",
         fmt::format("the namespace has {} watches that only the API server can answer, which is "
                     "the most{}; end some of them, or watch without field selectors",
                     most, set_by.empty() ? "" : fmt::format(" ({})", set_by))});
  }
  co_await self->pass_on_as_guest(*work);
}

io::Task<void> Gateway::State::pass_on_as_guest(Work& work) {
  const bool is_apart = parts.streams != nullptr && is_stream(work.target);
  const kube::Client& own = is_apart ? *parts.streams : parts.client;
  const kube::Client client = work.identity.user.empty() ? own : own.as(work.identity);
  Forward made = forward_of(work);
  // A stream may last for days, and nobody counts what its request takes meanwhile.
  work.request = {};
  if (made.is_write) {
    made.on_answer = [this, user = std::move(work.identity.user), target = std::move(work.target)](
                         int status, std::string_view body) {
      own_writes.wrote(user, target, status, body, io::Loop::now());
    };
  }
  return pass_on(client, std::move(made), std::move(work.reply));
}

io::Task<void> Gateway::State::watch(std::shared_ptr<State> self, WorkPtr work) {
  if (work->accepts.json_only.empty()) {
    co_return work->reply->refuse(
        {406, "NotAcceptable", "only the following media types are accepted: application/json"});
  }
  const std::uint64_t own_version =
      self->own_writes.oldest_for(work->identity.user, work->target, io::Loop::now());
  auto beginning = beginning_of(work->target.options);
  // The guest has written there since the version that it requests: start from the API server's
  // newest state, which includes that write.
  if (beginning && beginning->not_older_than.value_or(own_version) < own_version)
    beginning->not_older_than.reset();
  const std::optional<kube::Detail> detail = work->accepts.cached;
  auto scope = ReadScope::of(work->target, detail.value_or(kube::Detail::Whole));
  if (!beginning || !scope || !detail) {
    co_return co_await forward(std::move(self), std::move(work));
  }
  const std::shared_ptr<Reply> reply = work->reply;
  auto authorized =
      co_await self->authorizer.authorize(work->identity, *std::move(scope), reply->stop_token());
  if (!reply->is_open()) co_return;
  if (!authorized && authorized.error().kind() == ErrorKind::LimitExceeded) {
    self->refused_reviews.add();
    co_return reply->refuse(
        {429, "TooManyRequests",
         fmt::format(
             "{} reviews of the rights of the namespace's operators wait for the API server "
             "already; ask again later",
             kReviewsWaitingPerTenantMax)});
  }
  if (!authorized && authorized.error().kind() != ErrorKind::Denied) {
    co_return reply->refuse(no_answer(authorized.error(), /*is_write=*/false));
  }
  // The guest is not allowed, or the host may not create reviews: the server's answer tells the
  // guest so.
  if (!authorized || !*authorized) co_return co_await forward(std::move(self), std::move(work));

  auto window =
      co_await open_feed(self, **std::move(authorized), work->identity, reply->stop_token());
  if (!reply->is_open()) co_return;
  self->look_after();  // Feeds that failed are swept, too.
  if (!window && window.error().kind() == ErrorKind::Unavailable) {
    co_return reply->refuse(no_answer(window.error(), /*is_write=*/false));
  }
  if (!window && window.error().reason() == kTooLargeToWatch) {
    self->refused_objects.add();
    co_return reply->refuse({429, "TooManyRequests", window.error().message()});
  }
  // The server's refusal has a better reason than the host could give.
  if (!window) co_return co_await forward(std::move(self), std::move(work));

  const auto watching =
      std::allocate_shared<Watching>(slots::Allocator<Watching>(), self->tools, *std::move(window),
                                     reply, work->identity, self->open_count);
  self->watchings.push_back(watching);
  const io::Part part(self->parts.loop, "start of the watch");
  co_await Watching::begin(watching, *beginning);
}

io::Task<Result<Feed::Window>> Gateway::State::open_feed(std::shared_ptr<State> self,
                                                         AuthorizedScope authorized,
                                                         kube::Identity identity,
                                                         std::stop_token reply_stop) {
  const ReadScope& scope = authorized.scope();
  // With its version: guests choose it, and one that does not exist must not make the host forget
  // the group.
  auto found = co_await self->parts.discovery.find(
      kube::GroupVersionResource{.group = scope.resource().group,
                                 .version = scope.resource().version,
                                 .resource = scope.resource().plural},
      consumer_of(identity), reply_stop);
  if (!found) co_return std::unexpected(std::move(found).error());
  const kube::Resource resource = *std::move(found);
  if (!scope.fits(resource)) co_return fail(ErrorKind::NotFound, "the resource has no such path");
  auto feed =
      co_await self->feeds.open(resource, scope, tenant_of(identity), std::move(reply_stop));
  if (!feed && feed.error().kind() == ErrorKind::NotFound) {
    self->parts.discovery.forget(resource.group);
  }
  if (!feed) co_return std::unexpected(std::move(feed).error());
  auto window = (*feed)->open(std::move(authorized));
  if (!window) co_return fail(ErrorKind::NotFound, "the feed has other objects");
  co_return *std::move(window);
}

io::Task<void> Gateway::State::read(std::shared_ptr<State> self, WorkPtr work) {
  const ReadVersion version = require_own_writes(
      work->target,
      self->own_writes.oldest_for(work->identity.user, work->target, io::Loop::now()));
  const std::optional<kube::Detail> detail = work->accepts.cached;
  auto scope = ReadScope::of(work->target, detail.value_or(kube::Detail::Whole));
  const bool may_be_cached = version.asked && scope && detail;
  const auto feed = may_be_cached ? self->feeds.find(*scope) : nullptr;
  if (!feed || version.needed > feed->version()) {
    if (feed && *version.asked <= feed->version()) self->reads_behind.add();
    co_return co_await forward(std::move(self), std::move(work));
  }
  const std::shared_ptr<Reply> reply = work->reply;
  auto authorized =
      co_await self->authorizer.authorize(work->identity, *std::move(scope), reply->stop_token());
  if (!reply->is_open()) co_return;
  // Meanwhile the feed may have listed again, from a server that is behind the one before.
  if (!authorized || !*authorized || !feed->is_ready() || version.needed > feed->version()) {
    co_return co_await forward(std::move(self), std::move(work));
  }
  auto window = feed->open(**std::move(authorized));
  if (!window) co_return co_await forward(std::move(self), std::move(work));
  const io::Part part(self->parts.loop, "answer from the cache");
  budget::Slices::Job job =
      self->tools->slices.begin(budget::Tenant::of_namespace(tenant_of(work->identity)));
  if (work->target.verb == Verb::List) {
    co_return co_await give_list(std::move(job), *std::move(window), reply);
  }
  if (!co_await job.turn(reply->stop_token()) || !reply->is_open()) co_return;
  const std::vector<kube::ObjectPtr> found = window->candidates();
  if (found.empty() || !window->view().sees(*found.front())) {
    co_return reply->refuse(not_found(feed->scope().resource, window->view().name()));
  }
  job.add(found.front()->text_size());
  reply->head_json(200, Source::Cache);
  reply->piece(object_text(*found.front(), window->view().detail()));
  reply->end();
}

void Gateway::State::look_after() {
  if (std::exchange(is_cared_for, true)) return;
  care = parts.loop.after(parts.care_period, [weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->on_care();
  });
}

void Gateway::State::on_care() {
  is_cared_for = false;
  for (const auto& feed : feeds.all())
    feed->on_care();
  feeds.sweep();
  own_writes.sweep(io::Loop::now());
  std::erase_if(watchings, [](const auto& watching) { return watching.expired(); });
  // Reviews follow each other with a pause, so a pass over many watches can outlast the care
  // period. The next pass starts only when this one has finished.
  if (!std::exchange(is_rechecking, true)) parts.loop.spawn(recheck(shared_from_this()));
  if (!feeds.empty()) look_after();
}

io::Task<void> Gateway::State::recheck(std::shared_ptr<State> self) {
  const std::vector<std::weak_ptr<Watching>> present = self->watchings;
  for (const auto& weak : present) {
    if (self->stop.stop_requested()) break;
    kube::Identity identity;
    Attributes attributes;
    if (const auto watching = weak.lock(); watching && watching->is_open()) {
      identity = watching->identity();
      attributes = watching->attributes();
    }
    if (identity.user.empty()) continue;
    const auto allowed = co_await self->authorizer.allows(
        std::move(identity), std::move(attributes), self->stop.get_token());
    // While the API server does not answer, what was allowed stays allowed: no new data comes from
    // it either.
    if (allowed && !*allowed) {
      if (const auto watching = weak.lock()) watching->end();
    }
    (void)co_await self->parts.loop.sleep(limits::kGatewayRecheckPace, self->stop.get_token());
  }
  self->is_rechecking = false;
}

}  // namespace hangar::gateway
