// Decides which guest processes should exist.
#pragma once

#include "base/time.h"
#include "budget/consumer.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace hangar::domains {

// The trust domain whose guests share a process.
struct Domain {
  budget::Tenant tenant;
  // The one guest of the tenant that shares its process with no other. Empty: the tenant's
  // other guests.
  std::string alone = {};

  [[nodiscard]] bool is_alone() const { return !alone.empty(); }
  // "namespace team", "operator mirror of namespace team".
  [[nodiscard]] std::string to_text() const;
  auto operator<=>(const Domain&) const = default;
};

// A state machine: demands and events in, actions out.
//
// Guarantees: there are no more processes than `processes_max`, including those that are being
// killed. A domain has at most one process that accepts runs. Every waiting domain gets a process,
// the longest waiting first: if all processes are busy, one is drained, accepts no more runs, and
// is killed after its last run or after `drain_max`. A process with runs that remain keeps its
// place for `remain_min`. At most `alone_of_tenant_max` guests of one tenant, and `alone_max` of
// all tenants, have their own process; a further one waits for one of these places. An idle process
// is kept for `linger`, or until its place is needed: the least recently used one is killed first.
class ProcessTable {
 public:
  using Id = std::uint64_t;
  struct Options {
    // An idle process has less than a MiB of private memory, so that all of them together are small
    // beside one working guest.
    std::size_t processes_max = 32;
    // Long enough to serve a burst of changes, and short enough that a quiet host has no process.
    Duration linger = std::chrono::seconds(5);
    // Leave places to other tenants if all guests of one tenant are alone, and to domains that
    // share a process if all tenants have such guests.
    std::size_t alone_of_tenant_max = 8;
    std::size_t alone_max = 16;
    // Guests that stay usually leave much sooner, unless a turn of one of them takes this long.
    Duration drain_max = std::chrono::seconds(20);
    // If there are too many guests that never sleep, they take turns at the places; each time,
    // those that cannot sleep restart.
    Duration remain_min = std::chrono::seconds(20);
  };
  struct Start {
    Id process = 0;
    Domain domain;
  };
  // The caller carries them out in this order.
  struct Actions {
    std::vector<Id> end;
    std::vector<Id> drain;  // They accept no more runs, and lodgers have to leave.
    std::vector<Start> start;
  };

  explicit ProcessTable(Options options) : options_(options) {}

  // The domain's process that accepts runs, if there is one.
  [[nodiscard]] std::optional<Id> find(const Domain& domain) const;
  // A run of the domain waits until find() returns a process.
  [[nodiscard]] Actions want(const Domain& domain, Instant now);
  // No run of the domain waits any more.
  void forget(const Domain& domain);

  // Remains: the run stays as long as it may, like guests that never sleep.
  enum class Stay : std::uint8_t { Passes, Remains };
  void begin_run(Id process, Stay stay = Stay::Passes);
  // A process that is already gone needs no action.
  [[nodiscard]] Actions end_run(Id process, Instant now, Stay stay = Stay::Passes);

  // The process accepts no more runs: it has broken a rule, or cannot be reached. The caller
  // kills it.
  void give_up(Id process);
  // The process has exited, for whatever reason. Unknown numbers are not an error.
  [[nodiscard]] Actions ended(Id process, Instant now);

  [[nodiscard]] Actions look(Instant now);
  // Ends all that are idle, however short.
  [[nodiscard]] Actions end_idle(Instant now);
  // When to call look() next.
  [[nodiscard]] std::optional<Instant> look_at() const;

  [[nodiscard]] std::size_t size() const { return processes_.size(); }
  [[nodiscard]] std::size_t waiting_count() const { return waiting_.size(); }

 private:
  enum class State : std::uint8_t {
    Open,      // Accepts runs.
    Draining,  // Accepts no more runs, and is killed after its last.
    Ending,
  };
  struct Process {
    Domain domain;
    State state = State::Open;
    std::size_t runs = 0;
    std::size_t remaining_runs = 0;  // How many of them are Stay::Remains.
    bool is_new = true;              // The run that waited for it has not started yet.
    Instant used;                    // When its last run ended, or the process was started.
    Instant began;
    Instant draining_since = {};
  };

  // Gives places to waiting domains, or arranges that places become free.
  void serve(Instant now, Actions& actions);
  // Selects the processes of which one has to exit before `domain` may have one, because of a bound
  // on processes that are alone. Null: no such bound is reached.
  using Crowd = std::function<bool(const Process&)>;
  [[nodiscard]] Crowd crowd_before(const Domain& domain) const;
  // How many processes are alone, of one tenant or of all.
  [[nodiscard]] std::size_t count_if_alone(const std::optional<budget::Tenant>& tenant) const;
  // Arranges that `count` processes of the crowd exit, as far as possible.
  void make_room(std::size_t count, const Crowd& crowd, Instant now, Actions& actions);
  // The process with the lowest key is killed or drained first: idle processes, the least recently
  // used one first; then busy ones; last those with runs that remain, the one with the oldest
  // place first.
  [[nodiscard]] static std::tuple<bool, bool, Instant> order_of(const Process& process);
  void start(const Domain& domain, Instant now, Actions& actions);
  void end(Id process, Actions& actions);

  const Options options_;
  Id last_ = 0;
  Instant served_;  // When places were last assigned.
  std::map<Id, Process> processes_;
  std::deque<Domain> waiting_;  // Each domain once.
};

}  // namespace hangar::domains
