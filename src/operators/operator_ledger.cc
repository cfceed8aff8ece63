#include "operators/operator_ledger.h"

#include "base/seconds.h"
#include "io/loop.h"
#include "kube/object.h"
#include "kube/protobuf_object.h"
#include "recorder/limits.h"
#include "recorder/trace_ids.h"

#include <chrono>
#include <optional>
#include <vector>

namespace hangar::operators {

namespace kube_runtime = abi::kube_runtime;

using kube_runtime::TurnOutcome;

namespace {

// From microseconds (a resume) to the longest turn.
std::vector<double> wake_buckets() {
  return {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
          0.025,   0.05,   0.1,     0.25,   0.5,   1,      2.5,   10};
}

recorder::Turn::Outcome recorded_outcome(const TurnOutcome& outcome) {
  if (!outcome.ended || outcome.exit_code.value_or(0) != 0) return recorder::Turn::Outcome::Failed;
  return outcome.exit_code ? recorder::Turn::Outcome::Completed : recorder::Turn::Outcome::Waits;
}

}  // namespace

OperatorMetrics::OperatorMetrics(Metrics& metrics)
    : starts(metrics.counter("hangar_operator_starts_total", "guests that were started")),
      failures(metrics.counter("hangar_operator_failures_total", "guests that failed")),
      wakes(metrics.counter("hangar_operator_wakes_total", "turns after the first")),
      events(metrics.counter("hangar_operator_events_total", "answers handed over to guests")),
      events_coalesced(metrics.counter("hangar_operator_events_coalesced_total",
                                       "answers handed over in the same wake as another")),
      requests(metrics.counter("hangar_operator_requests_total", "requests of guests")),
      suspends(metrics.counter("hangar_operator_suspends_total", "guests that went to sleep")),
      suspend_failures(metrics.counter("hangar_operator_suspend_failures_total",
                                       "guests that could not go to sleep and stayed resident")),
      wake_seconds(metrics.histogram("hangar_operator_wake_seconds",
                                     "from an event's arrival to the end of the guest's turn",
                                     wake_buckets())),
      resume_seconds(metrics.histogram("hangar_operator_resume_seconds",
                                       "from disk to memory, part of a wake", wake_buckets())),
      suspend_seconds(metrics.histogram("hangar_operator_suspend_seconds", "from memory to disk",
                                        wake_buckets())) {}

void OperatorLedger::on_wake(const Wake& wake, const TurnOutcome& outcome) {
  const std::size_t coalesced = wake.arrivals > 1 ? wake.arrivals - 1 : 0;
  ++figures_.wakes;
  figures_.last_wake = io::Loop::wall_now();
  figures_.last_cpu_time = outcome.cpu_time;

  OperatorMetrics& metrics = parts_.metrics;
  metrics.wakes.add();
  metrics.events.add(static_cast<double>(wake.arrivals));
  metrics.events_coalesced.add(static_cast<double>(coalesced));
  metrics.wake_seconds.observe(in_seconds(wake.ended - wake.arrived));

  OperatorSeries& series = series_.series();
  ++series.wakes;
  series.events += wake.arrivals;
  series.events_coalesced += coalesced;
  series.queue_seconds.observe(in_seconds(wake.began - wake.arrived));

  if (!outcome.was_asleep) return;
  figures_.last_resume_time = outcome.resume_time;
  metrics.resume_seconds.observe(in_seconds(outcome.resume_time));
  ++series.resumes;
  series.resume_time += outcome.resume_time;
}

void OperatorLedger::on_turn(Duration took, Duration cpu_time) {
  OperatorSeries& series = series_.series();
  series.turn_seconds.observe(in_seconds(took));
  series.cpu_time += cpu_time;
}

void OperatorLedger::on_failure() {
  parts_.metrics.failures.add();
  ++series_.series().failures;
  ++figures_.failures;
}

void OperatorLedger::on_request() {
  ++figures_.requests;
  parts_.metrics.requests.add();
}

void OperatorLedger::on_sleep(Instant began, bool is_asleep, std::uint64_t disk_bytes) {
  const Instant now = io::Loop::now();
  if (is_asleep) {
    OperatorSeries& series = series_.series();
    ++series.suspends;
    series.suspend_time += now - began;
    parts_.metrics.suspends.add();
    parts_.metrics.suspend_seconds.observe(in_seconds(now - began));
  } else {
    parts_.metrics.suspend_failures.add();
  }
  if (!is_recording()) return;
  parts_.recorder->record(recorder::Slept{.guest = recorded_guest(),
                                          .turn = turn_number(),
                                          .at = now,
                                          .took = now - began,
                                          .disk_bytes = disk_bytes,
                                          .is_asleep = is_asleep});
}

recorder::Guest OperatorLedger::recorded_guest() const {
  const auto since_epoch =
      std::chrono::floor<std::chrono::microseconds>(life_.started_at().time_since_epoch());
  return {.contract = recorder::Contract::Operator,
          .namespace_ = key_.namespace_,
          .name = key_.name,
          .instance = static_cast<std::uint64_t>(since_epoch.count())};
}

void OperatorLedger::record_turn(const TurnContext& context, const TurnOutcome& outcome,
                                 const Woken& woken) const {
  if (!is_recording()) return;
  recorder::Turn turn{.guest = recorded_guest(),
                      .uid = context.uid,
                      .user = context.user,
                      .module = context.module,
                      .number = turn_number(),
                      .arrived = context.arrived,
                      .began = context.began,
                      .ended = io::Loop::now(),
                      .resume = outcome.resume_time,
                      .cpu = outcome.cpu_time,
                      .was_asleep = outcome.was_asleep,
                      .memory_bytes = context.memory_bytes,
                      .outcome = recorded_outcome(outcome),
                      .printed_bytes = outcome.output_dropped_bytes,
                      .asked = outcome.calls.size(),
                      .wakings = woken.wakings(),
                      .wakings_left_out = woken.left_out()};
  for (const kube_runtime::OutputLine& line : outcome.output)
    turn.printed_bytes += line.text.size();
  for (const kube_runtime::Delay& delay : outcome.delays) {
    if (turn.timers.size() == recorder::kTimersMax) break;
    turn.timers.push_back({.id = delay.id, .after = delay.duration});
  }
  turn.timers_left_out = outcome.delays.size() - turn.timers.size();
  parts_.recorder->record(turn);
}

void OperatorLedger::record_request(std::uint64_t id, std::uint64_t turn,
                                    const gateway::RequestTarget& target,
                                    const gateway::Request& request) const {
  if (!is_recording()) return;
  const std::optional<kube::Identification> body = kube::identify_json_or_protobuf(request.body);
  recorder::Asked asked = asked_of(target, request, body);
  asked.guest = recorded_guest();
  asked.turn = turn;
  asked.id = id;
  asked.at = io::Loop::now();
  if (bodies_) bodies_->add(asked);
  if (bodies_ && has_recordable_body(asked) && parts_.may_record_bodies &&
      parts_.may_record_bodies(key_.namespace_)) {
    return parts_.recorder->record(asked, {.bytes = request.body, .secrets = bodies_->names()});
  }
  parts_.recorder->record(asked);
}

std::string OperatorLedger::traceparent(std::uint64_t id, std::uint64_t turn) const {
  if (!is_tracing()) return {};
  return parts_.recorder->trace_ids()->traceparent(recorded_guest(), turn, id);
}

void OperatorLedger::record_answer(std::uint64_t id, int status, std::string_view body) const {
  if (!is_recording()) return;
  const AnsweredObject answered(body);
  parts_.recorder->record(recorder::Answered{.guest = recorded_guest(),
                                             .id = id,
                                             .at = io::Loop::now(),
                                             .status = static_cast<std::uint64_t>(status),
                                             .bytes = body.size(),
                                             .has_object = answered.is_known(),
                                             .object = answered.object()});
}

}  // namespace hangar::operators
