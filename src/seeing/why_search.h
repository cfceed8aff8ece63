// The search of `hangar why`: from the writes on an object back to their causes. It takes stories
// from the newest to the oldest. No I/O.
#pragma once

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
  // Group, namespace, name and version; the version is zero for a deletion.
  using ObjectKey = std::tuple<std::string, std::string, std::string, std::uint64_t>;
  // Host, contract, namespace, name, instance and id.
  using IdKey = std::tuple<std::uint64_t, recorder::Contract, std::string, std::string,
                           std::uint64_t, std::uint64_t>;

  [[nodiscard]] bool is_of_target(const recorder::Request& request) const;
  [[nodiscard]] bool is_complete() const;
  void want_causes_of(std::size_t step);
  void link(const std::vector<Wanted>& wanted, std::size_t step,
            std::optional<std::size_t> request);

  const WhyTarget target_;
  const Limits limits_;
  WhyFindings findings_;
  // Entries of versions_ stay when a write is found: a write that changed nothing has the version
  // of the write before it.
  std::map<ObjectKey, std::vector<Wanted>> versions_;
  std::map<ObjectKey, std::vector<Wanted>> deletions_;
  std::map<IdKey, std::vector<Wanted>> requests_;
  std::map<IdKey, std::vector<Wanted>> timers_;
};

}  // namespace hangar::seeing
