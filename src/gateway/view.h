// The part of a collection that one watch or list shows: by namespace, name and selectors; and how
// much of each object.
#pragma once

#include "gateway/gateway.h"
#include "gateway/history.h"
#include "kube/labels.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/selection.h"
#include "kube/selector.h"

#include <optional>
#include <string>

namespace hangar::gateway {

// A change while many viewers look at it; caches the work that all of them share.
class Sight {
 public:
  explicit Sight(const Change& change) : change_(change) {}

  [[nodiscard]] const Change& change() const { return change_; }
  [[nodiscard]] const kube::Labels& labels();
  // Requires a previous object.
  [[nodiscard]] const kube::Labels& previous_labels();
  // The previous object with this change's version: the form in which a watch reports that an
  // object has left its selector.
  [[nodiscard]] const kube::ObjectPtr& left();

 private:
  const Change& change_;
  std::optional<kube::Labels> labels_;
  std::optional<kube::Labels> previous_labels_;
  kube::ObjectPtr left_;
};

class View {
 public:
  // Everything.
  View() = default;
  // `requested`: namespace and name as in the request's path; empty where the path has none.
  View(kube::ObjectKey requested, kube::LabelSelector labels, kube::FieldSelector fields,
       kube::Detail detail = kube::Detail::Whole);

  // The namespace that the request names and is authorised in; empty: all namespaces. A field
  // selector on the namespace narrows what is seen, but not what is authorised.
  [[nodiscard]] std::string requested_namespace() const;
  // Each object that is seen has this namespace and name; empty: any.
  [[nodiscard]] const kube::ObjectKey& place() const { return selection_.place(); }
  [[nodiscard]] const std::string& namespace_() const { return place().namespace_; }
  [[nodiscard]] const std::string& name() const { return place().name; }
  // The selectors as written in the request; empty when there are none.
  [[nodiscard]] std::string label_selector() const { return selection_.label_selector(); }
  [[nodiscard]] std::string field_selector() const { return selection_.field_selector(); }
  // How much of each object the answer contains. The objects at hand may be whole in any case.
  [[nodiscard]] kube::Detail detail() const { return detail_; }

  [[nodiscard]] bool sees(const kube::Object& object) const { return selection_.matches(object); }
  // The change as the API server would report it to this view: an object that enters the selector
  // is Added, one that leaves it is Deleted. Nothing if the view does not show the change. The
  // caller sets the line's detail.
  [[nodiscard]] std::optional<WatchLine> see(Sight& sight) const;

 private:
  kube::Selection selection_;
  bool is_of_namespace_ = false;  // The request names place().namespace_.
  kube::Detail detail_ = kube::Detail::Whole;
};

}  // namespace hangar::gateway
