// Tells which instances a change in the cluster concerns.
//
// It records what each run looked up and released, and is queried for every delta of a watched
// kind. A lookup counts from the moment when it is made, not from the end of the run: a change
// while a flight still runs must evaluate it once more. Loop thread only.
#pragma once

#include "airways/resource_ref.h"
#include "airways/terms.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hangar::airways {

enum class LookupOutcome : std::uint8_t {
  Owned,      // Found, of the same release.
  External,   // Found, of another owner, allowed by a matcher.
  Absent,     // Not found, allowed by a matcher: its creation counts.
  Candidate,  // Not found, no matcher: counts if this run releases it.
};

enum class Change : std::uint8_t { Added, Modified, Deleted };

class Tracker {
 public:
  Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;
  ~Tracker();

  // A run starts. References of earlier runs stay until it succeeds.
  void begin(const ResourceRef& instance, Mode mode);
  // During the run, at each lookup, whatever its answer will be.
  void asked(const ResourceRef& instance);
  // Whether the run has asked for anything.
  [[nodiscard]] bool has_asked(const ResourceRef& instance) const;
  // During the run. Forbidden lookups are not reported.
  void looked_up(const ResourceRef& instance, const ResourceRef& resource, LookupOutcome outcome);
  // Everything that the run releases; call it before the first apply.
  void releasing(const ResourceRef& instance, std::span<const ResourceRef> resources);
  // The run and its apply have finished. Succeeded: its references replace all earlier ones.
  // Failed: both count, or only the new ones if the earlier ones are too many
  // (limits::kTrackedLookupsMax).
  enum class End : std::uint8_t { Succeeded, Failed };
  void end(const ResourceRef& instance, End end);
  // The instance is gone.
  void forget(const ResourceRef& instance);

  // The instances to evaluate again, in the order of their names:
  //   - standard, static: none;
  //   - dynamic: those of which a child was modified or deleted (status included);
  //   - subscription: the same, for children that they have looked up;
  //   - dynamic and subscription: those that have looked up an external object that was added,
  //     modified or deleted.
  // Do not report a delta that only repeats our own write.
  [[nodiscard]] std::vector<ResourceRef> concerned(const ResourceRef& resource,
                                                   Change change) const;

  // All references of one instance: their kinds have to be watched.
  [[nodiscard]] std::vector<ResourceRef> tracked(const ResourceRef& instance) const;
  [[nodiscard]] std::size_t instance_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hangar::airways
