// Ids of traces: each turn of a guest is one, and its requests are spans of it.
//
// Ids are computed and not stored: a request carries to the API server, before its turn has ended,
// the id of the span that is exported afterwards. Only the holder of the key can compute ids, so
// guests cannot choose them.
#pragma once

#include "recorder/record.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::recorder {

// The annotation of an object that names the trace in which it was written, as a W3C traceparent.
inline constexpr std::string_view kTraceAnnotation = "hangar.dev/traceparent";
// Its value in the JSON of an object; empty: none. Unchecked.
[[nodiscard]] std::string_view traceparent_in(std::string_view document);

using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

// A span of another program.
struct TraceContext {
  TraceId trace{};
  SpanId span{};

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};
// Reads a header as W3C's Trace Context defines it. std::nullopt: it is not valid.
[[nodiscard]] std::optional<TraceContext> parse_traceparent(std::string_view text);

struct TurnTrace {
  TraceId trace{};
  SpanId span{};
  bool is_sampled = false;  // By the ratio; errors are exported nevertheless.

  friend bool operator==(const TurnTrace&, const TurnTrace&) = default;
};

// Any thread.
class TraceIds {
 public:
  // `ratio`: the share of turns that is sampled, from 0 to 1.
  TraceIds(std::string key, double ratio);

  [[nodiscard]] TurnTrace of_turn(const Guest& guest, std::uint64_t turn) const;
  [[nodiscard]] SpanId of_request(const TurnTrace& turn, std::uint64_t id) const;
  // The header of a request, as W3C's Trace Context defines it.
  [[nodiscard]] std::string traceparent(const Guest& guest, std::uint64_t turn,
                                        std::uint64_t id) const;

 private:
  const std::string key_;
  const std::uint64_t sampled_below_;
};

}  // namespace hangar::recorder
