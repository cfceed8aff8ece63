#include "gateway/view.h"

#include "gateway/gateway.h"
#include "gateway/history.h"
#include "gateway/selector.h"
#include "json/value.h"
#include "kube/cache/store.h"
#include "kube/object.h"

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
    : place_{.namespace_ = std::move(namespace_in), .name = fields.required_name().value_or("")},
      labels_(std::move(labels)),
      fields_(std::move(fields)) {
  if (place_.namespace_.empty()) place_.namespace_ = fields_.required_namespace().value_or("");
}

bool View::sees(const kube::Object& object) const {
  const kube::ObjectKey& key = object.key();
  if (!namespace_().empty() && key.namespace_ != namespace_()) return false;
  if (!fields_.matches(key)) return false;
  if (labels_.selects_all()) return true;
  const json::Value document = object.to_value();
  return labels_.matches(json::object_at(document, {"metadata", "labels"}));
}

std::optional<WatchLine> View::see(Sight& sight) const {
  const Change& change = sight.change();
  const kube::ObjectKey& key = change.object->key();
  if (!namespace_().empty() && key.namespace_ != namespace_()) return std::nullopt;
  if (!fields_.matches(key)) return std::nullopt;
  const bool selects_all = labels_.selects_all();
  const bool is_in =
      change.type != Type::Deleted && (selects_all || labels_.matches(sight.labels()));
  const bool was_in = change.previous && (selects_all || labels_.matches(sight.previous_labels()));
  if (is_in) {
    return WatchLine{was_in ? WatchLine::Type::Modified : WatchLine::Type::Added, change.object};
  }
  if (!was_in) return std::nullopt;
  return WatchLine{WatchLine::Type::Deleted,
                   change.type == Type::Deleted ? change.object : sight.left()};
}

}  // namespace hangar::gateway
