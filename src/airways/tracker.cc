#include "airways/tracker.h"

#include "airways/limits.h"
#include "airways/resource_ref.h"
#include "airways/terms.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

using Refs = std::unordered_set<ResourceRef>;

// References of one run, or of all runs since the last successful one.
struct References {
  Refs released;    // Children.
  Refs owned;       // Looked up and found, of the release.
  Refs external;    // Looked up, of others or absent.
  Refs candidates;  // Looked up and absent; the run may release them.

  void add(const References& other) {
    released.insert(other.released.begin(), other.released.end());
    owned.insert(other.owned.begin(), other.owned.end());
    external.insert(other.external.begin(), other.external.end());
    candidates.insert(other.candidates.begin(), other.candidates.end());
  }
  [[nodiscard]] std::size_t lookup_count() const {
    return owned.size() + external.size() + candidates.size();
  }
  [[nodiscard]] bool has(const ResourceRef& ref) const {
    return released.contains(ref) || owned.contains(ref) || external.contains(ref) ||
           candidates.contains(ref);
  }
  void for_each(auto&& visit) const {
    for (const Refs* refs : {&released, &owned, &external, &candidates}) {
      for (const ResourceRef& ref : *refs)
        visit(ref);
    }
  }
};

struct Entry {
  Mode mode = Mode::Standard;
  References kept;    // Of earlier runs.
  References latest;  // Of the run in progress.
  bool has_asked = false;

  [[nodiscard]] bool has(const ResourceRef& ref) const { return kept.has(ref) || latest.has(ref); }

  // Whether a change of `ref` evaluates the instance again, because of `references`.
  [[nodiscard]] bool is_concerned_by(const References& references, const ResourceRef& ref,
                                     Change change) const {
    if (mode != Mode::Dynamic && mode != Mode::Subscription) return false;
    if (references.external.contains(ref)) return true;
    // The run itself creates its children: that is not news.
    if (change == Change::Added) return false;
    if (references.owned.contains(ref)) return true;
    return references.released.contains(ref) &&
           (mode == Mode::Dynamic || references.candidates.contains(ref));
  }
};

}  // namespace

struct Tracker::State {
  std::unordered_map<ResourceRef, Entry> entries;  // By instance.
  // Which instances refer to a resource, so that a change is not compared with thousands of
  // instances. The pointers are to keys of `entries`, which do not move.
  std::unordered_map<ResourceRef, std::vector<const ResourceRef*>> instances;

  void link(const ResourceRef& instance, const ResourceRef& resource) {
    const ResourceRef* key = &entries.find(instance)->first;
    std::vector<const ResourceRef*>& linked = instances[resource];
    if (std::ranges::find(linked, key) == linked.end()) linked.push_back(key);
  }
  void unlink(const ResourceRef* instance, const ResourceRef& resource) {
    const auto found = instances.find(resource);
    if (found == instances.end()) return;
    std::erase(found->second, instance);
    if (found->second.empty()) instances.erase(found);
  }
  // The latest run of the instance failed, or did not finish.
  void keep_failed(const ResourceRef& instance, Entry& entry) {
    References failed = std::exchange(entry.latest, {});
    const bool is_full = entry.kept.lookup_count() > limits::kTrackedLookupsMax ||
                         entry.kept.released.size() > limits::kTrackedReleasedMax;
    // Earlier references that are too many give way: then only those of the failed run count.
    if (!is_full) {
      entry.kept.add(failed);
      return;
    }
    const References before = std::exchange(entry.kept, std::move(failed));
    unlink_unused(instance, before);
  }
  // Drops the links of `before` that the instance does not need otherwise.
  void unlink_unused(const ResourceRef& instance, const References& before) {
    const auto found = entries.find(instance);
    before.for_each([&](const ResourceRef& resource) {
      if (!found->second.has(resource)) unlink(&found->first, resource);
    });
  }
};

Tracker::Tracker() : state_(std::make_unique<State>()) {}
Tracker::~Tracker() = default;

void Tracker::begin(const ResourceRef& instance, Mode mode) {
  Entry& entry = state_->entries[instance];
  entry.mode = mode;
  entry.has_asked = false;
  state_->keep_failed(instance, entry);
}

void Tracker::asked(const ResourceRef& instance) {
  const auto found = state_->entries.find(instance);
  if (found != state_->entries.end()) found->second.has_asked = true;
}

bool Tracker::has_asked(const ResourceRef& instance) const {
  const auto found = state_->entries.find(instance);
  return found != state_->entries.end() && found->second.has_asked;
}

void Tracker::looked_up(const ResourceRef& instance, const ResourceRef& resource,
                        LookupOutcome outcome) {
  const auto found = state_->entries.find(instance);
  if (found == state_->entries.end()) return;  // Forgotten while it ran.
  References& latest = found->second.latest;
  switch (outcome) {
    case LookupOutcome::Owned:
      latest.owned.insert(resource);
      break;
    case LookupOutcome::External:
    case LookupOutcome::Absent:
      latest.external.insert(resource);
      break;
    case LookupOutcome::Candidate:
      latest.candidates.insert(resource);
      break;
  }
  state_->link(instance, resource);
}

void Tracker::releasing(const ResourceRef& instance, std::span<const ResourceRef> resources) {
  const auto found = state_->entries.find(instance);
  if (found == state_->entries.end()) return;
  for (const ResourceRef& resource : resources) {
    found->second.latest.released.insert(resource);
    state_->link(instance, resource);
  }
}

void Tracker::end(const ResourceRef& instance, End end) {
  const auto found = state_->entries.find(instance);
  if (found == state_->entries.end()) return;
  Entry& entry = found->second;
  if (end == End::Failed) {
    state_->keep_failed(instance, entry);
    return;
  }
  const References before = std::exchange(entry.kept, std::exchange(entry.latest, {}));
  // Candidates that the run has not released do not count.
  References unreleased;
  for (const ResourceRef& candidate : entry.kept.candidates) {
    if (!entry.kept.released.contains(candidate)) unreleased.candidates.insert(candidate);
  }
  for (const ResourceRef& candidate : unreleased.candidates)
    entry.kept.candidates.erase(candidate);
  state_->unlink_unused(instance, before);
  state_->unlink_unused(instance, unreleased);
}

void Tracker::forget(const ResourceRef& instance) {
  const auto found = state_->entries.find(instance);
  if (found == state_->entries.end()) return;
  for (const References* references : {&found->second.kept, &found->second.latest}) {
    references->for_each(
        [&](const ResourceRef& resource) { state_->unlink(&found->first, resource); });
  }
  state_->entries.erase(found);
}

std::vector<ResourceRef> Tracker::concerned(const ResourceRef& resource, Change change) const {
  std::vector<ResourceRef> concerned;
  const auto found = state_->instances.find(resource);
  if (found == state_->instances.end()) return concerned;
  for (const ResourceRef* instance : found->second) {
    const Entry& entry = state_->entries.find(*instance)->second;
    if (entry.is_concerned_by(entry.kept, resource, change) ||
        entry.is_concerned_by(entry.latest, resource, change)) {
      concerned.push_back(*instance);
    }
  }
  std::ranges::sort(concerned);
  return concerned;
}

std::vector<ResourceRef> Tracker::tracked(const ResourceRef& instance) const {
  std::set<ResourceRef> tracked;
  if (const auto found = state_->entries.find(instance); found != state_->entries.end()) {
    for (const References* references : {&found->second.kept, &found->second.latest}) {
      references->for_each([&](const ResourceRef& resource) { tracked.insert(resource); });
    }
  }
  return {tracked.begin(), tracked.end()};
}

std::size_t Tracker::instance_count() const {
  return state_->entries.size();
}

}  // namespace hangar::airways
