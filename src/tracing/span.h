// A span of a trace, as OpenTelemetry defines it, with the fields that hangar uses.
#pragma once

#include "base/time.h"
#include "recorder/trace_ids.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::tracing {

struct Span {
  // Numbers of the published protocol.
  enum class Kind : std::uint8_t { Internal = 1, Client = 3 };
  using Value = std::variant<std::string, std::int64_t, bool>;

  recorder::TraceId trace{};
  recorder::SpanId id{};
  std::optional<recorder::SpanId> parent = {};  // Unset: the root of its trace.
  std::string name;
  Kind kind = Kind::Internal;
  WallTime start;
  WallTime end;
  std::vector<std::pair<std::string, Value>> attributes = {};
  std::vector<recorder::TraceContext> links = {};  // Spans that led to this one.
  bool is_sampled = true;
  bool is_error = false;
  std::string error = {};
};

}  // namespace hangar::tracing
