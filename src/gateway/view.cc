#include "gateway/view.h"

#include "gateway/gateway.h"
#include "gateway/history.h"
#include "kube/cache/store.h"
#include "kube/labels.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/selection.h"
#include "kube/selector.h"

#include <optional>
#include <string>
#include <utility>

namespace hangar::gateway {

using Type = kube::Delta::Type;

const kube::Labels& Sight::labels() {
  if (!labels_) labels_.emplace(*change_.object);
  return *labels_;
}

const kube::Labels& Sight::previous_labels() {
  if (!previous_labels_) previous_labels_.emplace(*change_.previous);
  return *previous_labels_;
}

const kube::ObjectPtr& Sight::left() {
  if (!left_) left_ = with_version(change_.previous, change_.version);
  return left_;
}

View::View(kube::ObjectKey requested, kube::LabelSelector labels, kube::FieldSelector fields,
           kube::Detail detail)
    : is_of_namespace_(!requested.namespace_.empty()), detail_(detail) {
  selection_ = kube::Selection(std::move(requested), std::move(labels), std::move(fields));
}

std::string View::requested_namespace() const {
  return is_of_namespace_ ? namespace_() : std::string();
}

std::optional<WatchLine> View::see(Sight& sight) const {
  // A watch with a selector reports a Modified object as Added or Deleted when it crosses the
  // selector, so the state before counts as much as the state now. Labels are parsed only if the
  // view has a label selector, and once for all viewers.
  const Change& change = sight.change();
  if (!selection_.covers(change.object->key())) return std::nullopt;
  const bool looks_at_labels = selection_.looks_at_labels();
  const bool is_in =
      change.type != Type::Deleted && (!looks_at_labels || selection_.selects(sight.labels()));
  const bool was_in =
      change.previous && (!looks_at_labels || selection_.selects(sight.previous_labels()));
  if (is_in) {
    return WatchLine{was_in ? WatchLine::Type::Modified : WatchLine::Type::Added, change.object};
  }
  if (!was_in) return std::nullopt;
  // A feed that itself has a selector reports Deleted for an object that left the selector, too,
  // and with its present labels. An object whose labels no longer match has to be shown as it last
  // matched, as the API server does.
  const bool is_deleted =
      change.type == Type::Deleted && (!looks_at_labels || selection_.selects(sight.labels()));
  return WatchLine{WatchLine::Type::Deleted, is_deleted ? change.object : sight.left()};
}

}  // namespace hangar::gateway
