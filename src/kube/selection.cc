#include "kube/selection.h"

#include "kube/labels.h"
#include "kube/object.h"
#include "kube/selector.h"

#include <memory>
#include <string>
#include <utility>

namespace hangar::kube {

Selection::Selection(ObjectKey requested, LabelSelector labels, FieldSelector fields)
    : place_(std::move(requested)) {
  if (place_.name.empty()) place_.name = fields.required_name().value_or("");
  if (place_.namespace_.empty()) place_.namespace_ = fields.required_namespace().value_or("");
  if (labels.text().empty() && fields.text().empty()) return;
  selectors_ = std::make_unique<const Selectors>(std::move(labels), std::move(fields));
}

std::string Selection::label_selector() const {
  return selectors_ ? selectors_->labels.text() : std::string();
}

std::string Selection::field_selector() const {
  return selectors_ ? selectors_->fields.text() : std::string();
}

bool Selection::has_remote_terms() const {
  return selectors_ && selectors_->fields.has_remote_terms();
}

bool Selection::covers(const ObjectKey& key) const {
  if (!place_.namespace_.empty() && key.namespace_ != place_.namespace_) return false;
  if (!place_.name.empty() && key.name != place_.name) return false;
  return !selectors_ || selectors_->fields.matches(key);
}

bool Selection::looks_at_labels() const {
  return selectors_ && !selectors_->labels.selects_all();
}

bool Selection::selects(const Labels& labels) const {
  return !looks_at_labels() || selectors_->labels.matches(labels);
}

bool Selection::matches(const Object& object) const {
  if (!covers(object.key())) return false;
  return !looks_at_labels() || selectors_->labels.matches(Labels(object));
}

}  // namespace hangar::kube
