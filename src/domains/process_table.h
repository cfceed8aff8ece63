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
  // The guest of the tenant that shares with nobody. Empty: the tenant's other guests.
  std::string alone = {};

  [[nodiscard]] bool is_alone() const { return !alone.empty(); }
  // "namespace team", "operator mirror of namespace team".
  [[nodiscard]] std::string to_text() const;
  auto operator<=>(const Domain&) const = default;
};

// A machine: demands and events in, actions out.
//
// Guarantees: no more processes than `processes_max`, including those that are ending; of a
// domain one at a time that accepts runs; a waiting domain gets one, the longest waiting first,
// however busy the others are, because one of them then accepts no more runs and is ended after
// its last, or after `drain_max`. A process with runs that remain keeps its place for `remain_min`.
// Of a tenant at most `alone_of_tenant_max` domains that are alone have a process, and `alone_max`
// of all tenants: a further one waits for one of these. An idle process is kept for `linger`, or
// until its place is needed: the least recently used goes first.
class ProcessTable {
 public:
  using Id = std::uint64_t;
  struct Options {
    // An idle process has less than a MiB of its own, so that all of them together are small beside
    // one working guest.
    std::size_t processes_max = 32;
    // Long enough to serve a burst of changes, and short enough that a quiet host has no process.
    Duration linger = std::chrono::seconds(5);
    // So that a tenant whose guests are all alone leaves places to others, and all such tenants to
    // those who share.
    std::size_t alone_of_tenant_max = 8;
    std::size_t alone_max = 16;
    // Guests that stay have left long before, unless a turn of one of them takes this long.
    Duration drain_max = std::chrono::seconds(20);
    // Guests that never sleep take turns at places if there are too many; each time, those that
    // cannot sleep start anew.
    Duration remain_min = std::chrono::seconds(20);
  };
  struct Start {
    Id process = 0;
    Domain domain;
  };
  // The caller carries them out in this order.
  struct Actions {
    std::vector<Id> end;
    std::vector<Id> drain;  // They accept no more runs; guests that stay there are to leave.
    std::vector<Start> start;
  };

  explicit ProcessTable(Options options) : options_(options) {}

  // The domain's process that accepts runs.
  [[nodiscard]] std::optional<Id> find(const Domain& domain) const;
  // A run waits for find() to return a process.
  [[nodiscard]] Actions want(const Domain& domain, Instant now);
  // No run waits any more.
  void forget(const Domain& domain);

  // Remains: for as long as it may, as the guests that never sleep.
  enum class Stay : std::uint8_t { Passes, Remains };
  void begin_run(Id process, Stay stay = Stay::Passes);
  // A process that is already gone needs no action.
  [[nodiscard]] Actions end_run(Id process, Instant now, Stay stay = Stay::Passes);

  // The process accepts no more runs: it has broken a rule, or cannot be reached. The caller
  // ends it.
  void give_up(Id process);
  // The process is gone, whatever the reason. Unknown numbers are not an error.
  [[nodiscard]] Actions ended(Id process, Instant now);

  [[nodiscard]] Actions look(Instant now);
  // When to look again.
  [[nodiscard]] std::optional<Instant> look_at() const;

  [[nodiscard]] std::size_t size() const { return processes_.size(); }
  [[nodiscard]] std::size_t waiting_count() const { return waiting_.size(); }

 private:
  enum class State : std::uint8_t {
    Open,      // Accepts runs.
    Draining,  // Accepts none, and is ended after its last.
    Ending,
  };
  struct Process {
    Domain domain;
    State state = State::Open;
    std::size_t runs = 0;
    std::size_t remaining_runs = 0;  // Of these, those that remain.
    bool is_new = true;              // The run that waited for it has not begun yet.
    Instant used;                    // When its last run ended, or it was started.
    Instant began;
    Instant draining_since = {};
  };

  // Gives places to waiting domains, or makes sure that places will become free.
  void serve(Instant now, Actions& actions);
  // Which processes are in the way of a further one of `domain`, if it is not their number. Null:
  // none are.
  using Crowd = std::function<bool(const Process&)>;
  [[nodiscard]] Crowd crowd_before(const Domain& domain) const;
  // How many processes are alone: of a tenant, or of all.
  [[nodiscard]] std::size_t count_if_alone(const std::optional<budget::Tenant>& tenant) const;
  // Makes sure that `count` processes of the crowd will be gone, as far as they can be.
  void make_room(std::size_t count, const Crowd& crowd, Instant now, Actions& actions);
  // The process with the least goes first: idle ones, the least recently used one before the
  // others; then busy ones, and last those with runs that remain, the one that has had its place
  // for longest.
  [[nodiscard]] static std::tuple<bool, bool, Instant> order_of(const Process& process);
  void start(const Domain& domain, Instant now, Actions& actions);
  void end(Id process, Actions& actions);

  const Options options_;
  Id last_ = 0;
  Instant served_;  // When places were last given.
  std::map<Id, Process> processes_;
  std::deque<Domain> waiting_;  // Each domain once.
};

}  // namespace hangar::domains
