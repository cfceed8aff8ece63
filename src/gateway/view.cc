#include "gateway/view.h"

#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/selector.h"
#include "kube/cache/store.h"
#include "kube/labels.h"
#include "kube/object.h"

#include <memory>
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

View::View(kube::ObjectKey requested, LabelSelector labels, FieldSelector fields)
    : place_(std::move(requested)), is_of_namespace_(!place_.namespace_.empty()) {
  if (place_.name.empty()) place_.name = fields.required_name().value_or("");
  if (place_.namespace_.empty()) place_.namespace_ = fields.required_namespace().value_or("");
  if (labels.text().empty() && fields.text().empty()) return;
  selectors_ = std::make_unique<const Selectors>(std::move(labels), std::move(fields));
}

std::string View::requested_namespace() const {
  return is_of_namespace_ ? namespace_() : std::string();
}

std::string View::label_selector() const {
  return selectors_ ? selectors_->labels.text() : std::string();
}

std::string View::field_selector() const {
  return selectors_ ? selectors_->fields.text() : std::string();
}

bool View::covers(const kube::ObjectKey& key) const {
  if (!namespace_().empty() && key.namespace_ != namespace_()) return false;
  if (!name().empty() && key.name != name()) return false;
  return !selectors_ || selectors_->fields.matches(key);
}

const LabelSelector* View::required_labels() const {
  return selectors_ && !selectors_->labels.selects_all() ? &selectors_->labels : nullptr;
}

bool View::sees(const kube::Object& object) const {
  if (!covers(object.key())) return false;
  const LabelSelector* const required = required_labels();
  return required == nullptr || required->matches(kube::Labels(object));
}

std::optional<WatchLine> View::see(Sight& sight) const {
  const Change& change = sight.change();
  if (!covers(change.object->key())) return std::nullopt;
  const LabelSelector* const required = required_labels();
  const bool is_in =
      change.type != Type::Deleted && (required == nullptr || required->matches(sight.labels()));
  const bool was_in =
      change.previous && (required == nullptr || required->matches(sight.previous_labels()));
  if (is_in) {
    return WatchLine{was_in ? WatchLine::Type::Modified : WatchLine::Type::Added, change.object};
  }
  if (!was_in) return std::nullopt;
  return WatchLine{WatchLine::Type::Deleted,
                   change.type == Type::Deleted ? change.object : sight.left()};
}

}  // namespace hangar::gateway
