#include "reconcile/newest.h"

#include "reconcile/predicates.h"

#include <utility>

namespace hangar::reconcile {

namespace {

bool is_older_state(const kube::Object& left, const kube::Object& right) {
  return left.uid() == right.uid() && is_older(left.resource_version(), right.resource_version());
}

// `known` has the content that the bare `cached` lacks.
bool completes(const kube::Object& known, const kube::Object& cached) {
  return cached.is_bare() && known.uid() == cached.uid() &&
         known.resource_version() == cached.resource_version();
}

}  // namespace

void Newest::remember(kube::ObjectPtr object, const kube::ObjectPtr& cached, Origin origin) {
  const kube::ObjectKey& key = object->key();
  // The watch may be faster than the answer, and by now the object may be gone or replaced.
  const bool is_wanted = cached && (is_older_state(*cached, *object) ||
                                    (origin == Origin::Whole && completes(*object, *cached)));
  if (!is_wanted) {
    known_.erase(key);
    return;
  }
  // Neither labels nor the status of a custom resource count in its generation, so a new generation
  // means that another client has changed the spec, and that is news.
  const bool is_own = origin == Origin::OwnWrite && cached->generation() == object->generation();
  origin = is_own ? Origin::OwnWrite : Origin::Read;
  Known& known = known_[key];
  const bool is_first = known.object == nullptr;
  if (!is_first && is_older_state(*object, *known.object)) return;
  // A state that was read before is news until a delta has reported it.
  const bool has_news = !is_first && known.origin == Origin::Read;
  known = {.object = std::move(object), .origin = has_news ? Origin::Read : origin};
}

kube::ObjectPtr Newest::of(const kube::ObjectPtr& cached) const {
  if (!cached) return nullptr;
  const auto found = known_.find(cached->key());
  if (found == known_.end()) return cached;
  const kube::ObjectPtr& known = found->second.object;
  return is_older_state(*cached, *known) || completes(*known, *cached) ? known : cached;
}

Newest::News Newest::on_delta(const kube::Delta& delta) {
  const auto found = known_.find(delta.object->key());
  if (found == known_.end()) return News::Change;
  const Known known = found->second;
  const bool is_same_object = known.object->uid() == delta.object->uid();
  const bool is_before = is_same_object && is_older_state(*delta.object, *known.object);
  if (!is_before || delta.type == kube::Delta::Type::Deleted) known_.erase(found);
  if (delta.type != kube::Delta::Type::Modified || !is_same_object) return News::Change;
  const bool is_told =
      is_before || delta.object->resource_version() == known.object->resource_version();
  return is_told && known.origin == Origin::OwnWrite ? News::Echo : News::Change;
}

}  // namespace hangar::reconcile
