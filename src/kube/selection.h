// Selects objects of a collection by namespace, name and selectors.
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
  // Selects everything.
  Selection() = default;
  // `requested`: namespace and name in the request's path; empty where it has none.
  Selection(ObjectKey requested, LabelSelector labels, FieldSelector fields);

  // Every selected object has this namespace and name; empty: any.
  [[nodiscard]] const ObjectKey& place() const { return place_; }
  // As written; empty when there is none.
  [[nodiscard]] std::string label_selector() const;
  [[nodiscard]] std::string field_selector() const;
  // True when only the server can evaluate some term; the functions below assume that it holds.
  [[nodiscard]] bool has_remote_terms() const;

  // Judged by namespace and name alone.
  [[nodiscard]] bool covers(const ObjectKey& key) const;
  // Judged by the labels alone.
  [[nodiscard]] bool selects(const Labels& labels) const;
  [[nodiscard]] bool looks_at_labels() const;
  [[nodiscard]] bool matches(const Object& object) const;

 private:
  struct Selectors {
    LabelSelector labels;
    FieldSelector fields;
  };

  ObjectKey place_;
  std::unique_ptr<const Selectors> selectors_;  // Null when there are none, which is usual.
};

}  // namespace hangar::kube
