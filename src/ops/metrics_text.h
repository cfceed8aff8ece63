// The recorded metrics in Prometheus' text format, and the kernel's figures about this process.
#pragma once

#include "base/metrics.h"

#include <string>
#include <vector>

namespace hangar::ops {

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

[[nodiscard]] std::string to_prometheus_text(const std::vector<Metrics::Family>& collected);

// process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_open_fds, process_max_fds, process_start_time_seconds, with the names of Prometheus' own
// clients. Read again at each scrape.
void add_process_metrics(Metrics& metrics);

}  // namespace hangar::ops
