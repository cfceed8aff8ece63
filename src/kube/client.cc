#include "kube/client.h"

#include "base/backoff.h"
#include "base/consumer.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/text.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/fence.h"
#include "kube/internal/answers.h"
#include "kube/internal/documents.h"
#include "kube/internal/list_page.h"
#include "kube/internal/percent.h"
#include "kube/limits.h"
#include "kube/line_splitter.h"
#include "kube/media_types.h"
#include "kube/object.h"
#include "kube/object_text.h"
#include "kube/urls.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A list that expires this often is too slow for its size: it is then read in one page.
constexpr int kListRestartsMax = 3;

// A page that is too large is requested again with its number of items divided by this.
constexpr std::uint32_t kSmallerPage = 8;

// Zero: not paged, so that the page has no bound of its own. A page of one item has room for any
// object, since nothing smaller could be requested.
std::uint64_t page_bytes_max(std::uint32_t page_size) {
  if (page_size == 0) return 0;
  return page_size > 1 ? limits::kListPageBytesMax
                       : limits::kObjectTextBytesMax + 64 * limits::kKiB;
}

// The back-off where the server does not say when to retry: 100 ms, doubled, five times. The caller
// handles longer outages.
constexpr ExponentialBackoff kBackoff{
    .min = milliseconds(100), .max = milliseconds(2400), .jitter = 0.5};
constexpr std::uint32_t kBackoffsMax = 5;

// client-go's bounds for rest_client_request_duration_seconds.
const std::vector<double>& duration_buckets() {
  static const std::vector<double> buckets = {0.005, 0.025, 0.1, 0.25, 0.5, 1.0,
                                              2.0,   4.0,   8.0, 15.0, 30., 60.};
  return buckets;
}

std::string_view name_of(Propagation propagation) {
  switch (propagation) {
    case Propagation::Default:
      return "";
    case Propagation::Orphan:
      return "Orphan";
    case Propagation::Background:
      return "Background";
    case Propagation::Foreground:
      return "Foreground";
  }
  return "";
}

std::string_view content_type(PatchType type) {
  switch (type) {
    case PatchType::Json:
      return "application/json-patch+json";
    case PatchType::Merge:
      return "application/merge-patch+json";
    case PatchType::Strategic:
      return "application/strategic-merge-patch+json";
  }
  return "";
}

std::string delete_body(const DeleteOptions& options) {
  json::Value body = json::Object{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  const auto set = [&body](json::Path path, std::string_view text) {
    if (!text.empty()) json::set_at(body, path, json::String(text));
  };
  set({"propagationPolicy"}, name_of(options.propagation));
  set({"preconditions", "uid"}, options.uid);
  set({"preconditions", "resourceVersion"}, options.resource_version);
  if (options.dry_run) json::set_at(body, {"dryRun"}, json::Array{"All"});
  return json::dump(body);
}

std::string host_of(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return std::string(url.substr(0, url.find('/')));
}

// As the API server's RequestInfo decides it: all methods but GET, HEAD and OPTIONS may write.
bool is_write(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

// What cannot be read is incomplete or not from an API server, and a retry may succeed. Nobody
// gave invalid input.
Error bad_answer(Error error) {
  if (error.kind() != ErrorKind::InvalidInput) return error;
  return {ErrorKind::Unavailable, "the server's answer: " + error.message()};
}

}  // namespace

Identity service_account(std::string_view namespace_, std::string_view name) {
  return {.user = fmt::format("{}{}:{}", kServiceAccountPrefix, namespace_, name),
          .groups = {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", namespace_),
                     "system:authenticated"}};
}

std::optional<Identity> service_account_of(std::string_view user) {
  if (!user.starts_with(kServiceAccountPrefix)) return std::nullopt;
  const std::string_view rest = user.substr(kServiceAccountPrefix.size());
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return service_account(rest.substr(0, colon), rest.substr(colon + 1));
}

namespace {

// One request, before the server's URL and credentials are added.
struct Call {
  std::string method = "GET";
  std::string path;
  std::string body = {};
  std::string content_type = "application/json";
  std::string accept = "application/json";
  std::string traceparent = {};
  Identity identity = {};
  std::function<void(std::uint64_t bytes)> on_progress = {};
  std::uint64_t response_bytes_max = 0;  // Of http::Request.
  RequestObserver* observer = nullptr;
  // Whoever gets the response reads its warnings. Guests, and the pods that they reach through the
  // API server, decide what these say: they could fill the host's log.
  bool is_passed_on = false;
};

}  // namespace

struct Client::Shared {
  io::Loop& loop;
  http::Client& http;
  std::shared_ptr<Credentials> credentials;
  Metrics& metrics;
  Log log;
  ClientOptions options;
  std::string host;
  std::unique_ptr<internal::PageReading> pages;
  std::minstd_rand random{static_cast<std::uint32_t>(random_number())};
  std::set<std::string> warnings_seen = {};
  std::shared_ptr<const http::Transport> shared_transport = {};
  std::shared_ptr<const http::Transport> own_transport = {};  // A copy of it.
  TokenBucket tokens{
      {.per_second = options.requests_per_second, .burst = static_cast<double>(options.burst)}};

  // At random, from 0 to 1.
  [[nodiscard]] double fraction() { return std::uniform_real_distribution<double>(0, 1)(random); }

  [[nodiscard]] io::Task<Result<>> wait_for_token(std::stop_token stop) {
    if (options.requests_per_second <= 0) co_return Result<>();
    const Duration delay = tokens.reserve(io::Loop::now());
    if (delay > Duration::zero()) co_return co_await loop.sleep(delay, std::move(stop));
    co_return Result<>();
  }

  // Called before a write waits for anything; the request itself checks the fence again when it
  // is sent.
  [[nodiscard]] Result<> pass_fence(const Call& call) const {
    if (!options.fence || !is_write(call.method) || options.fence->is_open()) return {};
    return fail(ErrorKind::Unavailable, "this host does not hold its Lease at the moment");
  }

  // Connections belong to a transport.
  [[nodiscard]] std::shared_ptr<const http::Transport> transport_of(
      const Credentials::Grant& grant) {
    if (!options.has_own_connections) return grant.transport;
    if (shared_transport != grant.transport) {
      shared_transport = grant.transport;
      own_transport = std::make_shared<const http::Transport>(*grant.transport);
    }
    return own_transport;
  }

  [[nodiscard]] Result<http::Request> request(const Call& call, const Credentials::Grant& grant) {
    http::Request out{.method = call.method,
                      .url = credentials->server() + call.path,
                      .headers = grant.headers,
                      .body = call.body,
                      .transport = transport_of(grant),
                      .total_timeout = limits::kRequestMax,
                      .response_bytes_max = call.response_bytes_max,
                      .on_progress = call.on_progress};
    if (options.fence && is_write(call.method)) {
      out.may_send = [fence = options.fence] { return fence->is_open(); };
    }
    out.headers.emplace_back("Accept", call.accept);
    out.headers.emplace_back("User-Agent", "hangar/" HANGAR_VERSION);
    if (!call.body.empty()) out.headers.emplace_back("Content-Type", call.content_type);
    if (!call.traceparent.empty()) out.headers.emplace_back("traceparent", call.traceparent);
    if (call.identity.user.empty()) {
      const http::Headers& own = credentials->impersonation();
      out.headers.insert(out.headers.end(), own.begin(), own.end());
      return out;
    }
    bool breaks_a_header = has_control_character(call.identity.user);
    out.headers.emplace_back("Impersonate-User", call.identity.user);
    // The API server adds the groups of service accounts itself, and naming them would need the
    // right to impersonate those groups as well.
    if (service_account_of(call.identity.user) != call.identity) {
      for (const std::string& group : call.identity.groups) {
        breaks_a_header |= has_control_character(group);
        out.headers.emplace_back("Impersonate-Group", group);
      }
    }
    for (const auto& [key, values] : call.identity.extra) {
      for (const std::string& value : values) {
        breaks_a_header |= has_control_character(value);
        out.headers.emplace_back("Impersonate-Extra-" + internal::percent_encode(key), value);
      }
    }
    if (breaks_a_header) {
      return fail(ErrorKind::InvalidInput, "the identity has a control character in its name");
    }
    return out;
  }

  void observe(const Call& call, int status, Duration took) {
    metrics
        .counter("rest_client_requests_total",
                 "Number of HTTP requests, partitioned by status code, method, and host.",
                 {{"code", status == 0 ? "<error>" : std::to_string(status)},
                  {"method", call.method},
                  {"host", host}})
        .add();
    metrics
        .histogram("rest_client_request_duration_seconds",
                   "Request latency in seconds. Broken down by verb, and host.", duration_buckets(),
                   {{"verb", call.method}, {"host", host}})
        .observe(in_seconds(took));
  }

  void log_warnings(const http::Headers& headers) {
    for (std::string& text : internal::warnings(headers)) {
      // Forgetting all is better than growing without bound, or than never logging again.
      if (warnings_seen.size() >= limits::kServerWarningsMax) warnings_seen.clear();
      const auto [it, is_new] = warnings_seen.insert(std::move(text));
      if (is_new) log.warning("the API server warns", {{"warning", *it}});
    }
  }

  // How long to wait before the request is repeated; std::nullopt when it is not.
  [[nodiscard]] std::optional<Duration> retry_delay(const Call& call,
                                                    const Result<http::Response>& response,
                                                    std::uint32_t retries) {
    const bool is_read = call.method == "GET";
    const auto backoff = [&]() -> std::optional<Duration> {
      if (retries >= kBackoffsMax) return std::nullopt;
      return kBackoff.delay(retries, fraction());
    };
    if (!response) {
      if (response.error().kind() != ErrorKind::Unavailable) return std::nullopt;
      return is_read || http::was_never_sent(response.error()) ? backoff() : std::nullopt;
    }
    const int status = response->status;
    if (status != 429 && status < 500) return std::nullopt;
    if (const auto after = internal::retry_after(*response)) {
      if (retries >= limits::kRequestRetriesMax) return std::nullopt;
      return with_jitter(std::max<Duration>(*after, kBackoff.min), kBackoff.jitter, fraction());
    }
    return is_read && status >= 502 && status <= 504 ? backoff() : std::nullopt;
  }

  // Returns any response, after the retries that are due.
  static io::Task<Result<http::Response>> send(std::shared_ptr<Shared> self, Call call,
                                               std::stop_token stop) {
    const Instant give_up_at = io::Loop::now() + limits::kRequestRetryTimeMax;
    bool renewed = false;
    std::uint32_t retries = 0;
    while (true) {
      HANGAR_CO_TRY(self->pass_fence(call));
      HANGAR_CO_TRY(co_await self->wait_for_token(stop));
      const auto grant = HANGAR_CO_TRY(co_await self->credentials->grant(stop));
      const Instant begin = io::Loop::now();
      auto response = co_await self->http.send(HANGAR_CO_TRY(self->request(call, grant)), stop);
      if (!response && response.error().kind() == ErrorKind::Cancelled) co_return response;
      self->observe(call, response ? response->status : 0, io::Loop::now() - begin);
      if (response && !call.is_passed_on) self->log_warnings(response->headers);

      if (response && response->status == 401 && !std::exchange(renewed, true)) {
        if (HANGAR_CO_TRY(co_await self->credentials->renew(grant.generation, stop))) continue;
      }
      const auto delay = self->retry_delay(call, response, retries);
      if (!delay || io::Loop::now() + *delay > give_up_at) co_return response;
      ++retries;
      HANGAR_CO_TRY(co_await self->loop.sleep(*delay, stop));
    }
  }

  // Sends a call that may have an observer.
  static io::Task<Result<http::Response>> observed(std::shared_ptr<Shared> self, Call call,
                                                   std::stop_token stop) {
    RequestObserver* const observer = call.observer;
    if (observer != nullptr) call.traceparent = observer->on_request(call.body.size());
    auto response = HANGAR_CO_TRY(co_await send(std::move(self), std::move(call), std::move(stop)));
    if (observer != nullptr) observer->on_response(response.status, response.body.size());
    co_return response;
  }

  // Returns the body of a success; anything else is an error. If `call` is an error, that
  // is returned.
  static io::Task<Result<std::string>> body(std::shared_ptr<Shared> self, Result<Call> call,
                                            std::stop_token stop) {
    if (!call) co_return std::unexpected(std::move(call).error());
    auto response =
        HANGAR_CO_TRY(co_await observed(std::move(self), *std::move(call), std::move(stop)));
    if (!is_success(response.status)) {
      co_return std::unexpected(error_from_status(response.status, response.body));
    }
    co_return std::move(response.body);
  }

  static ValueTask value(std::shared_ptr<Shared> self, RequestObserver* observer, Result<Call> call,
                         std::stop_token stop) {
    if (!call) co_return std::unexpected(std::move(call).error());
    call->observer = observer;
    Consumer whose = internal::reader_of(call->identity.user, internal::namespace_in(call->path));
    std::string text = HANGAR_CO_TRY(co_await body(self, std::move(call), std::move(stop)));
    io::Workers* const readers = self->options.readers;
    const bool is_long = text.size() > limits::kListSliceBytes;
    Result<json::Value> parsed =
        is_long && readers != nullptr
            ? co_await readers->run(std::move(whose),
                                    [text = std::move(text)] { return json::parse(text); })
            : json::parse(text);
    if (parsed && !parsed->is_object()) {
      parsed = fail(ErrorKind::InvalidInput, "it is not a JSON object");
    }
    if (!parsed) co_return std::unexpected(bad_answer(std::move(parsed).error()));
    co_return parsed;
  }

  static io::Task<Result<List>> list(std::shared_ptr<Shared> self, Identity identity,
                                     Resource resource, ListOptions options, std::stop_token stop) {
    const std::string path = HANGAR_CO_TRY(collection_path(resource, options.namespace_));
    List out;
    std::string continue_token;
    int restarts = 0;
    if (options.on_begin) options.on_begin();
    while (true) {
      Query query;
      query.add("labelSelector", options.label_selector)
          .add("fieldSelector", options.field_selector);
      if (options.page_size > 0) query.add("limit", std::to_string(options.page_size));
      if (continue_token.empty()) {
        query.add("resourceVersion", options.resource_version)
            .add("resourceVersionMatch", options.resource_version_match);
      } else {
        query.add("continue", continue_token);
      }
      auto text = co_await body(
          self,
          Call{.path = path + query.text(),
               .accept =
                   std::string(options.detail == Detail::Metadata ? kMetadataListType : kJsonType),
               .identity = identity,
               .response_bytes_max = page_bytes_max(options.page_size)},
          stop);
      if (!text && text.error().kind() == ErrorKind::LimitExceeded && options.page_size > 1) {
        options.page_size = std::max(options.page_size / kSmallerPage, 1U);
        continue;
      }
      if (!text) {
        // Half a list is useless: the pages that follow would be from another time.
        if (text.error().kind() != ErrorKind::Expired || continue_token.empty()) {
          co_return std::unexpected(std::move(text).error());
        }
        out = {};
        continue_token.clear();
        if (++restarts == kListRestartsMax) options.page_size = 0;
        if (options.on_begin) options.on_begin();
        continue;
      }
      const std::uint64_t page_bytes = text->size();
      std::optional<Error> refusal;  // Of `holds`.
      auto page = co_await self->pages->read(
          *std::move(text), resource.gvk(), internal::reader_of(identity.user, options.namespace_),
          [&](ObjectPtr item) -> Result<> {
            Result<ObjectPtr> held = options.holds ? options.holds(std::move(item)) : item;
            if (!held) refusal = held.error();
            if (refusal) return std::unexpected(*refusal);
            if (*held) out.items.push_back(*std::move(held));
            return {};
          },
          stop);
      if (refusal) co_return std::unexpected(*std::move(refusal));
      if (!page) {
        co_return std::unexpected(
            bad_answer(std::move(page).error()).in(fmt::format("list {}", resource.plural)));
      }
      options.page_size = internal::next_page_size(options.page_size, page->item_count, page_bytes);
      out.resource_version = std::move(page->resource_version);
      if (page->continue_token.empty()) co_return out;
      if (page->continue_token == continue_token) {
        co_return fail(ErrorKind::Unavailable, "the server returned the same continue token twice");
      }
      continue_token = std::move(page->continue_token);
    }
  }

  static io::Task<Result<http::Response>> raw(std::shared_ptr<Shared> self,
                                              RequestObserver* observer, Result<Call> call,
                                              std::stop_token stop) {
    if (!call) co_return std::unexpected(std::move(call).error());
    call->observer = observer;
    co_return co_await observed(std::move(self), *std::move(call), std::move(stop));
  }

  static io::Task<Result<http::Response>> raw_stream(std::shared_ptr<Shared> self,
                                                     Result<Call> call,
                                                     http::Client::StreamHandler handler,
                                                     std::stop_token stop) {
    if (!call) co_return std::unexpected(std::move(call).error());
    for (bool is_last = false;; is_last = true) {
      HANGAR_CO_TRY(self->pass_fence(*call));
      HANGAR_CO_TRY(co_await self->wait_for_token(stop));
      const auto grant = HANGAR_CO_TRY(co_await self->credentials->grant(stop));
      auto request = HANGAR_CO_TRY(self->request(*call, grant));
      request.total_timeout = milliseconds::zero();

      const Instant begin = io::Loop::now();
      bool is_refused = false;  // By a 401 that a renewal may cure: the handler does not see it.
      http::Client::StreamHandler guarded{
          .on_headers = [&](int status, const http::Headers& headers) -> Result<> {
            self->observe(*call, status, io::Loop::now() - begin);
            is_refused = status == 401 && !is_last;
            return is_refused ? Result<>() : handler.on_headers(status, headers);
          },
          .on_bytes = [&](std::string_view bytes) -> Result<> {
            return is_refused ? Result<>() : handler.on_bytes(bytes);
          }};
      auto ended = co_await self->http.stream(std::move(request), std::move(guarded), stop);
      if (!ended || !is_refused) co_return ended;
      // Whether or not the renewal helped, the second response counts.
      (void)HANGAR_CO_TRY(co_await self->credentials->renew(grant.generation, stop));
    }
  }

  static io::Task<Result<>> watch(std::shared_ptr<Shared> self, Call call,
                                  std::function<Result<>(std::string_view line)> on_line,
                                  std::stop_token stop) {
    bool renewed = false;
    while (true) {
      HANGAR_CO_TRY(co_await self->wait_for_token(stop));
      const auto grant = HANGAR_CO_TRY(co_await self->credentials->grant(stop));
      auto request = HANGAR_CO_TRY(self->request(call, grant));
      request.total_timeout = milliseconds::zero();
      request.idle_timeout = limits::kWatchIdleMax;

      const Instant begin = io::Loop::now();
      LineSplitter lines(limits::kObjectTextBytesMax);
      int status = 0;
      std::string refusal;
      http::Client::StreamHandler handler{
          .on_headers = [&](int answered, const http::Headers& headers) -> Result<> {
            status = answered;
            self->observe(call, status, io::Loop::now() - begin);
            self->log_warnings(headers);
            return {};
          },
          .on_bytes = [&](std::string_view bytes) -> Result<> {
            if (is_success(status)) return lines.feed(bytes, on_line);
            const std::size_t room = limits::kServerMessageBytesMax * 2 - refusal.size();
            refusal += bytes.substr(0, room);
            return {};
          }};
      auto ended = co_await self->http.stream(std::move(request), std::move(handler), stop);
      if (!ended) {
        if (status == 0 && ended.error().kind() != ErrorKind::Cancelled) {
          self->observe(call, 0, io::Loop::now() - begin);
        }
        co_return std::unexpected(std::move(ended).error());
      }
      if (is_success(status)) co_return Result<>();
      if (status == 401 && !std::exchange(renewed, true)) {
        if (HANGAR_CO_TRY(co_await self->credentials->renew(grant.generation, stop))) continue;
      }
      co_return std::unexpected(error_from_status(status, refusal));
    }
  }
};

Client::Client(io::Loop& loop, http::Client& http, std::shared_ptr<Credentials> credentials,
               Metrics& metrics, Log log, ClientOptions options)
    : shared_(std::make_shared<Shared>(
          Shared{.loop = loop,
                 .http = http,
                 .credentials = credentials,
                 .metrics = metrics,
                 .log = std::move(log),
                 .options = options,
                 .host = host_of(credentials->server()),
                 .pages = std::make_unique<internal::PageReading>(loop, options.readers)})) {}

Client::Client(std::shared_ptr<Shared> shared, Identity identity, RequestObserver* observer)
    : shared_(std::move(shared)), identity_(std::move(identity)), observer_(observer) {}

Client::~Client() = default;

Client Client::as(Identity identity) const {
  return Client(shared_, std::move(identity), observer_);
}

Client Client::observed_by(RequestObserver* observer) const {
  return Client(shared_, identity_, observer);
}

io::Task<Result<std::string>> Client::server_ca(std::stop_token stop) const {
  const std::shared_ptr<Credentials> credentials = shared_->credentials;
  const Credentials::Grant grant = HANGAR_CO_TRY(co_await credentials->grant(std::move(stop)));
  co_return grant.transport->ca_pem;
}

io::Loop& Client::loop() const {
  return shared_->loop;
}

io::Workers* Client::readers() const {
  return shared_->options.readers;
}

const std::string& Client::default_namespace() const {
  return shared_->credentials->namespace_();
}

namespace {

Query write_query(std::string_view field_manager, bool dry_run, std::string_view field_validation) {
  Query query;
  query.add("fieldManager", field_manager)
      .add("dryRun", dry_run ? "All" : "")
      .add("fieldValidation", field_validation);
  return query;
}

Result<Call> get_call(const Resource& resource, const ObjectKey& key, std::string_view subresource,
                      const Identity& identity) {
  return Call{.path = HANGAR_TRY(object_path(resource, key, subresource)), .identity = identity};
}

Result<Call> create_call(const Resource& resource, const json::Value& object,
                         const WriteOptions& options, const Identity& identity) {
  const ObjectKey key = key_of(object);
  std::string path;
  if (!options.subresource.empty()) {
    path = HANGAR_TRY(object_path(resource, key, options.subresource));
  } else if (resource.namespaced && key.namespace_.empty()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} \"{}\" needs a namespace", resource.plural, key.name));
  } else {
    path = HANGAR_TRY(collection_path(resource, key.namespace_));
  }
  path += write_query(options.field_manager, options.dry_run, options.field_validation).text();
  return Call{
      .method = "POST", .path = std::move(path), .body = json::dump(object), .identity = identity};
}

Result<Call> write_call(std::string method, const Resource& resource, const ObjectKey& key,
                        const json::Value& body, std::string_view type, const WriteOptions& options,
                        const Identity& identity) {
  std::string path = HANGAR_TRY(object_path(resource, key, options.subresource));
  path += write_query(options.field_manager, options.dry_run, options.field_validation).text();
  return Call{.method = std::move(method),
              .path = std::move(path),
              .body = json::dump(body),
              .content_type = std::string(type),
              .accept = std::string(options.detail == Detail::Metadata ? kMetadataType : kJsonType),
              .identity = identity};
}

Result<Call> apply_call(const Resource& resource, const json::Value& object,
                        const ApplyOptions& options, const Identity& identity) {
  std::string path = HANGAR_TRY(object_path(resource, key_of(object), options.subresource));
  path += write_query(options.field_manager, options.dry_run, options.field_validation)
              .add("force", options.force ? "true" : "")
              .text();
  // The body is JSON, which is YAML.
  return Call{.method = "PATCH",
              .path = std::move(path),
              .body = json::dump(object),
              .content_type = "application/apply-patch+yaml",
              .identity = identity};
}

Result<Call> delete_call(Result<std::string> path, const DeleteOptions& options,
                         const Identity& identity) {
  return Call{.method = "DELETE",
              .path = HANGAR_TRY(std::move(path)),
              .body = delete_body(options),
              .identity = identity};
}

Result<Call> path_call(std::string method, std::string path, const Identity& identity) {
  if (!path.starts_with('/') || has_control_character(path) || path.contains(' ')) {
    return fail(ErrorKind::InvalidInput, "the path must begin with '/' and have no spaces");
  }
  return Call{.method = std::move(method), .path = std::move(path), .identity = identity};
}

}  // namespace

Client::ValueTask Client::get(Resource resource, ObjectKey key, std::stop_token stop,
                              std::string subresource) const {
  return Shared::value(shared_, observer_, get_call(resource, key, subresource, identity_),
                       std::move(stop));
}

io::Task<Result<List>> Client::list(Resource resource, ListOptions options,
                                    std::stop_token stop) const {
  return Shared::list(shared_, identity_, std::move(resource), std::move(options), std::move(stop));
}

Client::ValueTask Client::create(Resource resource, json::Value object, WriteOptions options,
                                 std::stop_token stop) const {
  return Shared::value(shared_, observer_, create_call(resource, object, options, identity_),
                       std::move(stop));
}

Client::ValueTask Client::update(Resource resource, json::Value object, WriteOptions options,
                                 std::stop_token stop) const {
  return Shared::value(
      shared_, observer_,
      write_call("PUT", resource, key_of(object), object, "application/json", options, identity_),
      std::move(stop));
}

Client::ValueTask Client::patch(Resource resource, ObjectKey key, PatchType type, json::Value patch,
                                WriteOptions options, std::stop_token stop) const {
  return Shared::value(
      shared_, observer_,
      write_call("PATCH", resource, key, patch, content_type(type), options, identity_),
      std::move(stop));
}

Client::ValueTask Client::apply(Resource resource, json::Value object, ApplyOptions options,
                                std::stop_token stop) const {
  return Shared::value(shared_, observer_, apply_call(resource, object, options, identity_),
                       std::move(stop));
}

Client::ValueTask Client::remove(Resource resource, ObjectKey key, DeleteOptions options,
                                 std::stop_token stop) const {
  return Shared::value(shared_, observer_,
                       delete_call(object_path(resource, key, {}), options, identity_),
                       std::move(stop));
}

Client::ValueTask Client::get_path(std::string path, std::stop_token stop,
                                   std::string accept) const {
  auto call = path_call("GET", std::move(path), identity_);
  if (call && !accept.empty()) call->accept = std::move(accept);
  return Shared::value(shared_, observer_, std::move(call), std::move(stop));
}

Client::ValueTask Client::post_path(std::string path, json::Value body,
                                    std::stop_token stop) const {
  auto call = path_call("POST", std::move(path), identity_);
  if (call) call->body = json::dump(body);
  return Shared::value(shared_, observer_, std::move(call), std::move(stop));
}

namespace {

Result<Call> raw_call(RawRequest request, const Identity& identity) {
  Call call = HANGAR_TRY(path_call(std::move(request.method), std::move(request.target), identity));
  call.body = std::move(request.body);
  call.accept = std::move(request.accept);
  call.content_type = std::move(request.content_type);
  call.traceparent = std::move(request.traceparent);
  call.on_progress = std::move(request.on_progress);
  call.is_passed_on = true;
  return call;
}

}  // namespace

io::Task<Result<http::Response>> Client::send(RawRequest request, std::stop_token stop) const {
  return Shared::raw(shared_, observer_, raw_call(std::move(request), identity_), std::move(stop));
}

io::Task<Result<http::Response>> Client::stream(RawRequest request,
                                                http::Client::StreamHandler handler,
                                                std::stop_token stop) const {
  return Shared::raw_stream(shared_, raw_call(std::move(request), identity_), std::move(handler),
                            std::move(stop));
}

io::Task<Result<>> Client::watch(Resource resource, std::string namespace_, std::string query,
                                 std::function<Result<>(std::string_view line)> on_line,
                                 std::stop_token stop, Detail detail) const {
  // Not a coroutine itself: that would need this client to outlive it; kStart needs `shared_` only.
  static constexpr auto kStart = [](std::shared_ptr<Shared> shared, Result<std::string> path,
                                    std::string rest, Detail what, Identity identity,
                                    std::function<Result<>(std::string_view)> each,
                                    std::stop_token token) -> io::Task<Result<>> {
    std::string whole = HANGAR_CO_TRY(std::move(path)) + "?watch=true";
    if (!rest.empty()) whole += "&" + rest;
    co_return co_await Shared::watch(
        std::move(shared),
        Call{.path = std::move(whole),
             .accept = std::string(what == Detail::Metadata ? kMetadataType : kJsonType),
             .identity = std::move(identity)},
        std::move(each), std::move(token));
  };
  return kStart(shared_, collection_path(resource, namespace_), std::move(query), detail, identity_,
                std::move(on_line), std::move(stop));
}

}  // namespace hangar::kube
