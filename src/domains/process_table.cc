#include "domains/process_table.h"

#include "base/assert.h"
#include "base/time.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace hangar::domains {

std::optional<ProcessTable::Id> ProcessTable::find(const Domain& domain) const {
  for (const auto& [id, process] : processes_) {
    if (process.state == State::Open && process.domain == domain) return id;
  }
  return std::nullopt;
}

ProcessTable::Actions ProcessTable::want(const Domain& domain, Instant now) {
  Actions actions;
  if (find(domain)) return actions;
  if (std::ranges::find(waiting_, domain) == waiting_.end()) waiting_.push_back(domain);
  serve(now, actions);
  return actions;
}

void ProcessTable::forget(const Domain& domain) {
  std::erase(waiting_, domain);
}

void ProcessTable::begin_run(Id process) {
  const auto found = processes_.find(process);
  HANGAR_ASSERT(found != processes_.end() && found->second.state == State::Open,
                "runs begin where find() says");
  ++found->second.runs;
  found->second.is_new = false;
}

ProcessTable::Actions ProcessTable::end_run(Id process, Instant now) {
  Actions actions;
  const auto found = processes_.find(process);
  if (found == processes_.end()) return actions;
  HANGAR_ASSERT(found->second.runs > 0, "a run ends once");
  --found->second.runs;
  found->second.used = now;
  if (found->second.runs == 0 && found->second.state == State::Draining) end(process, actions);
  serve(now, actions);
  return actions;
}

void ProcessTable::give_up(Id process) {
  const auto found = processes_.find(process);
  if (found != processes_.end()) found->second.state = State::Ending;
}

ProcessTable::Actions ProcessTable::ended(Id process, Instant now) {
  Actions actions;
  processes_.erase(process);
  serve(now, actions);
  return actions;
}

ProcessTable::Actions ProcessTable::look(Instant now) {
  Actions actions;
  for (const auto& [id, process] : processes_) {
    const bool is_idle = process.state == State::Open && process.runs == 0;
    if (is_idle && process.used + options_.linger <= now) end(id, actions);
  }
  return actions;
}

std::optional<Instant> ProcessTable::look_at() const {
  std::optional<Instant> at;
  for (const auto& [id, process] : processes_) {
    if (process.state != State::Open || process.runs > 0) continue;
    const Instant due = process.used + options_.linger;
    if (!at || due < *at) at = due;
  }
  return at;
}

void ProcessTable::serve(Instant now, Actions& actions) {
  while (!waiting_.empty() && processes_.size() < options_.processes_max) {
    const Domain domain = waiting_.front();
    waiting_.pop_front();
    start(domain, now, actions);
  }
  while (places_to_come() < waiting_.size()) {
    // Idle processes go first, the least recently used one before the others; then busy ones, the
    // one that has had its place for longest.
    auto next = processes_.end();
    for (auto at = processes_.begin(); at != processes_.end(); ++at) {
      if (at->second.state != State::Open || at->second.is_new) continue;
      const bool is_idle = at->second.runs == 0;
      if (next == processes_.end()) {
        next = at;
      } else if (const bool next_is_idle = next->second.runs == 0; is_idle != next_is_idle) {
        if (is_idle) next = at;
      } else if (is_idle ? at->second.used < next->second.used
                         : at->second.began < next->second.began) {
        next = at;
      }
    }
    if (next == processes_.end()) return;
    if (next->second.runs == 0) {
      end(next->first, actions);
    } else {
      next->second.state = State::Draining;
    }
  }
}

void ProcessTable::start(const Domain& domain, Instant now, Actions& actions) {
  processes_.emplace(++last_, Process{.domain = domain, .used = now, .began = now});
  actions.start.push_back({.process = last_, .domain = domain});
}

void ProcessTable::end(Id process, Actions& actions) {
  processes_.at(process).state = State::Ending;
  actions.end.push_back(process);
}

std::size_t ProcessTable::places_to_come() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      processes_, [](const auto& entry) { return entry.second.state != State::Open; }));
}

}  // namespace hangar::domains
