// The search of `hangar why`: from the writes on an object back to their causes. It takes stories
// from the newest to the oldest. No I/O.
#pragma once

#include "base/time.h"
#include "recorder/story.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace hangar::seeing {

struct WhyTarget {
  std::string group;
  std::string kind;
  std::string plural;
  std::string namespace_;
  std::string name;

  friend bool operator==(const WhyTarget&, const WhyTarget&) = default;
};

// The origin of one cause of a turn, if it is recorded.
struct WhyLink {
  std::optional<std::size_t> step;     // The turn that requested or wrote it.
  std::optional<std::size_t> request;  // The request of that turn.
};

struct WhyStep {
  recorder::Story story;
  std::vector<WhyLink> links;  // One for each cause.
  std::size_t depth = 0;       // Distance from the object: zero for a turn that wrote it.
};

struct WhyWrite {
  std::size_t step = 0;
  std::size_t request = 0;
};

struct WhyFindings {
  std::vector<WhyStep> steps;
  std::vector<WhyWrite> writes;  // Writes on the object, newest first.
};

class WhySearch {
 public:
  struct Limits {
    std::size_t writes_max = 10;
    std::size_t depth_max = 8;
    std::size_t steps_max = 1000;

    friend bool operator==(const Limits&, const Limits&) = default;
  };
  WhySearch(WhyTarget target, Limits limits);

  // False: older stories cannot contribute any more.
  bool add(recorder::Story story);
  [[nodiscard]] const WhyFindings& findings() const { return findings_; }

 private:
  struct Wanted {
    std::size_t step = 0;
    std::size_t cause = 0;
  };
  // A deletion whose request is wanted. Most answers to deletions have no version, so that times
  // have to tell whether a request deleted this object or an earlier one of the same name.
  struct Deletion {
    Wanted wanted;
    std::string kind;
    std::uint64_t version = 0;
    // The event arrived between these.
    WallTime from;
    WallTime until;
    // From records of the object before its deletion: the request was answered with this version or
    // a later one, or, if its answer has no version, not before this time.
    std::uint64_t version_min = 0;
    WallTime ended_min;
  };
  // Group, namespace, name and version.
  using VersionKey = std::tuple<std::string, std::string, std::string, std::uint64_t>;
  // Group, namespace and name.
  using NameKey = std::tuple<std::string, std::string, std::string>;
  // Host, contract, namespace, name, instance and id.
  using IdKey = std::tuple<std::uint64_t, recorder::Contract, std::string, std::string,
                           std::uint64_t, std::uint64_t>;

  [[nodiscard]] bool is_of_target(const recorder::Request& request) const;
  [[nodiscard]] bool is_of_kind(const recorder::Request& request, const std::string& kind) const;
  [[nodiscard]] bool may_have_caused(const recorder::Request& request,
                                     const Deletion& deletion) const;
  [[nodiscard]] bool is_complete() const;
  // Notes in `deletions_` that their objects existed before.
  void note_objects(const recorder::Story& story);
  // Removes those that the request may have caused from `deletions_`.
  [[nodiscard]] std::vector<Wanted> take_deletions(const recorder::Request& request);
  void want_causes_of(std::size_t step);
  void link(const std::vector<Wanted>& wanted, std::size_t step,
            std::optional<std::size_t> request);

  const WhyTarget target_;
  const Limits limits_;
  WhyFindings findings_;
  // Entries of versions_ stay when a write is found: a write that changed nothing has the version
  // of the write before it.
  std::map<VersionKey, std::vector<Wanted>> versions_;
  std::map<NameKey, std::vector<Deletion>> deletions_;
  std::map<IdKey, std::vector<Wanted>> requests_;
  std::map<IdKey, std::vector<Wanted>> timers_;
};

}  // namespace hangar::seeing
