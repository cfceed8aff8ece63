#include "simulation/network.h"

#include "base/result.h"
#include "base/time.h"
#include "http/client.h"
#include "http/simulated_network.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/virtual_time.h"
#include "json/value.h"
#include "simulation/api_server.h"
#include "simulation/statuses.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::simulation {

namespace {

using std::chrono::seconds;

// As the real server: bookmarks about once a minute.
constexpr seconds kBookmarkPeriod{55};
// How long a lookup that blocks waits for a silent name server, as glibc does by default.
constexpr seconds kBlockingLookup{10};

}  // namespace

struct Network::Exchange {
  Exchange(io::Loop& loop_in, http::Request request_in,
           std::optional<http::Client::StreamHandler> handler_in)
      : loop(loop_in), request(std::move(request_in)), handler(std::move(handler_in)), done(loop) {}

  io::Loop& loop;
  http::Request request;
  std::optional<http::Client::StreamHandler> handler;
  io::OneShot<Result<http::Response>> done;
  std::string host;
  ApiRequest api;
  Instant began;
  bool is_over = false;
  std::optional<Error> failure;  // The stop of its caller.
  io::Loop::Timer total;
  io::Loop::Timer idle;
  Instant last_arrival;
  std::list<std::shared_ptr<Exchange>>::iterator place;
  // A watch, once the server has accepted it.
  std::optional<ApiServer::Watch> watch;
  bool is_delivery_due = false;
  bool is_silent = false;
  Instant next_bookmark;
  Instant ends_at = Instant::max();
};

Network::Network(io::VirtualTime& time, ApiServer& server, Lookups lookups)
    : time_(time), server_(server), lookups_(lookups), world_(time) {
  server_.set_on_change([this](const ApiServer::Change&) {
    for (const ExchangePtr& exchange : open_) {
      if (exchange->watch) deliver_soon(exchange);
    }
  });
  care();
}

Network::~Network() {
  server_.set_on_change(nullptr);
}

Network::Open Network::oldest_request(
    const std::function<bool(const std::string& host)>& of) const {
  Open open;
  for (const ExchangePtr& exchange : open_) {
    if (!of(exchange->host)) continue;
    ++open.count;
    const Duration age = time_.world() - exchange->began;
    if (exchange->handler || age <= open.age) continue;
    open.age = age;
    open.target = exchange->api.method + " " + exchange->api.target;
  }
  return open;
}

io::Task<Result<http::Response>> Network::carry(io::Loop& loop, http::Request request,
                                                std::optional<http::Client::StreamHandler> handler,
                                                std::stop_token stop) {
  if (stop.stop_requested()) co_return hangar::fail(ErrorKind::Cancelled, "stopping");
  const auto exchange = std::make_shared<Exchange>(loop, std::move(request), std::move(handler));
  const http::Request& sent = exchange->request;
  exchange->began = time_.world();
  exchange->last_arrival = io::Loop::now();
  const std::size_t path = sent.url.find('/', sent.url.find("://") + 3);
  exchange->api = {
      .method = sent.method,
      .target = path == std::string::npos ? "/" : sent.url.substr(path),
      .content_type = std::string(http::find_header(sent.headers, "Content-Type").value_or("")),
      .accept = std::string(http::find_header(sent.headers, "Accept").value_or("")),
      .body = sent.body};
  const std::string_view bearer = http::find_header(sent.headers, "Authorization").value_or("");
  exchange->host = bearer.substr(bearer.find(' ') + 1);
  exchange->api.caller = {.user = exchange->host, .groups = {"system:masters"}};
  if (const auto user = http::find_header(sent.headers, "Impersonate-User")) {
    Caller who{.user = std::string(*user)};
    for (const auto& [name, value] : sent.headers) {
      if (name == "Impersonate-Group") who.groups.push_back(value);
    }
    exchange->api.impersonated = std::move(who);
  }
  ++statistics_.requests;
  open_.push_back(exchange);
  exchange->place = std::prev(open_.end());
  if (sent.total_timeout.count() > 0) {
    exchange->total =
        loop.after(sent.total_timeout, [this, exchange] { fail(exchange, "timed out"); });
  }
  loop.post([this, exchange] { look_up(exchange); });
  const std::stop_callback on_stop(
      stop, [this, exchange] { end(exchange, hangar::fail(ErrorKind::Cancelled, "stopping")); });
  co_return co_await exchange->done.wait();
}

// On the loop, as are send() and what end() does.
void Network::look_up(const ExchangePtr& exchange) {
  if (exchange->is_over) return;
  const Faults& faults = faults_[exchange->host];
  if (faults.names_are_silent) {
    ++statistics_.faults;
    if (lookups_ == Lookups::Blocking) {
      time_.spend(kBlockingLookup);
      return fail(exchange, http::never_sent("no answer from the name servers"));
    }
    exchange->total = exchange->loop.after(exchange->request.connect_timeout, [this, exchange] {
      fail(exchange, http::never_sent("no answer from the name servers"));
    });
    return;
  }
  world_.after(travel(faults.request_max), [this, exchange] {
    if (exchange->is_over) return;
    exchange->loop.post([this, exchange] { send(exchange); });
  });
}

void Network::send(const ExchangePtr& exchange) {
  if (exchange->is_over) return;
  const Faults& faults = faults_[exchange->host];
  if (faults.is_cut_off || strikes(faults.refused)) {
    return fail(exchange, http::never_sent("no connection"));
  }
  if (exchange->request.may_send && !exchange->request.may_send()) {
    return fail(exchange, http::never_sent("held back: it may not be sent any more"));
  }
  if (exchange->request.idle_timeout.count() > 0) watch_idleness(exchange);
  if (strikes(faults.lost)) {
    world_.after(travel(faults.request_max),
                 [this, exchange] { fail(exchange, "the connection was lost"); });
    return;
  }
  world_.after(travel(faults.request_max), [this, exchange] { act(exchange); });
}

// In the world, whatever has become of the client meanwhile.
void Network::act(const ExchangePtr& exchange) {
  const Faults& faults = faults_[exchange->host];
  if (faults.is_cut_off) return fail(exchange, "the connection was lost");
  if (strikes(faults.overloaded)) {
    return answer(exchange, status(429, "TooManyRequests", "too many requests"));
  }
  if (strikes(faults.broken)) {
    return answer(exchange, status(500, "InternalError", "an error on the server"));
  }
  if (on_arrival_) {
    if (std::optional<ApiAnswer> given = on_arrival_(exchange->api)) {
      return answer(exchange, *std::move(given));
    }
  }
  if (ApiServer::is_watch(exchange->api) && exchange->handler) {
    auto opened = server_.open(exchange->api);
    if (auto* const watch = std::get_if<ApiServer::Watch>(&opened)) {
      if (!exchange->is_over) open_stream(exchange, std::move(*watch));
      return;
    }
    return answer(exchange, std::get<ApiAnswer>(std::move(opened)));
  }
  ApiAnswer given = server_.handle(exchange->api, time_.wall_now());
  if (on_act_) on_act_({.host = exchange->host, .request = exchange->api, .answer = given});
  if (strikes(faults.silent)) return;
  if (strikes(faults.answer_lost)) return fail(exchange, "the connection was lost");
  if (strikes(faults.garbage)) given.body = garbage_in_place_of(given.body);
  answer(exchange, std::move(given));
}

// A proxy's page, a document that is no object, or one that ends early.
json::String Network::garbage_in_place_of(const json::Value& body) {
  switch (time_.draw(0, 2)) {
    case 0:
      return "<html>";
    case 1:
      return "null";
    default:
      const std::string text = json::dump(body);
      return json::String(std::string_view(text).substr(0, text.size() / 2));
  }
}

void Network::answer(const ExchangePtr& exchange, ApiAnswer given) {
  const bool is_page = given.body.is_string();
  std::string body = is_page ? std::string(given.body.as_string()) : json::dump(given.body);
  http::Headers headers = {{"content-type", is_page ? "text/html" : "application/json"}};
  if (given.status == 429) headers.emplace_back("retry-after", "1");
  world_.after(travel(faults_[exchange->host].answer_max),
               [this, exchange, status = given.status, headers = std::move(headers),
                body = std::move(body)]() mutable {
                 if (faults_[exchange->host].is_cut_off)
                   return fail(exchange, "the connection was lost");
                 if (exchange->is_over) return;
                 exchange->loop.post([this, exchange, status, headers = std::move(headers),
                                      body = std::move(body)]() mutable {
                   if (exchange->is_over) return;
                   if (exchange->request.on_progress) exchange->request.on_progress(body.size());
                   http::Response response{.status = status, .headers = std::move(headers)};
                   if (!exchange->handler) {
                     response.body = std::move(body);
                     return end(exchange, std::move(response));
                   }
                   Result<> taken = exchange->handler->on_headers(status, response.headers);
                   if (taken && !exchange->is_over && !body.empty())
                     taken = exchange->handler->on_bytes(body);
                   if (!taken) return end(exchange, std::unexpected(std::move(taken).error()));
                   end(exchange, std::move(response));
                 });
               });
}

void Network::open_stream(const ExchangePtr& exchange, ApiServer::Watch watch) {
  exchange->next_bookmark = time_.world() + kBookmarkPeriod;
  if (watch.lifetime.count() > 0) exchange->ends_at = time_.world() + watch.lifetime;
  exchange->watch = std::move(watch);
  world_.after(travel(faults_[exchange->host].answer_max), [this, exchange] {
    if (exchange->is_over) return;
    exchange->loop.post([this, exchange] {
      if (exchange->is_over) return;
      exchange->last_arrival = io::Loop::now();
      Result<> taken = exchange->handler->on_headers(200, {{"content-type", "application/json"}});
      if (!taken) end(exchange, std::unexpected(std::move(taken).error()));
    });
    deliver(exchange);
  });
}

void Network::deliver_soon(const ExchangePtr& exchange) {
  if (std::exchange(exchange->is_delivery_due, true)) return;
  world_.after(travel(faults_[exchange->host].answer_max), [this, exchange] {
    exchange->is_delivery_due = false;
    deliver(exchange);
  });
}

void Network::deliver(const ExchangePtr& exchange) {
  if (exchange->is_over || !exchange->watch) return;
  const Faults& faults = faults_[exchange->host];
  // What a connection without an end holds back comes with the next delivery, or never.
  if (faults.is_cut_off || exchange->is_silent) return;
  if (strikes(faults.silent)) exchange->is_silent = true;
  bool is_over = time_.world() >= exchange->ends_at;
  std::vector<std::string> lines = server_.next_lines(*exchange->watch, is_over);
  if (exchange->watch->has_bookmarks && time_.world() >= exchange->next_bookmark) {
    exchange->next_bookmark = time_.world() + kBookmarkPeriod;
    lines.push_back(server_.bookmark(*exchange->watch));
  }
  if (lines.empty() && !is_over) return;
  statistics_.events += lines.size();
  if (!lines.empty() && strikes(faults.cut)) {
    lines.back().resize(lines.back().size() / 2);
    pass_lines(exchange, std::move(lines), /*is_over=*/false);
    return fail(exchange, "the connection was lost");
  }
  pass_lines(exchange, std::move(lines), is_over);
}

void Network::pass_lines(const ExchangePtr& exchange, std::vector<std::string> lines,
                         bool is_over) {
  exchange->loop.post([this, exchange, lines = std::move(lines), is_over] {
    exchange->last_arrival = io::Loop::now();
    for (const std::string& line : lines) {
      if (exchange->is_over) return;
      Result<> taken = exchange->handler->on_bytes(line);
      if (!taken) return end(exchange, std::unexpected(std::move(taken).error()));
    }
    if (is_over) end(exchange, http::Response{.status = 200});
  });
}

void Network::end(const ExchangePtr& exchange, Result<http::Response> result) {
  if (std::exchange(exchange->is_over, true)) return;
  open_.erase(exchange->place);
  exchange->total.cancel();
  exchange->idle.cancel();
  exchange->done.set(std::move(result));
}

void Network::fail(const ExchangePtr& exchange, std::string why) {
  // The loop of an exchange that has ended may be gone.
  if (exchange->is_over) return;
  exchange->loop.post([this, exchange, why = std::move(why)] {
    end(exchange, hangar::fail(ErrorKind::Unavailable, exchange->api.method + ": " + why));
  });
}

void Network::watch_idleness(const ExchangePtr& exchange) {
  const Duration left = exchange->last_arrival + exchange->request.idle_timeout - io::Loop::now();
  if (left <= Duration::zero()) return fail(exchange, "the stream is silent");
  exchange->idle = exchange->loop.after(left, [this, exchange] {
    if (!exchange->is_over) watch_idleness(exchange);
  });
}

bool Network::strikes(std::uint32_t per_mille) {
  if (per_mille == 0 || time_.draw(0, 999) >= per_mille) return false;
  ++statistics_.faults;
  return true;
}

Duration Network::travel(Duration max) {
  return std::chrono::microseconds(50) + time_.draw_up_to(max);
}

// Ends streams whose time is over, and sends bookmarks.
void Network::care() {
  world_.after(seconds(1), [this] {
    const Instant now = time_.world();
    for (const ExchangePtr& exchange : open_) {
      if (exchange->watch && (now >= exchange->ends_at || now >= exchange->next_bookmark)) {
        deliver_soon(exchange);
      }
    }
    care();
  });
}

}  // namespace hangar::simulation
