// Makes spans of turns and their requests: each turn is a trace, its requests are children.
//
// Each span of a sampled trace is passed on when it ends. Spans of other traces are held until the
// turn and its requests have ended, and passed on only if one of them is an error: a failed turn, a
// refusal (401, 403, 429 and the like), or a status of 500 and more. Statuses that programs expect
// in the course of their work (404, 409, 410) are not errors. Watches, which last for hours, have
// no span. Names of Secrets are left out.
//
// Guarantees: holds at most kTracesMax traces and kHeldSpansMax spans, and at most kTraceSpansMax
// requests of one trace. A new trace replaces the oldest one, whose unfinished spans are dropped.
// Loop thread.
#pragma once

#include "recorder/observer.h"
#include "recorder/record.h"
#include "recorder/trace_ids.h"
#include "tracing/span.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::tracing {

class TurnSpans final : public recorder::Observer {
 public:
  // `ids` outlives this object. `give` receives each span that has ended.
  TurnSpans(const recorder::TraceIds& ids, std::function<void(Span)> give)
      : ids_(ids), give_(std::move(give)) {}

  void on_turn(const recorder::Turn& turn) override;
  void on_asked(const recorder::Asked& asked) override;
  void on_answered(const recorder::Answered& answered) override;

  // For tests.
  [[nodiscard]] std::size_t trace_count() const { return traces_.size(); }

 private:
  // Contract, namespace, name and instance.
  using GuestName = std::tuple<recorder::Contract, std::string, std::string, std::uint64_t>;
  using TraceName = std::pair<GuestName, std::uint64_t>;  // With the number of the turn.
  struct Trace {
    recorder::TurnTrace ids;
    bool is_kept = false;
    bool has_turn = false;
    std::map<std::uint64_t, Span> open;  // Requests without an answer, by their id.
    std::vector<Span> held;
    std::uint64_t asked = 0;  // Number of requests of the turn, and how many were seen.
    std::uint64_t seen = 0;
    std::uint64_t age = 0;
  };
  using Traces = std::map<TraceName, Trace>;

  [[nodiscard]] Traces::iterator trace_of(const recorder::Guest& guest, std::uint64_t turn);
  void end(Traces::iterator trace, Span span);
  // Whether its turn tells how many requests it has made.
  [[nodiscard]] static bool counts_requests(Traces::const_iterator trace);
  void forget_if_ended(Traces::iterator trace);
  // Forgets the guest's earlier turns.
  void forget_earlier(Traces::iterator trace);
  void forget(Traces::iterator trace);
  // Makes room for one more span: forgets the oldest traces, but not this one.
  void make_room(Traces::iterator trace);

  const recorder::TraceIds& ids_;
  const std::function<void(Span)> give_;
  Traces traces_;
  std::map<std::uint64_t, Traces::iterator> by_age_;
  std::uint64_t last_age_ = 0;
  std::size_t span_count_ = 0;  // Open and held ones.
  // The turns of requests without an answer.
  std::map<std::pair<GuestName, std::uint64_t>, std::uint64_t> turns_;
};

}  // namespace hangar::tracing
