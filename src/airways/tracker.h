// Which instances a change in the cluster concerns.
//
// Fed with what each run looked up and released; asked for every delta of a watched kind. Lookups
// count from the moment they are made, not from the end of the run: what changes while a flight
// still runs must evaluate it once more. Loop thread only.
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
  External,   // Found, not ours, allowed by a matcher.
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

  // A run begins. What earlier runs tracked stays until it ends well.
  void begin(const ResourceRef& instance, Mode mode);
  // During the run. A forbidden lookup is not told.
  void looked_up(const ResourceRef& instance, const ResourceRef& resource, LookupOutcome outcome);
  // Before the first apply of the run: everything it releases.
  void releasing(const ResourceRef& instance, std::span<const ResourceRef> resources);
  // The run and its apply ended. Succeeded: this run's references replace all earlier ones.
  // Otherwise both count.
  enum class End : std::uint8_t { Succeeded, Failed };
  void end(const ResourceRef& instance, End end);
  // The instance is gone.
  void forget(const ResourceRef& instance);

  // The instances to evaluate again:
  //   standard, static: none; dynamic: whose child was modified or deleted (status included);
  //   subscription: the same of those children that it looked up; dynamic and subscription: who
  //   looked up something external that was added, modified or deleted.
  // In the order of their names. A delta that only repeats our own write is not to be told.
  [[nodiscard]] std::vector<ResourceRef> concerned(const ResourceRef& resource,
                                                   Change change) const;

  // Everything that counts for one instance: its kinds are to be watched.
  [[nodiscard]] std::vector<ResourceRef> tracked(const ResourceRef& instance) const;
  [[nodiscard]] std::size_t instance_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hangar::airways
