#include "operators/operator_series.h"

#include "base/assert.h"
#include "base/seconds.h"
#include "operators/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <utility>

namespace hangar::operators {

namespace {

using Type = Metrics::Type;

MetricLabels of_controller(const OperatorReading& reading) {
  return {{"controller", reading.controller}};
}

MetricLabels of_queue(const OperatorReading& reading) {
  return {{"controller", reading.controller}, {"name", reading.controller}};
}

std::span<const double> turn_bounds() {
  static const std::vector<double> bounds = latency_buckets();
  return bounds;
}

std::span<const double> queue_bounds() {
  static const std::vector<double> bounds = queue_buckets();
  return bounds;
}

// In the order of KnownMethod, all but the last.
constexpr std::array<std::string_view, 7> kMethodNames = {"GET",    "POST", "PUT",    "PATCH",
                                                          "DELETE", "HEAD", "OPTIONS"};

std::string_view name_of(KnownMethod method) {
  return method == KnownMethod::Other ? "other" : kMethodNames[static_cast<std::size_t>(method)];
}

template <class Archive, class Series>
void visit(Archive& archive, Series& series) {
  // Bound by their number, so that a new member does not compile until it is packed.
  auto& [turns_succeeded, failures, traps, restarts, wakes, events, events_coalesced, resumes,
         suspends, resume_time, suspend_time, cpu_time, turn_seconds, queue_seconds, answers] =
      series;
  archive(turns_succeeded, failures, traps, restarts, wakes, events, events_coalesced, resumes,
          suspends, resume_time, suspend_time, cpu_time);
  turn_seconds.visit(archive);
  queue_seconds.visit(archive);
  archive.each(answers, [&](auto& each) { archive(each.method, each.code, each.count); });
}

// A family with one value for each operator.
struct OneEach {
  const char* name;
  const char* help;
  Type type;
  MetricLabels (*labels)(const OperatorReading&);
  double (*value)(const OperatorReading&);
};

double number(std::uint64_t value) {
  return static_cast<double>(value);
}

using Reading = const OperatorReading&;

constexpr auto kOneEach = std::to_array<OneEach>({
    {"controller_runtime_reconcile_errors_total", "Reconciles that failed, by controller.",
     Type::Counter, of_controller, [](Reading of) { return number(of.series.failures); }},
    {"controller_runtime_reconcile_panics_total", "Reconciles that ended in a trap of the guest.",
     Type::Counter, of_controller, [](Reading of) { return number(of.series.traps); }},
    {"controller_runtime_active_workers", "Reconciles that run now.", Type::Gauge, of_controller,
     [](Reading of) { return number(of.turns_under_way); }},
    {"controller_runtime_max_concurrent_reconciles", "Reconciles that may run at once.",
     Type::Gauge, of_controller, [](Reading of) { return number(of.operators); }},
    {"workqueue_depth", "Keys that wait.", Type::Gauge, of_queue,
     [](Reading of) { return number(of.events_waiting); }},
    {"workqueue_adds_total", "Keys that were added.", Type::Counter, of_queue,
     [](Reading of) { return number(of.series.events); }},
    {"workqueue_retries_total", "Keys that were added again because they failed.", Type::Counter,
     of_queue, [](Reading of) { return number(of.series.restarts); }},
    {"hangar_controller_wakes_total", "Turns of an operator's guest after its first.",
     Type::Counter, of_controller, [](Reading of) { return number(of.series.wakes); }},
    {"hangar_controller_events_coalesced_total",
     "Events that an operator's guest was handed in the same wake as another.", Type::Counter,
     of_controller, [](Reading of) { return number(of.series.events_coalesced); }},
    {"hangar_controller_resumes_total", "Wakes of a guest that had left memory.", Type::Counter,
     of_controller, [](Reading of) { return number(of.series.resumes); }},
    {"hangar_controller_resume_seconds_total", "What bringing a guest back has taken.",
     Type::Counter, of_controller, [](Reading of) { return in_seconds(of.series.resume_time); }},
    {"hangar_controller_suspends_total", "How often a guest went to sleep.", Type::Counter,
     of_controller, [](Reading of) { return number(of.series.suspends); }},
    {"hangar_controller_suspend_seconds_total", "What putting a guest to sleep has taken.",
     Type::Counter, of_controller, [](Reading of) { return in_seconds(of.series.suspend_time); }},
    {"hangar_controller_cpu_seconds_total", "Processor time of an operator's guest.", Type::Counter,
     of_controller, [](Reading of) { return in_seconds(of.series.cpu_time); }},
    {"hangar_controller_resident_bytes", "Memory of an operator's guest; none while it sleeps.",
     Type::Gauge, of_controller, [](Reading of) { return number(of.resident_bytes); }},
    {"hangar_controller_disk_bytes", "Snapshot of an operator's sleeping guest.", Type::Gauge,
     of_controller, [](Reading of) { return number(of.disk_bytes); }},
});

}  // namespace

SlimHistogram::SlimHistogram(std::span<const double> bounds) : bounds_(bounds) {
  HANGAR_ASSERT(bounds.size() < counts_.size(), "there is a count for each bucket");
}

void SlimHistogram::observe(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

Histogram::Snapshot SlimHistogram::snapshot() const {
  Histogram::Snapshot snapshot{.upper_bounds = {bounds_.begin(), bounds_.end()}, .sum = sum_};
  std::uint64_t total = 0;
  for (std::size_t bucket = 0; bucket <= bounds_.size(); ++bucket)
    snapshot.cumulative_counts.push_back(total += counts_[bucket]);
  return snapshot;
}

OperatorSeries::OperatorSeries() : turn_seconds(turn_bounds()), queue_seconds(queue_bounds()) {}

KnownMethod known_method(std::string_view method) {
  const auto* const found = std::ranges::find(kMethodNames, method);
  return static_cast<KnownMethod>(found - kMethodNames.begin());
}

bool is_write(KnownMethod method) {
  return method != KnownMethod::Get && method != KnownMethod::Head &&
         method != KnownMethod::Options;
}

void OperatorSeries::answered(KnownMethod method, int code) {
  const auto is_same = [&](const Answers& known) {
    return known.code == code && known.method == method;
  };
  auto found = std::ranges::find_if(answers, is_same);
  if (found == answers.end() && answers.size() + 1 >= limits::kOperatorAnswerKindsMax) {
    method = KnownMethod::Other;
    code = 0;
    found = std::ranges::find_if(answers, is_same);
  }
  if (found == answers.end()) {
    answers.push_back({.method = method, .code = code, .count = 0});
    found = std::prev(answers.end());
  }
  ++found->count;
}

std::string controller_label(const kube::ObjectKey& key) {
  return key.namespace_.empty() ? key.name : fmt::format("{}/{}", key.namespace_, key.name);
}

void add_series(Metrics::Families& families, std::span<const OperatorReading> readings) {
  if (readings.empty()) return;
  for (const OneEach& one : kOneEach) {
    Metrics::Family& family = families.family(one.name, one.help, one.type);
    for (const OperatorReading& reading : readings)
      family.samples.push_back({.labels = one.labels(reading), .value = one.value(reading)});
  }
  Metrics::Family& periods = families.family(
      "hangar_controller_restless_period_seconds",
      "The period of the timer that wakes an operator's guest for nothing; only of those.",
      Type::Gauge);
  for (const OperatorReading& reading : readings) {
    if (!reading.restless_period) continue;
    periods.samples.push_back(
        {.labels = of_controller(reading), .value = in_seconds(*reading.restless_period)});
  }
  Metrics::Family& reconciles = families.family("controller_runtime_reconcile_total",
                                                "Reconciles, by result.", Type::Counter);
  Metrics::Family& times = families.family("controller_runtime_reconcile_time_seconds",
                                           "How long a reconcile took.", Type::Histogram);
  // A turn is both: what the queue's metrics call work, and the reconcile of it.
  Metrics::Family& works = families.family("workqueue_work_duration_seconds",
                                           "How long processing a key took.", Type::Histogram);
  Metrics::Family& waits = families.family("workqueue_queue_duration_seconds",
                                           "How long a key waited.", Type::Histogram);
  Metrics::Family& requests = families.family(
      "rest_client_requests_total",
      "Number of HTTP requests, partitioned by status code, method, and host.", Type::Counter);
  for (const OperatorReading& reading : readings) {
    const std::string& controller = reading.controller;
    const OperatorSeries& series = reading.series;
    reconciles.samples.push_back({.labels = {{"controller", controller}, {"result", "error"}},
                                  .value = number(series.failures)});
    reconciles.samples.push_back({.labels = {{"controller", controller}, {"result", "success"}},
                                  .value = number(series.turns_succeeded)});
    times.samples.push_back(
        {.labels = of_controller(reading), .histogram = series.turn_seconds.snapshot()});
    works.samples.push_back(
        {.labels = of_queue(reading), .histogram = series.turn_seconds.snapshot()});
    waits.samples.push_back(
        {.labels = of_queue(reading), .histogram = series.queue_seconds.snapshot()});
    for (const OperatorSeries::Answers& answers : series.answers) {
      requests.samples.push_back(
          {.labels = {{"code", answers.code == 0 ? "other" : fmt::to_string(answers.code)},
                      {"controller", controller},
                      // hangar's own requests have the API server's host here.
                      {"host", "gateway"},
                      {"method", std::string(name_of(answers.method))}},
           .value = number(answers.count)});
    }
  }
}

OperatorSeriesAccount::~OperatorSeriesAccount() {
  if (is_own_) --pool_.own_count_;
}

OperatorSeries& OperatorSeriesAccount::series() {
  if (!is_own_) return pool_.shared_;
  if (!open_) open_ = std::make_unique<OperatorSeries>(read());
  return *open_;
}

void OperatorSeriesAccount::rest() {
  if (!open_) return;
  Packer packer;
  visit(packer, std::as_const(*open_));
  packed_ = packer.bytes();
  open_.reset();
}

OperatorSeries OperatorSeriesAccount::read() const {
  if (!is_own_) return pool_.shared_;
  if (open_) return *open_;
  OperatorSeries series;
  if (!packed_.empty()) {
    Unpacker unpacker(packed_);
    visit(unpacker, series);
  }
  return series;
}

OperatorSeriesAccount OperatorSeriesPool::take() {
  const bool is_own = own_count_ < own_max_;
  if (is_own) ++own_count_;
  return {*this, is_own};
}

}  // namespace hangar::operators
