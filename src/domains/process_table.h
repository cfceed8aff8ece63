// Which guest processes there are to be.
#pragma once

#include "base/time.h"
#include "budget/consumer.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace hangar::domains {

// Whose guests share a process.
using Domain = budget::Tenant;

// A machine: what is wanted and what has happened in, what to do out.
//
// Guarantees: no more processes than `processes_max`, those included that are ending; of a domain
// one at a time that takes runs; a domain that waits gets one, the longest waiting first, however
// busy the others are, since one of them takes no more runs then and is ended after its last. One
// that is idle is kept for `linger`, or until its place is needed: the least recently used first.
class ProcessTable {
 public:
  using Id = std::uint64_t;
  struct Options {
    // One that is idle has less than a MiB of its own, so that all of them together are small
    // beside one guest that works.
    std::size_t processes_max = 32;
    // A burst of changes finds it, and a quiet host has none.
    Duration linger = std::chrono::seconds(5);
  };
  struct Start {
    Id process = 0;
    Domain domain;
  };
  // To be carried out in this order.
  struct Actions {
    std::vector<Id> end;
    std::vector<Start> start;
  };

  explicit ProcessTable(Options options) : options_(options) {}

  // The domain's process that takes runs.
  [[nodiscard]] std::optional<Id> find(const Domain& domain) const;
  // Somebody waits for find() to have an answer.
  [[nodiscard]] Actions want(const Domain& domain, Instant now);
  // Nobody waits any more.
  void forget(const Domain& domain);

  void begin_run(Id process);
  // Of a process that is gone nothing is to be said.
  [[nodiscard]] Actions end_run(Id process, Instant now);

  // It takes no more runs: it has broken a rule, or is in nobody's reach. The caller ends it.
  void give_up(Id process);
  // It is gone, whoever wanted that. Unknown numbers are not an error.
  [[nodiscard]] Actions ended(Id process, Instant now);

  [[nodiscard]] Actions look(Instant now);
  // When to look again.
  [[nodiscard]] std::optional<Instant> look_at() const;

  [[nodiscard]] std::size_t size() const { return processes_.size(); }
  [[nodiscard]] std::size_t waiting_count() const { return waiting_.size(); }

 private:
  enum class State : std::uint8_t {
    Open,      // Takes runs.
    Draining,  // Takes none, and is ended after its last.
    Ending,
  };
  struct Process {
    Domain domain;
    State state = State::Open;
    std::size_t runs = 0;
    bool is_new = true;  // Who waited for it has not begun a run yet.
    Instant used;        // When its last run ended, or it was started.
    Instant began;
  };

  // Gives those that wait their places, or sees to it that there will be some.
  void serve(Instant now, Actions& actions);
  void start(const Domain& domain, Instant now, Actions& actions);
  void end(Id process, Actions& actions);
  [[nodiscard]] std::size_t places_to_come() const;

  const Options options_;
  Id last_ = 0;
  std::map<Id, Process> processes_;
  std::deque<Domain> waiting_;  // Each once.
};

}  // namespace hangar::domains
