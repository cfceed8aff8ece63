#include "ops/metrics_text.h"

#include "base/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::ops {

namespace {

prometheus::MetricType type_of(Metrics::Type type) {
  switch (type) {
    case Metrics::Type::Counter:
      return prometheus::MetricType::Counter;
    case Metrics::Type::Gauge:
      return prometheus::MetricType::Gauge;
    case Metrics::Type::Histogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric metric_of(Metrics::Type type, const Metrics::Sample& sample) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : sample.labels)
    metric.label.push_back({name, value});
  switch (type) {
    case Metrics::Type::Counter:
      metric.counter.value = sample.value;
      break;
    case Metrics::Type::Gauge:
      metric.gauge.value = sample.value;
      break;
    case Metrics::Type::Histogram:
      metric.histogram.sample_sum = sample.histogram.sum;
      metric.histogram.sample_count = sample.histogram.cumulative_counts.back();
      for (std::size_t index = 0; index < sample.histogram.cumulative_counts.size(); ++index) {
        const bool is_last = index == sample.histogram.upper_bounds.size();
        prometheus::ClientMetric::Bucket bucket;
        bucket.cumulative_count = sample.histogram.cumulative_counts[index];
        bucket.upper_bound = is_last ? std::numeric_limits<double>::infinity()
                                     : sample.histogram.upper_bounds[index];
        metric.histogram.bucket.push_back(bucket);
      }
      break;
  }
  return metric;
}

// Field `index` (from 1, as proc(5) counts) of /proc/self/stat; only fields from the third on,
// because the second may contain spaces.
double stat_field(int index) {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int at = 3; at <= index; ++at)
    rest >> field;
  return std::strtod(field.c_str(), nullptr);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double open_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return 0;
  return static_cast<double>(std::distance(entries, std::filesystem::directory_iterator())) - 1;
}

double descriptors_max() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

double start_time_seconds() {
  std::ifstream file("/proc/stat");
  double boot = 0;
  for (std::string word; file >> word;) {
    if (word == "btime") file >> boot;
  }
  return boot + stat_field(22) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::string to_prometheus_text(const std::vector<Metrics::Family>& collected) {
  std::vector<prometheus::MetricFamily> families;
  for (const Metrics::Family& recorded : collected) {
    prometheus::MetricFamily family;
    family.name = recorded.name;
    family.help = recorded.help;
    family.type = type_of(recorded.type);
    for (const Metrics::Sample& sample : recorded.samples) {
      family.metric.push_back(metric_of(recorded.type, sample));
    }
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

void add_process_metrics(Metrics& metrics) {
  const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  metrics.counter_read("process_cpu_seconds_total", "User and system CPU time, in seconds.",
                       cpu_seconds);
  metrics.gauge_read("process_resident_memory_bytes", "Resident memory, in bytes.",
                     [page] { return stat_field(24) * page; });
  metrics.gauge_read("process_virtual_memory_bytes", "Virtual memory, in bytes.",
                     [] { return stat_field(23); });
  metrics.gauge_read("process_open_fds", "Open file descriptors.", open_descriptors);
  metrics.gauge_read("process_max_fds", "File descriptors that may be open.", descriptors_max);
  metrics.gauge("process_start_time_seconds", "Start of the process, in seconds since the epoch.")
      .set(start_time_seconds());
}

}  // namespace hangar::ops
