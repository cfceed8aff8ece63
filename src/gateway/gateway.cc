#include "gateway/gateway.h"

#include "base/in_slot.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/slots.h"
#include "base/time.h"
#include "gateway/authorizer.h"
#include "gateway/documents.h"
#include "gateway/feed.h"
#include "gateway/feeds.h"
#include "gateway/reply.h"
#include "gateway/request_target.h"
#include "gateway/selector.h"
#include "gateway/upstream.h"
#include "gateway/view.h"
#include "gateway/watching.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::gateway {

namespace {

using Source = Reply::Source;

// A guest that asks for more than this means "for ever".
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

// One request while it is being understood.
struct Work {
  kube::Identity identity;
  Request request;
  RequestTarget target;
  Accepts accepts;
  std::shared_ptr<Reply> reply;
};
// Handed on: a copy in the frame of every task on the way would be most of what a request takes.
using WorkPtr = std::unique_ptr<Work>;

Forward forward_of(Work& work) {
  const std::string& method = work.request.method;
  Forward forward{.request = {.method = method,
                              .target = work.target.to_string(),
                              .body = std::move(work.request.body)},
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
  } else if (work.target.subresource == "log" || work.target.subresource == "proxy") {
    forward.body = Forward::Body::Pieces;
  }
  return forward;
}

// As the API server's own RequestInfo has them.
Attributes attributes_of(const RequestTarget& target, const FieldSelector& fields) {
  return {.verb = std::string(name_of(target.verb)),
          .group = target.group,
          .version = target.version,
          .resource = target.plural,
          .namespace_ = target.namespace_,
          .name = target.name.empty() ? fields.required_name().value_or("") : target.name,
          .label_selector = target.options.label_selector,
          .field_selector = target.options.field_selector};
}

// What a watch asks for; nothing when only the API server knows what to make of it.
struct WatchPlan {
  std::string remote_fields;
  Attributes attributes;
  Watching::Beginning beginning;
  Watching::Options options;
};
std::optional<WatchPlan> plan_watch(const RequestTarget& target) {
  const ReadOptions& asked = target.options;
  if (!target.name.empty() || !target.subresource.empty() || asked.is_malformed ||
      !asked.continue_token.empty()) {
    return std::nullopt;
  }
  auto labels = LabelSelector::parse(asked.label_selector);
  auto fields = FieldSelector::parse(asked.field_selector);
  if (!labels || !fields) return std::nullopt;

  WatchPlan plan{.remote_fields = fields->remote_terms(),
                 .attributes = attributes_of(target, *fields)};
  Watching::Beginning& beginning = plan.beginning;
  const bool is_any = asked.resource_version.empty() || asked.resource_version == "0";
  const auto version = parse_version(asked.resource_version);
  if (!is_any && !version) return std::nullopt;
  if (asked.send_initial_events) {
    // Without them, but from the newest state: rare, and the server's own matter.
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
  plan.options = {.view = View(target.namespace_, *std::move(labels), *std::move(fields)),
                  .is_of_namespace = !target.namespace_.empty(),
                  .wants_bookmarks = asked.allow_watch_bookmarks};
  return plan;
}

}  // namespace

struct Gateway::State : std::enable_shared_from_this<Gateway::State> {
  explicit State(Parts parts_in)
      : parts(std::move(parts_in)),
        authorizer(parts.client),
        feeds(parts.loop, parts.cache, parts.metrics),
        open_count(parts.metrics.gauge("hangar_gateway_watches",
                                       "Watches of guests that are answered from the cache.")) {}

  static io::Task<void> answer(std::shared_ptr<State> self, WorkPtr work);
  static io::Task<void> watch(std::shared_ptr<State> self, WorkPtr work);
  static io::Task<void> read(std::shared_ptr<State> self, WorkPtr work);
  static io::Task<void> forward(std::shared_ptr<State> self, WorkPtr work);
  // The feed for a watch; null when it must be a watch of its own.
  static io::Task<Result<std::shared_ptr<Feed>>> feed_for(std::shared_ptr<State> self,
                                                          RequestTarget target, std::string fields,
                                                          std::stop_token reply_stop);
  static io::Task<void> recheck(std::shared_ptr<State> self);

  void look_after();
  void on_care();

  const Parts parts;
  Authorizer authorizer;
  Feeds feeds;
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

std::unique_ptr<Exchange> Gateway::begin(const kube::Identity& identity, Request request,
                                         Answer& answer) {
  auto reply =
      std::allocate_shared<Reply>(slots::Allocator<Reply>(), answer, state_->parts.metrics);
  state_->parts.loop.post(
      [state = state_,
       work = std::make_unique<Work>(
           Work{.identity = identity, .request = std::move(request), .reply = reply})]() mutable {
        if (!work->reply->is_open()) return;
        state->parts.loop.spawn(State::answer(state, std::move(work)));
      });
  return std::make_unique<Ticket>(std::move(reply));
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
  if (wants_upgrade(work->request.headers, work->target)) {
    co_return reply.refuse(bad_request("connections that are upgraded are not served here"));
  }
  work->accepts = read_accept(header_of(work->request.headers, "accept"));
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
  kube::Client client = work->identity.user.empty()
                            ? self->parts.client
                            : self->parts.client.as(std::move(work->identity));
  Forward made = forward_of(*work);
  co_await pass_on(std::move(client), std::move(made), std::move(work->reply));
}

io::Task<void> Gateway::State::watch(std::shared_ptr<State> self, WorkPtr work) {
  if (work->accepts.json_only.empty()) {
    co_return work->reply->refuse(
        {406, "NotAcceptable", "only the following media types are accepted: application/json"});
  }
  auto plan = plan_watch(work->target);
  if (!plan || work->accepts.transformed) {
    co_return co_await forward(std::move(self), std::move(work));
  }
  const std::shared_ptr<Reply> reply = work->reply;
  const auto allowed =
      co_await self->authorizer.allows(work->identity, plan->attributes, reply->stop_token());
  if (!reply->is_open()) co_return;
  if (!allowed && allowed.error().kind() != ErrorKind::Denied) {
    co_return reply->refuse(no_answer(allowed.error(), /*is_write=*/false));
  }
  // A no, and what we may not ask, is for the server to say to the guest itself.
  if (!allowed || !*allowed) co_return co_await forward(std::move(self), std::move(work));

  const auto feed = co_await feed_for(self, work->target, plan->remote_fields, reply->stop_token());
  if (!reply->is_open()) co_return;
  if (!feed && feed.error().kind() == ErrorKind::Unavailable) {
    co_return reply->refuse(no_answer(feed.error(), /*is_write=*/false));
  }
  // The same from the server: its reasons are better than ours.
  if (!feed) co_return co_await forward(std::move(self), std::move(work));

  const auto watching =
      std::allocate_shared<Watching>(slots::Allocator<Watching>(), self->parts.client, *feed, reply,
                                     work->identity, std::move(plan->options), self->open_count);
  self->watchings.push_back(watching);
  self->look_after();
  co_await Watching::begin(watching, plan->beginning);
}

io::Task<Result<std::shared_ptr<Feed>>> Gateway::State::feed_for(std::shared_ptr<State> self,
                                                                 RequestTarget target,
                                                                 std::string fields,
                                                                 std::stop_token reply_stop) {
  auto found = co_await self->parts.discovery.find_plural(target.group, target.plural, reply_stop);
  if (!found) co_return std::unexpected(std::move(found).error());
  kube::Resource resource = *std::move(found);
  if (!resource.namespaced && !target.namespace_.empty()) {
    co_return fail(ErrorKind::NotFound, "the resource has no namespaces");
  }
  resource.version = std::move(target.version);
  auto feed = co_await self->feeds.open(std::move(resource), std::move(target.namespace_),
                                        std::move(fields), std::move(reply_stop));
  if (!feed && feed.error().kind() == ErrorKind::NotFound) {
    self->parts.discovery.forget(target.group);
  }
  co_return feed;
}

io::Task<void> Gateway::State::read(std::shared_ptr<State> self, WorkPtr work) {
  const RequestTarget& target = work->target;
  const ReadOptions& asked = target.options;
  // Any state will do, or any that is not older; everything else is the server's to answer.
  const auto version = parse_version(asked.resource_version);
  const bool is_any = asked.resource_version == "0";
  const bool may_be_cached =
      version && work->accepts.json && !work->accepts.transformed && !asked.is_malformed &&
      target.subresource.empty() && asked.continue_token.empty() &&
      (asked.resource_version_match.empty() || asked.resource_version_match == "NotOlderThan") &&
      (is_any || asked.limit == 0);
  const auto labels = LabelSelector::parse(asked.label_selector);
  const auto fields = FieldSelector::parse(asked.field_selector);
  if (!may_be_cached || !labels || !fields) {
    co_return co_await forward(std::move(self), std::move(work));
  }
  const bool is_get = target.verb == Verb::Get;
  // The namespace of a namespace is itself, but only as far as authorisation goes.
  const bool is_namespace = target.group.empty() && target.plural == "namespaces";
  const std::string namespace_ = is_namespace ? std::string() : target.namespace_;
  const auto feed = self->feeds.find(target.group, target.version, target.plural, namespace_,
                                     is_get ? std::string() : fields->remote_terms());
  const bool fits = feed && (feed->scope().resource.namespaced ? !is_get || !namespace_.empty()
                                                               : namespace_.empty());
  if (!fits || *version > feed->history().version()) {
    co_return co_await forward(std::move(self), std::move(work));
  }
  const std::shared_ptr<Reply> reply = work->reply;
  const auto allowed = co_await self->authorizer.allows(
      work->identity, attributes_of(target, *fields), reply->stop_token());
  if (!reply->is_open()) co_return;
  if (!allowed || !*allowed || !feed->is_ready()) {
    co_return co_await forward(std::move(self), std::move(work));
  }
  const kube::Resource& resource = feed->scope().resource;
  if (is_get) {
    const kube::ObjectPtr object = feed->get({namespace_, target.name});
    if (!object) co_return reply->refuse(not_found(resource, target.name));
    reply->head_json(200, Source::Cache);
    reply->piece(std::string(object->bytes()));
  } else {
    const std::vector<kube::ObjectPtr> items = feed->objects(View(namespace_, *labels, *fields));
    reply->head_json(200, Source::Cache);
    reply->piece(list_document(resource, feed->history().version(), items));
  }
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
    feed->tell_progress();
  feeds.sweep();
  std::erase_if(watchings, [](const auto& watching) { return watching.expired(); });
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
    // While nobody can say, what was allowed stays allowed: nothing new is coming either.
    if (allowed && !*allowed) {
      if (const auto watching = weak.lock()) watching->end();
    }
    (void)co_await self->parts.loop.sleep(limits::kGatewayRecheckPace, self->stop.get_token());
  }
  self->is_rechecking = false;
}

}  // namespace hangar::gateway
