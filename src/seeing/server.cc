#include "seeing/server.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/priority.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "recorder/story.h"
#include "seeing/cost.h"
#include "seeing/find.h"
#include "seeing/limits.h"
#include "seeing/messages.h"
#include "seeing/rights.h"
#include "seeing/top.h"
#include "seeing/uses.h"
#include "seeing/why_search.h"
#include "seeing/withhold.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::seeing {

namespace {

constexpr std::chrono::seconds kStopGrace{2};
// Time for one answer, from the complete request on.
constexpr std::chrono::seconds kAnswerTime = kReadMax + kAuthorisationMax;

// For the first of two searches of one answer.
constexpr ReadBounds kHalfBounds{.time_max = kReadMax / 2};
constexpr ReadBounds kBounds{.time_max = kReadMax, .entries_max = kEntriesMax};

http::Response text(int status, std::string body) {
  http::Response response{
      .status = status,
      .headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}},
      .body = std::move(body) + "\n"};
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

http::Response refusal(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::InvalidInput:
      return text(400, error.message());
    case ErrorKind::Denied:
      return text(403, error.message());
    case ErrorKind::NotFound:
      return text(404, error.message());
    case ErrorKind::LimitExceeded:
      return text(429, error.message());
    default:
      return text(503, error.message());
  }
}

bool is_question(std::string_view path) {
  constexpr std::string_view kQuestions[] = {kTurnsPath, kWritesPath, kTopPath, kUsesPath,
                                             kCostPath};
  return std::ranges::find(kQuestions, path) != std::end(kQuestions);
}

// Users share as tenants do.
budget::Consumer asker_of(const kube::Identity& identity) {
  return {.tenant = budget::Tenant::of_namespace(sharer_of(identity.user)), .name = identity.user};
}

template <class Found>
std::string dump(const Found& found) {
  return json::dump(json_of(found));
}

}  // namespace

Server::Server(io::Loop& loop, const kube::Client& client, Metrics& metrics, Log log,
               Options options)
    : loop_(loop),
      metrics_(metrics),
      seconds_(metrics.histogram("hangar_seeing_answer_seconds",
                                 "Time of one answer to a question about records, in seconds.",
                                 latency_buckets())),
      log_(std::move(log)),
      options_(std::move(options)),
      callers_(client),
      rights_(client),
      slots_(loop, {.slots = kAnswersMax, .waiting_per_tenant_max = kWaitingPerUserMax}),
      reader_(loop, 1) {
  // The first task of the only thread: from here on it has low priority.
  reader_.submit(Consumer::of_host("questions"), [] { io::give_way(); });
}

Server::~Server() = default;

Result<> Server::listen(const std::string& address, http::ServerOptions::Tls certificate) {
  return http::listen_with(
      server_, loop_, address,
      {.tls = std::move(certificate),
       .body_bytes_max = kQuestionBytesMax,
       .connections_max = kConnectionsMax},
      [this](http::ServerRequest request) { return answer(std::move(request)); }, log_);
}

io::Task<void> Server::stop() {
  stop_.request_stop();
  if (server_) co_await server_->stop(kStopGrace);
}

void Server::count(std::string_view path, int status) {
  metrics_
      .counter("hangar_seeing_questions_total", "Questions about records, by kind and answer.",
               {{"question", std::string(path.substr(path.rfind('/') + 1))},
                {"code", std::to_string(status)}})
      .add();
}

bool Server::admit(const std::string& sharer) {
  const Instant now = io::Loop::now();
  const auto known = sharers_.find(sharer);
  if (known != sharers_.end()) return known->second.try_take(now);
  // A full bucket says nothing about its user and need not be kept.
  if (sharers_.size() >= kSharersMax) {
    for (auto one = sharers_.begin(); one != sharers_.end();)
      one = one->second.is_full(now) ? sharers_.erase(one) : std::next(one);
  }
  if (sharers_.size() >= kSharersMax) return false;
  TokenBucket bucket({.per_second = kQuestionsPerSecond, .burst = kQuestionsBurst});
  return sharers_.emplace(sharer, bucket).first->second.try_take(now);
}

io::Task<http::Response> Server::answer(http::ServerRequest request) {
  if (!is_question(request.path)) {
    co_return text(404, "there is nothing at this path");
  }
  if (request.method != "POST") co_return text(405, "send a question by POST");
  if (!is_leading_) co_return text(503, "this host does not lead, and has no records of today");

  const Instant began = io::Loop::now();
  const std::string path = request.path;
  // Cancels this request: at its time limit, or when the host stops.
  const std::stop_source stop;
  const std::stop_callback ending(stop_.get_token(), [&stop] { stop.request_stop(); });
  const io::Loop::Timer limit = loop_.after(kAnswerTime, [stop] { stop.request_stop(); });
  const Result<kube::Identity> identity = co_await callers_.identify(request, stop.get_token());
  if (!identity) {
    http::Response refused = identity.error().kind() == ErrorKind::Denied
                                 ? text(401, identity.error().message())
                                 : refusal(identity.error());
    count(path, refused.status);
    co_return refused;
  }
  if (!admit(sharer_of(identity->user))) {
    count(path, 429);
    co_return text(429,
                   "this user, or its namespace's ServiceAccounts, asked too often: try again in a "
                   "second");
  }
  const std::string user = identity->user;
  Result<std::string> body = co_await answer(*identity, std::move(request), stop.get_token());
  if (!body && stop.stop_requested()) {
    body = fail(ErrorKind::Unavailable,
                fmt::format("there was no answer within {}", to_go_duration(kAnswerTime)));
  }
  seconds_.observe(in_seconds(io::Loop::now() - began));
  http::Response response = body ? http::Response{.status = 200,
                                                  .headers = {{"Content-Type", "application/json"},
                                                              {"Cache-Control", "no-store"}},
                                                  .body = *std::move(body)}
                                 : refusal(body.error());
  count(path, response.status);
  log_.debug("asked about records", {{"user", user}, {"path", path}, {"code", response.status}});
  co_return response;
}

io::Task<Result<std::string>> Server::answer(kube::Identity identity, http::ServerRequest request,
                                             std::stop_token stop) {
  // Fair between users: none waits behind all requests of another one.
  Result<budget::FairSlots::Slot> slot = co_await slots_.acquire(asker_of(identity), {}, stop);
  if (!slot && slot.error().kind() == ErrorKind::LimitExceeded) {
    co_return fail(ErrorKind::LimitExceeded, "this user asks too much at once: try again");
  }
  if (!slot) co_return std::unexpected(slot.error());
  if (request.path == kWritesPath) {
    co_return co_await writes(std::move(identity), std::move(request.body), std::move(stop));
  }
  if (request.path == kTopPath) {
    co_return co_await top(std::move(identity), std::move(request.body), std::move(stop));
  }
  if (request.path == kUsesPath) {
    co_return co_await uses(std::move(identity), std::move(request.body), std::move(stop));
  }
  if (request.path == kCostPath) {
    co_return co_await cost(std::move(identity), std::move(request.body), std::move(stop));
  }
  co_return co_await turns(std::move(identity), std::move(request.body), std::move(stop));
}

io::Task<Result<std::string>> Server::turns(kube::Identity identity, std::string body,
                                            std::stop_token stop) {
  const budget::Consumer asker = asker_of(identity);
  const TurnsQuestion question = HANGAR_CO_TRY(parse_turns_question(body));
  FoundTurns found = HANGAR_CO_TRY(co_await shown_turns(identity, question, stop));
  std::set<kube::ObjectKey> secrets;
  for (const recorder::Story& story : found.stories)
    add_secrets(story, secrets);
  const std::set<kube::ObjectKey> shown = HANGAR_CO_TRY(co_await rights_.may_get(
      std::move(identity), kube::secret_resource(), std::move(secrets), std::move(stop)));
  co_return co_await reader_.run(asker, [found = std::move(found), shown]() mutable {
    for (recorder::Story& story : found.stories)
      withhold_secrets(story, shown);
    return dump(found);
  });
}

io::Task<Result<FoundTurns>> Server::shown_turns(kube::Identity identity, TurnsQuestion question,
                                                 std::stop_token stop) {
  const budget::Consumer asker = asker_of(identity);
  if (question.instances.empty()) {
    HANGAR_CO_TRY(co_await require_guest(std::move(identity),
                                         {.namespace_ = question.namespace_, .name = question.name},
                                         std::move(stop)));
    co_return co_await reader_.run(asker, [this, question] {
      return find_turns({.directory = options_.directory}, question, kBounds);
    });
  }
  const ShownGuests shown =
      HANGAR_CO_TRY(co_await shown_guests(std::move(identity), question, std::move(stop)));
  FoundTurns found = HANGAR_CO_TRY(co_await reader_.run(asker, [this, question, shown] {
    return find_turns({.directory = options_.directory}, question, kBounds, shown);
  }));
  std::set<std::string> namespaces = {question.namespace_};
  for (const recorder::Story& story : found.stories)
    namespaces.insert(story.namespace_);
  withhold_namespaces(found.read, namespaces);
  co_return found;
}

io::Task<Result<ShownGuests>> Server::shown_guests(kube::Identity identity, TurnsQuestion question,
                                                   std::stop_token stop) {
  const GuestObject named = object_of({.namespace_ = {}, .name = question.name});
  GuestObject instances =
      object_of({.namespace_ = question.namespace_, .name = question.instances + "/"});
  instances.resource.namespaced = true;
  ShownGuests shown;
  shown.named =
      HANGAR_CO_TRY(co_await rights_.allows(identity, "get", named.resource, named.key, stop));
  // One review for all instances first: many roles allow that.
  const kube::ObjectKey any{.namespace_ = question.namespace_, .name = {}};
  if (HANGAR_CO_TRY(co_await rights_.allows(identity, "get", instances.resource, any, stop))) {
    co_return shown;
  }
  // No record is read for somebody who may see neither the Airway nor all instances of a namespace.
  if (!shown.named) {
    co_return fail(ErrorKind::Denied,
                   missing_right(identity.user, "get", named.resource, named.key) + ", nor " +
                       instances.resource.qualified_plural() +
                       (question.namespace_.empty()
                            ? " in all namespaces; with -n a namespace may be named"
                            : fmt::format(" in namespace \"{}\"", question.namespace_)));
  }
  const budget::Consumer asker = asker_of(identity);
  std::set<kube::ObjectKey> found = HANGAR_CO_TRY(co_await reader_.run(asker, [this, question] {
    return find_instances({.directory = options_.directory}, question, kHalfBounds);
  }));
  shown.instances = HANGAR_CO_TRY(
      co_await may_get_guests(std::move(identity), std::move(found), std::move(stop)));
  co_return shown;
}

io::Task<Result<std::string>> Server::uses(kube::Identity identity, std::string body,
                                           std::stop_token stop) {
  const budget::Consumer asker = asker_of(identity);
  const UsesQuestion question = HANGAR_CO_TRY(parse_uses_question(body));
  HANGAR_CO_TRY(co_await require_guest(
      identity, {.namespace_ = question.namespace_, .name = question.name}, stop));
  FoundUses found = HANGAR_CO_TRY(co_await reader_.run(asker, [this, question] {
    return find_uses({.directory = options_.directory, .file = {}}, question, kBounds);
  }));
  if (found.contract == recorder::Contract::Operator && !found.user.empty()) {
    add_open_watches(found, HANGAR_CO_TRY(co_await options_.watches(found.user)));
  }
  withhold_sharers(found, HANGAR_CO_TRY(co_await may_get_guests(identity, found.sharers, stop)));
  const std::set<kube::ObjectKey> shown = HANGAR_CO_TRY(co_await rights_.may_get(
      std::move(identity), kube::secret_resource(), secrets_in(found), std::move(stop)));
  co_return co_await reader_.run(asker, [found = std::move(found), shown]() mutable {
    withhold_secrets(found, shown);
    return dump(found);
  });
}

io::Task<Result<std::vector<PresentGuest>>> Server::present() {
  constexpr std::chrono::seconds kAgeMax{1};
  if (!present_at_ || io::Loop::now() - *present_at_ > kAgeMax) {
    std::vector<PresentGuest> now = HANGAR_CO_TRY(co_await options_.present());
    present_ = std::move(now);
    present_at_ = io::Loop::now();
  }
  co_return present_;
}

io::Task<Result<std::string>> Server::top(kube::Identity identity, std::string body,
                                          std::stop_token stop) {
  const budget::Consumer asker = asker_of(identity);
  const TopQuestion question = HANGAR_CO_TRY(parse_top_question(body));
  std::vector<PresentGuest> guests = HANGAR_CO_TRY(co_await present());
  if (!question.namespace_.empty()) {
    std::erase_if(guests, [&question](const PresentGuest& guest) {
      return guest.key.namespace_ != question.namespace_;
    });
  }
  HANGAR_CO_TRY(co_await require_any_list(identity, question.namespace_, guests, stop));
  FoundTop found = HANGAR_CO_TRY(co_await reader_.run(
      asker, [this, question, guests = std::move(guests)]() -> Result<FoundTop> {
        FoundTop read =
            HANGAR_TRY(find_top({.directory = options_.directory, .file = {}}, question, kBounds));
        add_present(read, guests);
        return read;
      }));
  HANGAR_CO_TRY(
      co_await leave_listed(std::move(identity), question.namespace_, found, std::move(stop)));
  co_return co_await reader_.run(asker, [found = std::move(found)] { return dump(found); });
}

io::Task<Result<FoundCost>> Server::cost_now() {
  constexpr std::chrono::seconds kAgeMax{1};
  if (!cost_at_ || io::Loop::now() - *cost_at_ > kAgeMax) {
    FoundCost now = HANGAR_CO_TRY(co_await options_.cost());
    cost_ = std::move(now);
    cost_at_ = io::Loop::now();
  }
  co_return cost_;
}

io::Task<Result<std::string>> Server::cost(kube::Identity identity, std::string body,
                                           std::stop_token stop) {
  const budget::Consumer asker = asker_of(identity);
  const CostQuestion question = HANGAR_CO_TRY(parse_cost_question(body));
  FoundCost found = HANGAR_CO_TRY(co_await cost_now());
  HANGAR_CO_TRY(
      co_await leave_listed(std::move(identity), question.namespace_, found, std::move(stop)));
  co_return co_await reader_.run(asker, [found = std::move(found)] { return dump(found); });
}

io::Task<Result<>> Server::leave_listed(kube::Identity identity, std::string namespace_,
                                        FoundCost& found, std::stop_token stop) {
  const auto may_list = [this, &identity, &stop](const std::string& one) {
    return rights_.allows(identity, "list", options_.operators, {.namespace_ = one, .name = {}},
                          stop);
  };
  if (HANGAR_CO_TRY(co_await may_list(namespace_))) {
    if (namespace_.empty()) co_return Result<>();
    found.processes.reset();
    std::erase_if(found.rows,
                  [&namespace_](const CostRow& row) { return row.namespace_ != namespace_; });
    co_return Result<>();
  }
  // The host, cluster-scoped guests and the sum are for readers of all namespaces.
  found.processes.reset();
  std::set<std::string> namespaces;
  if (namespace_.empty()) {
    for (const CostRow& row : found.rows)
      if (!row.namespace_.starts_with('(')) namespaces.insert(row.namespace_);
  }
  std::set<std::string> listed;
  std::size_t asked = 0;
  for (const std::string& one : namespaces) {
    if (++asked > kReviewsPerAnswerMax) {
      found.problems.push_back(
          fmt::format("You may not list operators in all namespaces, and {} of them were asked "
                      "about: name yours with -n.",
                      kReviewsPerAnswerMax));
      break;
    }
    if (HANGAR_CO_TRY(co_await may_list(one))) listed.insert(one);
  }
  if (listed.empty()) co_return fail(ErrorKind::Denied, may_list_nothing(identity, namespace_));
  std::erase_if(found.rows,
                [&listed](const CostRow& row) { return !listed.contains(row.namespace_); });
  co_return Result<>();
}

Server::GuestObject Server::object_of(const kube::ObjectKey& guest) const {
  const std::size_t slash = guest.name.find('/');
  if (slash == std::string::npos) return {.resource = options_.operators, .key = guest};
  const std::string resource = guest.name.substr(0, slash);
  const std::size_t dot = std::min(resource.find('.'), resource.size());
  return {.resource = {.group = resource.substr(std::min(dot + 1, resource.size())),
                       .plural = resource.substr(0, dot),
                       .namespaced = !guest.namespace_.empty()},
          .key = {.namespace_ = guest.namespace_, .name = guest.name.substr(slash + 1)}};
}

io::Task<Result<>> Server::require_guest(kube::Identity identity, kube::ObjectKey guest,
                                         std::stop_token stop) {
  GuestObject object = object_of(guest);
  co_return co_await rights_.require(std::move(identity), "get", std::move(object.resource),
                                     std::move(object.key), std::move(stop));
}

io::Task<Result<std::set<kube::ObjectKey>>> Server::may_get_guests(kube::Identity identity,
                                                                   std::set<kube::ObjectKey> guests,
                                                                   std::stop_token stop) {
  std::map<kube::Resource, std::map<kube::ObjectKey, kube::ObjectKey>> objects;
  for (const kube::ObjectKey& guest : guests) {
    GuestObject object = object_of(guest);
    objects[std::move(object.resource)].emplace(std::move(object.key), guest);
  }
  std::set<kube::ObjectKey> shown;
  for (const auto& [resource, of_resource] : objects) {
    std::set<kube::ObjectKey> keys;
    for (const auto& [key, guest] : of_resource)
      keys.insert(key);
    const std::set<kube::ObjectKey> allowed =
        HANGAR_CO_TRY(co_await rights_.may_get(identity, resource, std::move(keys), stop));
    for (const kube::ObjectKey& key : allowed)
      shown.insert(of_resource.at(key));
  }
  co_return shown;
}

io::Task<Result<>> Server::require_any_list(kube::Identity identity, std::string namespace_,
                                            const std::vector<PresentGuest>& guests,
                                            std::stop_token stop) {
  std::vector<kube::Resource> resources = HANGAR_CO_TRY(co_await options_.guest_resources());
  resources.insert(resources.begin(), options_.operators);
  std::size_t asked = 0;
  for (kube::Resource& resource : resources) {
    if (++asked > kReviewsPerAnswerMax) break;
    // The right to list is reviewed for one namespace, or for all.
    resource.namespaced = true;
    if (HANGAR_CO_TRY(co_await rights_.allows(identity, "list", resource,
                                              {.namespace_ = namespace_, .name = {}}, stop))) {
      co_return Result<>();
    }
  }
  std::set<std::string> namespaces;
  if (namespace_.empty()) {
    for (const PresentGuest& guest : guests)
      namespaces.insert(guest.key.namespace_);
  }
  for (const std::string& one : namespaces) {
    if (++asked > kReviewsPerAnswerMax) break;
    if (HANGAR_CO_TRY(co_await rights_.allows(identity, "list", options_.operators,
                                              {.namespace_ = one, .name = {}}, stop))) {
      co_return Result<>();
    }
  }
  co_return fail(ErrorKind::Denied, may_list_nothing(identity, namespace_));
}

std::string Server::may_list_nothing(const kube::Identity& identity,
                                     const std::string& namespace_) const {
  return missing_right(identity.user, "list", options_.operators,
                       {.namespace_ = namespace_, .name = {}}) +
         (namespace_.empty() ? ", nor in any that has one; with -n a namespace may be named" : "");
}

// One review for all namespaces where a role allows that, otherwise one for each namespace.
io::Task<Result<>> Server::leave_listed(kube::Identity identity, std::string namespace_,
                                        FoundTop& found, std::stop_token stop) {
  // Namespaces of each resource. The list has operators in any case, so that an empty table is
  // authorised, too.
  std::map<kube::Resource, std::set<std::string>> places = {{options_.operators, {}}};
  for (const TopRow& row : found.rows) {
    GuestObject object = object_of({.namespace_ = row.key.namespace_, .name = row.key.name});
    // All rows of a resource need the same key, whatever object_of() derives from their namespace.
    object.resource.namespaced = true;
    places[std::move(object.resource)].insert(row.key.namespace_);
  }
  std::set<std::pair<kube::Resource, std::string>> listed;
  bool is_any = false;
  std::size_t asked = 0;
  for (const auto& [resource, namespaces] : places) {
    if (++asked > kReviewsPerAnswerMax) break;
    if (HANGAR_CO_TRY(co_await rights_.allows(identity, "list", resource,
                                              {.namespace_ = namespace_, .name = {}}, stop))) {
      is_any = true;
      for (const std::string& one : namespaces)
        listed.emplace(resource, one);
      continue;
    }
    if (!namespace_.empty()) continue;
    for (const std::string& one : namespaces) {
      if (one.empty()) continue;  // Cluster-scoped: the review without a namespace has decided.
      if (++asked > kReviewsPerAnswerMax) break;
      if (HANGAR_CO_TRY(co_await rights_.allows(identity, "list", resource,
                                                {.namespace_ = one, .name = {}}, stop))) {
        is_any = true;
        listed.emplace(resource, one);
      }
    }
  }
  if (!is_any) {
    co_return fail(ErrorKind::Denied, may_list_nothing(identity, namespace_));
  }
  if (asked > kReviewsPerAnswerMax) {
    found.read.problems.push_back(
        fmt::format("You may not list everything in all namespaces, and {} of them were asked "
                    "about: name yours with -n.",
                    kReviewsPerAnswerMax));
  }
  std::erase_if(found.rows, [this, &listed](const TopRow& row) {
    GuestObject object = object_of({.namespace_ = row.key.namespace_, .name = row.key.name});
    object.resource.namespaced = true;
    return !listed.contains({std::move(object.resource), row.key.namespace_});
  });
  std::set<std::string> shown = {namespace_};
  for (const TopRow& row : found.rows)
    shown.insert(row.key.namespace_);
  withhold_namespaces(found.read, shown);
  co_return Result<>();
}

io::Task<Result<std::string>> Server::writes(kube::Identity identity, std::string body,
                                             std::stop_token stop) {
  const budget::Consumer asker = asker_of(identity);
  const WritesQuestion question = HANGAR_CO_TRY(parse_writes_question(body));
  const WhyTarget& target = question.target;
  HANGAR_CO_TRY(co_await rights_.require(
      identity, "get",
      {.group = target.group, .plural = target.plural, .namespaced = !target.namespace_.empty()},
      {.namespace_ = target.namespace_, .name = target.name}, stop));
  FoundWrites found = HANGAR_CO_TRY(co_await reader_.run(
      asker, [this, question] { return find_writes(options_.directory, question, kBounds); }));
  const std::set<kube::ObjectKey> guests =
      HANGAR_CO_TRY(co_await may_get_guests(identity, guests_in(found.findings), stop));
  withhold_guests(found.findings, guests);
  std::set<std::string> namespaces = {target.namespace_};
  for (const kube::ObjectKey& guest : guests)
    namespaces.insert(guest.namespace_);
  withhold_namespaces(found.read, namespaces);
  std::set<kube::ObjectKey> secrets;
  for (const WhyStep& step : found.findings.steps)
    add_secrets(step.story, secrets);
  const std::set<kube::ObjectKey> shown = HANGAR_CO_TRY(co_await rights_.may_get(
      std::move(identity), kube::secret_resource(), std::move(secrets), std::move(stop)));
  co_return co_await reader_.run(asker, [found = std::move(found), shown]() mutable {
    for (WhyStep& step : found.findings.steps)
      withhold_secrets(step.story, shown);
    return dump(found);
  });
}

}  // namespace hangar::seeing
