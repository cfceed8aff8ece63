#include "operators/outbound.h"

#include "base/metrics.h"
#include "base/result.h"
#include "base/text.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "gateway/documents.h"
#include "gateway/gateway.h"
#include "gateway/request_target.h"
#include "http/address_policy.h"
#include "http/client.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/fence.h"
#include "operators/limits.h"
#include "tenants/outbound_server.h"
#include "tenants/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::operators {

namespace {

constexpr std::string_view kHttps = "https://";
constexpr std::string_view kOwnHeaders = "hangar-";

bool contains(const auto& list, std::string_view wanted) {
  return std::ranges::find(list, wanted) != list.end();
}

std::string_view authority_of(std::string_view uri) {
  uri.remove_prefix(kHttps.size());
  return uri.substr(0, uri.find_first_of("/?#"));
}

// The names that a guest has for the API server; see pod_view.
bool is_api_server(std::string_view host) {
  constexpr std::string_view kService = "kubernetes.default.svc";
  constexpr std::array<std::string_view, 4> kNames = {"hangar", "kubernetes", "kubernetes.default",
                                                      kService};
  return contains(kNames, host) || host.starts_with("kubernetes.default.svc.");
}

bool is_loopback(std::string_view host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || (is_address && host.starts_with("127."));
}

bool is_method(std::string_view method) {
  constexpr std::array<std::string_view, 7> kMethods = {"GET",   "HEAD",   "POST",   "PUT",
                                                        "PATCH", "DELETE", "OPTIONS"};
  return contains(kMethods, method);
}

// Whether a request with that method may be sent twice: by a former leader, and by the present one.
bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

enum class Ending : std::uint8_t { Answered, Refused, Limited, Failed };
constexpr std::array<std::string_view, 4> kEndings = {"answered", "refused", "limited", "failed"};

// Why the host answers in place of the server.
struct Obstacle {
  Ending ending = Ending::Failed;
  gateway::Refusal refusal;
};

Obstacle refused(std::string message) {
  return {.ending = Ending::Refused,
          .refusal = {.code = 403, .reason = "Forbidden", .message = std::move(message)}};
}

Obstacle not_allowed(const OutboundTarget& target, std::string_view why) {
  return refused(
      fmt::format("requests to {} are not allowed here: {}", target.server.to_string(), why));
}

Obstacle malformed(std::string message) {
  return {.ending = Ending::Refused, .refusal = gateway::bad_request(std::move(message))};
}

Obstacle too_many(std::string message) {
  return {.ending = Ending::Limited,
          .refusal = {.code = 429, .reason = "TooManyRequests", .message = std::move(message)}};
}

Obstacle held_back() {
  return {
      .refusal = {.code = 503,
                  .reason = "ServiceUnavailable",
                  .message = "nothing was sent: this host does not hold its Lease at the moment"}};
}

Obstacle failed(const OutboundTarget& target, const Error& error) {
  switch (error.kind()) {
    case ErrorKind::Denied:
      return not_allowed(target,
                         "its address is private, and the TenantPolicy (outbound.privateAddresses) "
                         "or the host (outbound-address-allow-list) does not allow that");
    case ErrorKind::InvalidInput:
      return malformed(error.message());
    case ErrorKind::LimitExceeded:
      return {.ending = Ending::Limited,
              .refusal = {.code = 502, .reason = "BadGateway", .message = error.message()}};
    default:
      return {.refusal = {.code = 503, .reason = "ServiceUnavailable", .message = error.message()}};
  }
}

// As the value of a header.
std::string in_one_line(std::string_view message) {
  std::string text(message.substr(0, limits::kOutboundErrorBytesMax));
  std::ranges::replace_if(
      text, [](char character) { return character < ' ' || character > '~'; }, '?');
  return text;
}

// One request, for as long as its guest waits.
struct Conversation {
  gateway::Answer* answer = nullptr;  // Null: nobody waits, or it has ended.
  std::stop_source stop;

  [[nodiscard]] bool is_open() const { return answer != nullptr; }

  void give(int status, http::Headers headers, std::string body) {
    if (is_open()) answer->on_head(status, std::move(headers));
    if (is_open() && !body.empty()) answer->on_piece(std::move(body));
    if (is_open()) std::exchange(answer, nullptr)->on_end();
  }

  void give(const Obstacle& obstacle) {
    const gateway::Refusal& refusal = obstacle.refusal;
    // Of what fails at the server, only the guest learns.
    const bool is_ours = refusal.code == 403 || refusal.code == 429;
    if (is_open() && is_ours) answer->on_bound(refusal.message);
    give(refusal.code,
         {{"content-type", "application/json"},
          {std::string(kErrorHeader), in_one_line(refusal.message)}},
         gateway::status_document(refusal));
  }
};

class Ticket final : public gateway::Exchange {
 public:
  explicit Ticket(std::shared_ptr<Conversation> conversation)
      : conversation_(std::move(conversation)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() override {
    conversation_->answer = nullptr;
    conversation_->stop.request_stop();
  }

 private:
  std::shared_ptr<Conversation> conversation_;
};

}  // namespace

bool is_outbound(std::string_view uri) {
  if (!uri.starts_with(kHttps)) return false;
  const std::string_view authority = authority_of(uri);
  std::string host = to_lower(authority.substr(0, authority.find(':')));
  if (host.ends_with('.')) host.pop_back();
  return !is_api_server(host) && !is_loopback(host) && !authority.starts_with("[::1]");
}

std::string OutboundTarget::url() const {
  return fmt::format("{}{}{}", kHttps, server.to_string(), path);
}

std::string OutboundTarget::shown() const {
  return fmt::format("{}{}", kHttps, server.to_string());
}

Result<OutboundTarget> parse_outbound(std::string_view uri) {
  const std::string_view authority = authority_of(uri);
  OutboundTarget target{.server = HANGAR_TRY(tenants::parse_outbound_server(authority)),
                        .path = std::string(uri.substr(kHttps.size() + authority.size()))};
  if (target.path.contains('#')) return fail(ErrorKind::InvalidInput, "the URL has a fragment");
  if (!target.path.starts_with('/')) target.path.insert(0, "/");
  return target;
}

http::Headers end_to_end(http::Headers headers) {
  // Ordered: the guest, or the server, may name tens of thousands beside as many headers.
  std::set<std::string, std::less<>> dropped = {
      "connection", "content-length", "expect",  "host",           "keep-alive",
      "te",         "trailer",        "upgrade", "http2-settings", "transfer-encoding"};
  for (const auto& [name, value] : headers) {
    if (!equals_ignoring_case(name, "connection")) continue;
    // Names of headers of this connection.
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of(", \t"), rest.size());
      if (end > 0) dropped.insert(to_lower(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::erase_if(headers, [&dropped](const auto& header) {
    const std::string name = to_lower(header.first);
    return name.starts_with("proxy-") || name.starts_with(kOwnHeaders) || dropped.contains(name);
  });
  return headers;
}

struct Outbound::State : std::enable_shared_from_this<Outbound::State> {
  // Of one namespace, while it sends requests and for a while after.
  struct Tenant {
    TokenBucket rate{{.per_second = limits::kOutboundPerSecond, .burst = limits::kOutboundBurst}};
    // By the addresses that its policies allow. Connections of one namespace are no other's.
    std::array<std::shared_ptr<const http::Transport>, 2> transports;
    std::map<std::string, std::size_t> pending;  // By consumer: waiting or being answered.
    std::uint64_t body_bytes = 0;                // Of those.
    Instant used_at;
  };

  explicit State(Parts parts_in)
      : parts(std::move(parts_in)),
        slots(parts.loop, {.slots = limits::kOutboundRequestsMax,
                           .slots_per_tenant_max = limits::kOutboundRequestsPerTenantMax}) {}

  // Counts a request as pending until destroyed.
  class Pending {
   public:
    Pending(std::shared_ptr<State> state, budget::Consumer consumer, std::uint64_t bytes)
        : state_(std::move(state)), consumer_(std::move(consumer)), bytes_(bytes) {
      Tenant& tenant = state_->tenant_of(consumer_);
      ++tenant.pending[consumer_.name];
      tenant.body_bytes += bytes_;
    }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    ~Pending() {
      Tenant& tenant = state_->tenant_of(consumer_);
      tenant.body_bytes -= bytes_;
      tenant.used_at = io::Loop::now();
      if (--tenant.pending[consumer_.name] == 0) tenant.pending.erase(consumer_.name);
    }

   private:
    const std::shared_ptr<State> state_;
    const budget::Consumer consumer_;
    const std::uint64_t bytes_;
  };

  [[nodiscard]] Tenant& tenant_of(const budget::Consumer& consumer) {
    return tenants[std::string(consumer.tenant.namespace_name())];
  }

  void sweep() {
    const Instant now = io::Loop::now();
    std::erase_if(tenants, [now](const auto& entry) {
      return entry.second.pending.empty() && now - entry.second.used_at > limits::kOutboundLinger;
    });
  }

  [[nodiscard]] const std::shared_ptr<const http::Transport>& transport(
      Tenant& tenant, tenants::Rules::Addresses addresses) const {
    std::shared_ptr<const http::Transport>& transport =
        tenant.transports[static_cast<std::size_t>(addresses)];
    if (!transport) {
      auto made = std::make_shared<http::Transport>();
      made->addresses = addresses == tenants::Rules::Addresses::Public
                            ? http::AddressPolicy::public_only()
                            : parts.addresses;
      transport = std::move(made);
    }
    return transport;
  }

  // Whether another request may wait.
  [[nodiscard]] std::optional<Obstacle> check_room(const budget::Consumer& consumer,
                                                   std::uint64_t bytes) {
    const Tenant& tenant = tenant_of(consumer);
    const auto own = tenant.pending.find(consumer.name);
    if (own != tenant.pending.end() && own->second >= limits::kOutboundPendingMax) {
      return too_many(fmt::format("more than {} requests to other servers wait for an answer",
                                  limits::kOutboundPendingMax));
    }
    if (tenant.body_bytes + bytes > limits::kOutboundBodyBytesMax) {
      return too_many(fmt::format(
          "requests to other servers that wait in this namespace have more than {} MiB of bodies",
          limits::kOutboundBodyBytesMax / limits::kMiB));
    }
    return std::nullopt;
  }

  void count(const budget::Consumer& consumer, Ending ending) {
    const std::string name(consumer.tenant.namespace_name());
    const bool has_place = counts.contains(name) || counts.size() < limits::kOutboundSeriesMax;
    ++counts[has_place ? name : "(others)"][static_cast<std::size_t>(ending)];
  }

  void collect(Metrics::Families& families) const {
    Metrics::Family& family = families.family(
        "hangar_operator_outbound_requests_total",
        "requests of operators to servers besides the API server, by namespace and result",
        Metrics::Type::Counter);
    for (const auto& [name, by_ending] : counts) {
      for (std::size_t index = 0; index < kEndings.size(); ++index) {
        if (by_ending[index] == 0) continue;
        family.samples.push_back(
            {.labels = {{"namespace", name}, {"result", std::string(kEndings[index])}},
             .value = static_cast<double>(by_ending[index]),
             .histogram = {}});
      }
    }
  }

  static io::Task<void> answer_or_refuse(std::shared_ptr<State> self, budget::Consumer consumer,
                                         gateway::Request request,
                                         std::shared_ptr<Conversation> conversation);
  static io::Task<std::optional<Obstacle>> answer(std::shared_ptr<State> self,
                                                  budget::Consumer consumer,
                                                  gateway::Request request,
                                                  std::shared_ptr<Conversation> conversation);

  const Parts parts;
  budget::FairSlots slots;
  std::map<std::string, Tenant> tenants;
  std::map<std::string, std::array<std::uint64_t, kEndings.size()>> counts;
};

io::Task<void> Outbound::State::answer_or_refuse(std::shared_ptr<State> self,
                                                 budget::Consumer consumer,
                                                 gateway::Request request,
                                                 std::shared_ptr<Conversation> conversation) {
  const io::Loop::Activity activity(
      self->parts.loop,
      fmt::format("outbound request of {}/{}", consumer.tenant.namespace_name(), consumer.name),
      consumer.tenant);
  Result<std::optional<Obstacle>> answered =
      co_await io::contained(answer(self, consumer, std::move(request), conversation));
  if (!answered) {
    answered = Obstacle{.refusal = {500, "InternalError", answered.error().message()}};
  }
  // A request that its guest has cancelled counts as failed.
  self->count(consumer, *answered ? (*answered)->ending : Ending::Answered);
  if (*answered) conversation->give(**answered);
}

io::Task<std::optional<Obstacle>> Outbound::State::answer(
    std::shared_ptr<State> self, budget::Consumer consumer, gateway::Request request,
    std::shared_ptr<Conversation> conversation) {
  if (!is_method(request.method)) {
    co_return Obstacle{.ending = Ending::Refused,
                       .refusal = {405, "MethodNotAllowed", "the method is not one to send"}};
  }
  const Result<OutboundTarget> target = parse_outbound(request.target);
  if (!target) co_return malformed(target.error().message());
  request.target = target->shown();
  conversation->answer->on_understood(gateway::RequestTarget(), request);

  const std::string namespace_name(consumer.tenant.namespace_name());
  Result<tenants::Rules::Addresses> addresses =
      self->parts.rules_of(namespace_name)->check_outbound(target->server);
  if (!addresses) co_return not_allowed(*target, addresses.error().message());

  self->sweep();
  if (auto obstacle = self->check_room(consumer, request.body.size())) co_return obstacle;
  const Pending pending(self, consumer, request.body.size());
  const std::stop_token stop = conversation->stop.get_token();
  const Duration wait = self->tenant_of(consumer).rate.reserve(io::Loop::now());
  if (wait > Duration::zero()) (void)co_await self->parts.loop.sleep(wait, stop);
  const auto slot = co_await self->slots.acquire(consumer, {}, stop);
  if (!slot) co_return failed(*target, slot.error());
  // The policies may have changed meanwhile.
  addresses = self->parts.rules_of(namespace_name)->check_outbound(target->server);
  if (!addresses) co_return not_allowed(*target, addresses.error().message());
  // While the fence is shut, another host may run the same guest, which sends the same request.
  const auto may_send = [fence = is_safe(request.method) ? nullptr : self->parts.fence] {
    return !fence || fence->is_open();
  };
  if (!may_send()) co_return held_back();

  http::Request sent{.method = std::move(request.method),
                     .url = target->url(),
                     .headers = end_to_end(std::move(request.headers)),
                     .body = std::move(request.body),
                     .transport = self->transport(self->tenant_of(consumer), *addresses),
                     .connect_timeout = self->parts.connect_timeout,
                     .total_timeout = limits::kOutboundTimeout,
                     .response_bytes_max = limits::kOutboundResponseBytesMax,
                     .on_progress =
                         [conversation](std::uint64_t bytes) {
                           if (conversation->is_open()) conversation->answer->on_progress(bytes);
                         },
                     .may_send = may_send,
                     .requester = namespace_name};
  Result<http::Response> response = co_await self->parts.client.send(std::move(sent), stop);
  if (!response && http::was_never_sent(response.error()) && !may_send()) co_return held_back();
  if (!response) co_return failed(*target, response.error());
  conversation->give(response->status, end_to_end(std::move(response->headers)),
                     std::move(response->body));
  co_return std::nullopt;
}

Outbound::Outbound(Parts parts)
    : state_(std::make_shared<State>(std::move(parts))),
      collection_(state_->parts.metrics.collect_from(
          [state = state_.get()](Metrics::Families& families) { state->collect(families); })) {}

Outbound::~Outbound() = default;

std::unique_ptr<gateway::Exchange> Outbound::begin(budget::Consumer consumer,
                                                   gateway::Request request,
                                                   gateway::Answer& answer) {
  auto conversation = std::make_shared<Conversation>();
  conversation->answer = &answer;
  state_->parts.loop.post([state = state_, consumer = std::move(consumer),
                           request = std::move(request), conversation]() mutable {
    if (!conversation->is_open()) return;
    io::Loop& loop = state->parts.loop;
    loop.spawn(State::answer_or_refuse(std::move(state), std::move(consumer), std::move(request),
                                       std::move(conversation)));
  });
  return std::make_unique<Ticket>(std::move(conversation));
}

}  // namespace hangar::operators
