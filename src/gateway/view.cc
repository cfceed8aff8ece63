#include "gateway/view.h"

#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/selector.h"
#include "json/value.h"
#include "kube/cache/store.h"
#include "kube/object.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hangar::gateway {

using Type = kube::Delta::Type;

namespace {

const json::Object* labels_of(std::optional<json::Value>& document, const kube::ObjectPtr& object) {
  if (!object) return nullptr;
  if (!document) document = object->to_value();
  return json::object_at(*document, {"metadata", "labels"});
}

}  // namespace

const json::Object* Sight::labels() {
  return labels_of(document_, change_.object);
}

const json::Object* Sight::previous_labels() {
  return labels_of(previous_document_, change_.previous);
}

const kube::ObjectPtr& Sight::left() {
  if (!left_) left_ = with_version(change_.previous, change_.version);
  return left_;
}

View::View(std::string namespace_in, LabelSelector labels, FieldSelector fields)
    : place_{.namespace_ = std::move(namespace_in), .name = fields.required_name().value_or("")} {
  if (place_.namespace_.empty()) place_.namespace_ = fields.required_namespace().value_or("");
  if (labels.text().empty() && fields.text().empty()) return;
  selectors_ = std::make_unique<const Selectors>(std::move(labels), std::move(fields));
}

std::string View::label_selector() const {
  return selectors_ ? selectors_->labels.text() : std::string();
}

std::string View::field_selector() const {
  return selectors_ ? selectors_->fields.text() : std::string();
}

bool View::covers(const kube::ObjectKey& key) const {
  if (!namespace_().empty() && key.namespace_ != namespace_()) return false;
  return !selectors_ || selectors_->fields.matches(key);
}

const LabelSelector* View::required_labels() const {
  return selectors_ && !selectors_->labels.selects_all() ? &selectors_->labels : nullptr;
}

bool View::sees(const kube::Object& object) const {
  if (!covers(object.key())) return false;
  const LabelSelector* const required = required_labels();
  if (required == nullptr) return true;
  const json::Value document = object.to_value();
  return required->matches(json::object_at(document, {"metadata", "labels"}));
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
