#include "reconcile/leader_elector.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/fence.h"
#include "kube/object.h"
#include "reconcile/election_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar::reconcile {

namespace {

using std::chrono::seconds;

kube::Resource lease_resource() {
  return {.group = "coordination.k8s.io",
          .version = "v1",
          .plural = "leases",
          .kind = "Lease",
          .namespaced = true};
}

WallTime time_at(const json::Value& lease, std::string_view member) {
  return parse_rfc3339(json::string_at(lease, {"spec", member})).value_or(WallTime());
}

LeaseRecord record_from(const json::Value& lease) {
  const std::int64_t duration = json::int_at(lease, {"spec", "leaseDurationSeconds"});
  return {.holder = std::string(json::string_at(lease, {"spec", "holderIdentity"})),
          .lease_duration = seconds(std::clamp<std::int64_t>(duration, 0, 1'000'000)),
          .acquired_at = time_at(lease, "acquireTime"),
          .renewed_at = time_at(lease, "renewTime"),
          .transitions = json::int_at(lease, {"spec", "leaseTransitions"}),
          .resource_version = std::string(json::string_at(lease, {"metadata", "resourceVersion"}))};
}

json::Value to_spec(const LeaseRecord& record) {
  const auto whole_seconds = std::chrono::ceil<seconds>(record.lease_duration).count();
  return json::Object{{"holderIdentity", record.holder},
                      {"leaseDurationSeconds", whole_seconds},
                      {"acquireTime", to_rfc3339_micro(record.acquired_at)},
                      {"renewTime", to_rfc3339_micro(record.renewed_at)},
                      {"leaseTransitions", record.transitions}};
}

}  // namespace

struct LeaderElector::State : std::enable_shared_from_this<State> {
  State(io::Loop& loop_in, const kube::Client& client_in, std::shared_ptr<kube::Fence> fence_in,
        Metrics& metrics, Log log_in, Options options_in, Handlers handlers_in)
      : loop(loop_in),
        client(client_in),
        fence(std::move(fence_in)),
        log(std::move(log_in)),
        options(std::move(options_in)),
        handlers(std::move(handlers_in)),
        machine(options.election, random_number()),
        leading(metrics.gauge("leader_election_master_status", "1 while this process leads.",
                              {{"name", options.name}})),
        ended(loop) {}

  void start() {
    if (is_running || stop.stop_requested()) return;
    is_running = true;
    loop.spawn(run(shared_from_this()));
  }

  static io::Task<void> run(std::shared_ptr<State> self) {
    ElectionMachine::Next next = self->machine.start();
    while (!self->stop.stop_requested()) {
      next = co_await self->perform(std::move(next), self->stop.get_token());
      self->show();
    }
    next = self->machine.release(io::Loop::wall_now());
    self->show();
    // A stop does not interrupt this: its own time limit does.
    while (!std::holds_alternative<ElectionMachine::Done>(next))
      next = co_await self->perform(std::move(next), std::stop_token());
    self->is_running = false;
    self->ended.notify_all();
  }

  io::Task<ElectionMachine::Next> perform(ElectionMachine::Next next, std::stop_token stopping) {
    if (const auto* wait = std::get_if<ElectionMachine::Wait>(&next)) {
      const Result<> elapsed = co_await loop.sleep(wait->delay, stopping);
      (void)elapsed;  // Not elapsed: stopping.
      if (stopping.stop_requested()) co_return *wait;
      co_return machine.on_due(io::Loop::now(), io::Loop::wall_now());
    }
    // A request that hangs must not use up the time of the next one. A stop does not interrupt it:
    // whether the Lease is ours would be unknown then.
    const std::stop_source too_long;
    const Duration answer_max = options.election.renew_deadline / 3;
    const io::Loop::Timer limit = loop.after(answer_max, [too_long] { too_long.request_stop(); });
    const auto or_too_long = [&too_long, answer_max](Result<LeaseRecord> result) {
      if (result || !too_long.stop_requested()) return result;
      const std::chrono::duration<double> max = answer_max;
      return Result<LeaseRecord>(
          fail(ErrorKind::Unavailable,
               fmt::format("the API server did not answer within {:.1f} s", max.count())));
    };
    if (const auto* write = std::get_if<ElectionMachine::Write>(&next)) {
      const WallTime begun_at = io::Loop::wall_now();
      Result<LeaseRecord> written =
          or_too_long(co_await this->write(write->record, too_long.get_token()));
      note(written, write->record.resource_version.empty());
      if (written) wall_until = begun_at + options.election.renew_deadline;
      co_return machine.on_written(std::move(written), io::Loop::now());
    }
    Result<LeaseRecord> read = or_too_long(co_await this->read(too_long.get_token()));
    note(read, /*is_create=*/false);
    co_return machine.on_read(std::move(read), io::Loop::now(), io::Loop::wall_now());
  }

  io::Task<Result<LeaseRecord>> read(std::stop_token too_long) {
    const json::Value lease = HANGAR_CO_TRY(
        co_await client.get(lease_resource(), {options.namespace_, options.name}, too_long));
    co_return record_from(lease);
  }

  io::Task<Result<LeaseRecord>> write(LeaseRecord record, std::stop_token too_long) {
    if (record.resource_version.empty()) {
      json::Value lease = json::Object{
          {"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", json::Object{{"namespace", options.namespace_}, {"name", options.name}}},
          {"spec", to_spec(record)}};
      const json::Value created =
          HANGAR_CO_TRY(co_await client.create(lease_resource(), std::move(lease), {}, too_long));
      co_return record_from(created);
    }
    // A merge patch keeps labels and whatever else others put on it; the version in it makes
    // it conditional.
    json::Value patch =
        json::Object{{"metadata", json::Object{{"resourceVersion", record.resource_version}}},
                     {"spec", to_spec(record)}};
    const json::Value patched = HANGAR_CO_TRY(
        co_await client.patch(lease_resource(), {options.namespace_, options.name},
                              kube::PatchType::Merge, std::move(patch), {}, too_long));
    co_return record_from(patched);
  }

  void note(const Result<LeaseRecord>& result, bool is_create) {
    // There may be no Lease yet. If it cannot be created either, its namespace does not exist.
    if (!result && result.error().kind() == ErrorKind::NotFound && !is_create) return;
    const bool is_usual = result || result.error().kind() == ErrorKind::Conflict;
    const std::string error = is_usual ? "" : result.error().message();
    if (!error.empty() && error != last_error) {
      log.warning("lease cannot be read or written",
                  {{"namespace", options.namespace_}, {"name", options.name}, {"error", error}});
    }
    last_error = error;
  }

  // Applies the machine's answer to the process, and schedules a look for when it may change.
  void show() {
    const bool leads = machine.is_leading(io::Loop::now());
    if (!leads && fence) fence->shut();
    if (leads) {
      if (fence) fence->open_until(*machine.leading_until(), wall_until);
      expiry = loop.after(*machine.leading_until() - io::Loop::now(), [this] { show(); });
    }
    if (leads == is_shown_leading) return;
    is_shown_leading = leads;
    leading.set(leads ? 1 : 0);
    log.info(leads ? "leading" : "no longer leading", {{"namespace", options.namespace_},
                                                       {"name", options.name},
                                                       {"identity", options.election.identity}});
    // A copy: the handler may destroy the elector.
    const std::function<void()> handler = leads ? handlers.on_started : handlers.on_stopped;
    if (handler) handler();
  }

  static io::Task<void> wait_until_ended(std::shared_ptr<State> self) {
    self->stop.request_stop();
    while (self->is_running) {
      const Result<> notified = co_await self->ended.wait(std::stop_token());
      (void)notified;  // Without a stop it always is notified.
    }
  }

  io::Loop& loop;
  const kube::Client& client;
  const std::shared_ptr<kube::Fence> fence;  // May be null.
  const Log log;
  const Options options;
  Handlers handlers;  // Emptied when the elector is gone.
  ElectionMachine machine;
  WallTime wall_until;  // The machine's leading_until(), by the time of day.
  Gauge& leading;
  std::stop_source stop;
  bool is_running = false;
  bool is_shown_leading = false;
  std::string last_error;
  io::Loop::Timer expiry;
  io::Event ended;
};

LeaderElector::LeaderElector(io::Loop& loop, const kube::Client& client,
                             std::shared_ptr<kube::Fence> fence, Metrics& metrics, Log log,
                             Options options, Handlers handlers)
    : state_(std::make_shared<State>(loop, client, std::move(fence), metrics, std::move(log),
                                     std::move(options), std::move(handlers))) {}

LeaderElector::~LeaderElector() {
  state_->handlers = {};
  state_->stop.request_stop();
}

void LeaderElector::start() {
  state_->start();
}

io::Task<void> LeaderElector::stop() {
  return State::wait_until_ended(state_);
}

bool LeaderElector::is_leading() const {
  return state_->machine.is_leading(io::Loop::now());
}

std::string LeaderElector::holder() const {
  return state_->machine.holder();
}

}  // namespace hangar::reconcile
