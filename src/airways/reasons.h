// What an instance's flight has to run for, as the record of its next run tells it. No I/O.
#pragma once

#include "airways/resource_ref.h"
#include "airways/tracker.h"
#include "kube/object.h"
#include "recorder/record.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::airways {

// At most limits::kRecordedReasonsMax of them.
class Reasons {
 public:
  // The instance, a child or a looked-up object changed. Of one object the last change counts.
  // `traceparent`: the trace that the object names; empty: none.
  void add(const ResourceRef& resource, Change change, const kube::Object& object,
           std::string_view traceparent);
  // Anything else, in the words of docs/operating/seeing.md. `what` outlives this object.
  void add(std::string_view what);

  [[nodiscard]] bool is_empty() const { return reasons_.empty(); }
  void clear() { *this = {}; }
  // In the order of their first arrival. Views into this.
  [[nodiscard]] std::vector<recorder::Waking> wakings() const;
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  struct Reason {
    std::string_view what = {};  // Empty: a change of `resource`.
    ResourceRef resource = {};
    Change change = Change::Modified;
    std::uint64_t version = 0;
    std::string traceparent = {};
  };
  // The reason that is equal but for its details, or a new one. Null: there are too many.
  [[nodiscard]] Reason* find_or_make(std::string_view what, const ResourceRef& resource);

  std::vector<Reason> reasons_;
  std::uint64_t left_out_ = 0;
};

}  // namespace hangar::airways
