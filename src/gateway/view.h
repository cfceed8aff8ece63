// What one watch or list shows of a collection: a namespace, a name, selectors.
#pragma once

#include "gateway/gateway.h"
#include "gateway/history.h"
#include "kube/labels.h"
#include "kube/object.h"
#include "kube/selection.h"
#include "kube/selector.h"

#include <optional>
#include <string>

namespace hangar::gateway {

// A change while it is looked at by many: what each would work out again is worked out once.
class Sight {
 public:
  explicit Sight(const Change& change) : change_(change) {}

  [[nodiscard]] const Change& change() const { return change_; }
  [[nodiscard]] const kube::Labels& labels();
  // There is a previous object.
  [[nodiscard]] const kube::Labels& previous_labels();
  // The previous object with this change's version: how a watch tells that it left its selector.
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
  // `requested`: namespace and name as they stand in the request's path, empty where they do not.
  View(kube::ObjectKey requested, kube::LabelSelector labels, kube::FieldSelector fields);

  // What the request itself names, and is authorised in; empty: all namespaces. A field selector
  // on the namespace narrows what is seen and not what is asked for.
  [[nodiscard]] std::string requested_namespace() const;
  // Every object that is seen has this namespace and name; empty: any.
  [[nodiscard]] const kube::ObjectKey& place() const { return selection_.place(); }
  [[nodiscard]] const std::string& namespace_() const { return place().namespace_; }
  [[nodiscard]] const std::string& name() const { return place().name; }
  // As they were written; empty when there are none.
  [[nodiscard]] std::string label_selector() const { return selection_.label_selector(); }
  [[nodiscard]] std::string field_selector() const { return selection_.field_selector(); }

  [[nodiscard]] bool sees(const kube::Object& object) const { return selection_.matches(object); }
  // What the change looks like from here, as the API server has it: what enters a selector is
  // Added, what leaves it is Deleted.
  [[nodiscard]] std::optional<WatchLine> see(Sight& sight) const;

 private:
  kube::Selection selection_;
  bool is_of_namespace_ = false;  // The request names place().namespace_.
};

}  // namespace hangar::gateway
