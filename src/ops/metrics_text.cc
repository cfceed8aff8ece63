#include "ops/metrics_text.h"

#include "base/metrics.h"
#include "base/seconds.h"
#include "io/process_use.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hangar::ops {

namespace {

std::string_view type_name(Metrics::Type type) {
  switch (type) {
    case Metrics::Type::Counter:
      return "counter";
    case Metrics::Type::Gauge:
      return "gauge";
    case Metrics::Type::Histogram:
      return "histogram";
  }
  return "untyped";
}

// Formats without the rounding errors of binary sums: 5.55, not 5.5499999999999998.
std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{:.16g}", value);
}

// A line feed in the text would end the line, so it is escaped. Quotes are escaped in values
// of labels.
enum class Quotes : std::uint8_t { Kept, Escaped };
void append_metric_text(std::string& out, std::string_view text, Quotes quotes) {
  for (const char one : text) {
    if (one == '\n') {
      out += "\\n";
    } else if (one == '\\' || (one == '"' && quotes == Quotes::Escaped)) {
      out += '\\';
      out += one;
    } else {
      out += one;
    }
  }
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
  out += out.back() == '{' ? "" : ",";
  out += name;
  out += "=\"";
  append_metric_text(out, value, Quotes::Escaped);
  out += '"';
}

// NAME{LABELS,le="BOUND"} VALUE. An empty `bound`: without that label.
void append_line(std::string& out, std::string_view name, std::string_view suffix,
                 const Metrics::Sample& sample, std::string_view bound, double value) {
  out += name;
  out += suffix;
  if (!sample.labels.empty() || !bound.empty()) {
    out += '{';
    for (const auto& [label, text] : sample.labels)
      append_label(out, label, text);
    if (!bound.empty()) append_label(out, "le", bound);
    out += '}';
  }
  out += ' ';
  out += number(value);
  out += '\n';
}

void append_histogram(std::string& out, std::string_view name, const Metrics::Sample& sample) {
  const auto& histogram = sample.histogram;
  const auto count_of = [&](std::size_t index) {
    return static_cast<double>(histogram.cumulative_counts[index]);
  };
  const std::size_t last = histogram.cumulative_counts.size() - 1;
  append_line(out, name, "_count", sample, "", count_of(last));
  append_line(out, name, "_sum", sample, "", histogram.sum);
  for (std::size_t index = 0; index <= last; ++index) {
    const bool has_bound = index < histogram.upper_bounds.size();
    append_line(out, name, "_bucket", sample,
                has_bound ? number(histogram.upper_bounds[index]) : "+Inf", count_of(index));
  }
}

double own_stat_field(int index) {
  std::ifstream file("/proc/self/stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  return static_cast<double>(io::stat_field(stat, index));
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
  return boot + own_stat_field(22) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::string to_prometheus_text(const std::vector<Metrics::Family>& collected) {
  std::string out;
  for (const Metrics::Family& family : collected) {
    if (!family.help.empty()) {
      out += fmt::format("# HELP {} ", family.name);
      append_metric_text(out, family.help, Quotes::Kept);
      out += '\n';
    }
    out += fmt::format("# TYPE {} {}\n", family.name, type_name(family.type));
    for (const Metrics::Sample& sample : family.samples) {
      if (family.type == Metrics::Type::Histogram) {
        append_histogram(out, family.name, sample);
      } else {
        append_line(out, family.name, "", sample, "", sample.value);
      }
    }
  }
  return out;
}

void add_process_metrics(Metrics& metrics) {
  const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  metrics.counter_read("process_cpu_seconds_total", "User and system CPU time, in seconds.",
                       [] { return in_seconds(io::process_cpu_time()); });
  metrics.gauge_read("process_resident_memory_bytes", "Resident memory, in bytes.",
                     [page] { return own_stat_field(24) * page; });
  metrics.gauge_read("process_virtual_memory_bytes", "Virtual memory, in bytes.",
                     [] { return own_stat_field(23); });
  metrics.gauge_read("process_open_fds", "Open file descriptors.", open_descriptors);
  metrics.gauge_read("process_max_fds", "File descriptors that may be open.", descriptors_max);
  metrics.gauge("process_start_time_seconds", "Start of the process, in seconds since the epoch.")
      .set(start_time_seconds());
}

}  // namespace hangar::ops
