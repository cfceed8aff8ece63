#include "domains/process_table.h"

#include "base/assert.h"
#include "base/time.h"
#include "budget/consumer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace hangar::domains {

std::string Domain::to_text() const {
  const std::string of = fmt::format("namespace {}", tenant.label());
  return is_alone() ? fmt::format("operator {} of {}", alone, of) : of;
}

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

void ProcessTable::begin_run(Id process, Stay stay) {
  const auto found = processes_.find(process);
  HANGAR_ASSERT(found != processes_.end() && found->second.state == State::Open,
                "runs begin where find() says");
  ++found->second.runs;
  if (stay == Stay::Remains) ++found->second.remaining_runs;
  found->second.is_new = false;
}

ProcessTable::Actions ProcessTable::end_run(Id process, Instant now, Stay stay) {
  Actions actions;
  const auto found = processes_.find(process);
  if (found == processes_.end()) return actions;
  HANGAR_ASSERT(found->second.runs > 0, "a run ends once");
  --found->second.runs;
  if (stay == Stay::Remains) --found->second.remaining_runs;
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
    const bool is_draining = process.state == State::Draining;
    if (is_draining && process.draining_since + options_.drain_max <= now) end(id, actions);
  }
  serve(now, actions);
  return actions;
}

ProcessTable::Actions ProcessTable::end_idle(Instant now) {
  Actions actions;
  for (const auto& [id, process] : processes_)
    if (process.state == State::Open && process.runs == 0) end(id, actions);
  serve(now, actions);
  return actions;
}

std::optional<Instant> ProcessTable::look_at() const {
  std::optional<Instant> at;
  const auto add = [&at](Instant due) {
    if (!at || due < *at) at = due;
  };
  for (const auto& [id, process] : processes_) {
    if (process.state == State::Draining) add(process.draining_since + options_.drain_max);
    if (process.state != State::Open) continue;
    if (process.runs == 0) add(process.used + options_.linger);
    const Instant remains_until = process.began + options_.remain_min;
    if (process.remaining_runs > 0 && !waiting_.empty() && remains_until > served_) {
      add(remains_until);
    }
  }
  return at;
}

void ProcessTable::serve(Instant now, Actions& actions) {
  served_ = now;
  for (auto at = waiting_.begin();
       at != waiting_.end() && processes_.size() < options_.processes_max;) {
    if (crowd_before(*at)) {
      ++at;
      continue;
    }
    start(*at, now, actions);
    at = waiting_.erase(at);
  }
  // Waiting domains that are blocked by a bound on processes that are alone, by tenant or
  // (std::nullopt) for all tenants.
  std::map<std::optional<budget::Tenant>, std::pair<std::size_t, Crowd>> crowds;
  std::size_t others = 0;
  for (const Domain& domain : waiting_) {
    Crowd crowd = crowd_before(domain);
    if (!crowd) {
      ++others;
      continue;
    }
    const bool is_of_tenant = count_if_alone(domain.tenant) >= options_.alone_of_tenant_max;
    auto& [count, of_whom] = crowds[is_of_tenant ? std::optional(domain.tenant) : std::nullopt];
    ++count;
    of_whom = std::move(crowd);
  }
  for (const auto& [tenant, crowd] : crowds)
    make_room(crowd.first, crowd.second, now, actions);
  make_room(others, [](const Process& /*process*/) { return true; }, now, actions);
}

std::size_t ProcessTable::count_if_alone(const std::optional<budget::Tenant>& tenant) const {
  return static_cast<std::size_t>(std::ranges::count_if(processes_, [&](const auto& entry) {
    const Domain& domain = entry.second.domain;
    return domain.is_alone() && (!tenant || domain.tenant == *tenant);
  }));
}

ProcessTable::Crowd ProcessTable::crowd_before(const Domain& domain) const {
  if (!domain.is_alone()) return {};
  if (count_if_alone(domain.tenant) >= options_.alone_of_tenant_max) {
    return [tenant = domain.tenant](const Process& process) {
      return process.domain.is_alone() && process.domain.tenant == tenant;
    };
  }
  if (count_if_alone(std::nullopt) < options_.alone_max) return {};
  return [](const Process& process) { return process.domain.is_alone(); };
}

std::tuple<bool, bool, Instant> ProcessTable::order_of(const Process& process) {
  const bool is_busy = process.runs > 0;
  return {process.remaining_runs > 0, is_busy, is_busy ? process.began : process.used};
}

void ProcessTable::make_room(std::size_t count, const Crowd& crowd, Instant now, Actions& actions) {
  while (true) {
    std::size_t to_come = 0;
    auto next = processes_.end();
    for (auto at = processes_.begin(); at != processes_.end(); ++at) {
      if (!crowd(at->second)) continue;
      if (at->second.state != State::Open) {
        ++to_come;
        continue;
      }
      if (at->second.is_new) continue;
      const bool remains = at->second.remaining_runs > 0;
      if (remains && at->second.began + options_.remain_min > now) continue;
      if (next == processes_.end() || order_of(at->second) < order_of(next->second)) next = at;
    }
    if (to_come >= count || next == processes_.end()) return;
    if (next->second.runs == 0) {
      end(next->first, actions);
    } else {
      next->second.state = State::Draining;
      next->second.draining_since = now;
      actions.drain.push_back(next->first);
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

}  // namespace hangar::domains
