// Spans as the body of an OTLP request: ExportTraceServiceRequest of opentelemetry-proto, in
// protobuf. Pure.
#pragma once

#include "tracing/span.h"

#include <span>
#include <string>
#include <string_view>

namespace hangar::tracing {

// The path below a collector's URL, and the type of the body.
inline constexpr std::string_view kTracesPath = "/v1/traces";
inline constexpr std::string_view kOtlpType = "application/x-protobuf";

// The program that made the spans.
struct Origin {
  std::string version;   // Version of hangar.
  std::string instance;  // Id of the process, such as its pod.
};

[[nodiscard]] std::string otlp_of(std::span<const Span> spans, const Origin& origin);

}  // namespace hangar::tracing
