// Which objects of a collection somebody wants: of a namespace, of a name, by selectors.
#pragma once

#include "kube/labels.h"
#include "kube/object.h"
#include "kube/selector.h"

#include <memory>
#include <string>

namespace hangar::kube {

// Immutable, any thread.
class Selection {
 public:
  // Everything.
  Selection() = default;
  // `requested`: namespace and name as they stand in a request's path, empty where they do not.
  Selection(ObjectKey requested, LabelSelector labels, FieldSelector fields);

  // Every object that is selected has this namespace and name; empty: any.
  [[nodiscard]] const ObjectKey& place() const { return place_; }
  // As they were written; empty when there are none.
  [[nodiscard]] std::string label_selector() const;
  [[nodiscard]] std::string field_selector() const;
  // Some term is one that only the server evaluates: covers() takes it to hold.
  [[nodiscard]] bool has_remote_terms() const;

  // As far as namespace and name say.
  [[nodiscard]] bool covers(const ObjectKey& key) const;
  // As far as the labels say.
  [[nodiscard]] bool selects(const Labels& labels) const;
  [[nodiscard]] bool looks_at_labels() const;
  [[nodiscard]] bool matches(const Object& object) const;

 private:
  struct Selectors {
    LabelSelector labels;
    FieldSelector fields;
  };

  ObjectKey place_;
  std::unique_ptr<const Selectors> selectors_;  // Null when there are none, as mostly.
};

}  // namespace hangar::kube
