// Limits of traces, each with the reason for its value.
#pragma once

#include <chrono>
#include <cstddef>

namespace hangar::tracing {

// Spans that wait for the collector. One takes about 1 KiB.
inline constexpr std::size_t kQueueMax = 4096;
// Spans of one request.
inline constexpr std::size_t kBatchMax = 512;
inline constexpr std::chrono::seconds kBatchEvery{1};
// Time for one request, and to the next one after a failure.
inline constexpr std::chrono::seconds kSendMax{10};
inline constexpr std::chrono::seconds kAgain{5};
// A collector's answer is a few bytes.
inline constexpr std::size_t kAnswerBytesMax = 64 * 1024;

// A text of a span. Names of objects have 253 bytes at most; a guest's path may have 32 KiB.
inline constexpr std::size_t kTextBytesMax = 512;

// Objects that led to a turn and name a trace; users choose how many do.
inline constexpr std::size_t kLinksMax = 8;

// Traces whose turn or requests have not ended yet, and their spans. A request that is never
// answered keeps its trace until newer ones take its place.
inline constexpr std::size_t kTracesMax = 4096;
inline constexpr std::size_t kHeldSpansMax = 8192;
// Requests of one turn that have a span at a time, so that one guest does not displace all others.
inline constexpr std::size_t kTraceSpansMax = 256;
static_assert(2 * kTraceSpansMax + 1 < kHeldSpansMax, "there is always another trace to forget");

}  // namespace hangar::tracing
