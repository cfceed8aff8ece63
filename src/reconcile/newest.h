// The newest known state of an object: the answer to our own write is newer than the cache until
// the watch has caught up.
//
// Without it a controller would work on the state before its own write: it would repeat the write,
// or the server would refuse it (Conflict). Newest holds an object only as long as the cache lags
// behind, or has only a bare one. No I/O.
#pragma once

#include "kube/cache/store.h"
#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace hangar::reconcile {

class Newest {
 public:
  enum class Origin : std::uint8_t {
    OwnWrite,  // The answer to our own write: only we have changed something.
    Read,      // It may have changes of others that no delta has reported yet.
    Whole,     // Read, because the cache has this state bare (kube::Object::is_bare).
  };
  // `cached`: the cache's present state; null when it has no such object.
  void remember(kube::ObjectPtr object, const kube::ObjectPtr& cached, Origin origin);

  [[nodiscard]] kube::ObjectPtr of(const kube::ObjectPtr& cached) const;

  enum class News : std::uint8_t {
    Change,  // By another client, as far as is known.
    Echo,    // Of our own write, or of the answer to it.
  };
  // Has to receive each delta of the cache.
  [[nodiscard]] News on_delta(const kube::Delta& delta);

  // Objects that the cache does not have yet.
  [[nodiscard]] std::size_t size() const { return known_.size(); }

 private:
  struct Known {
    kube::ObjectPtr object;
    Origin origin = Origin::Read;
  };
  std::map<kube::ObjectKey, Known> known_;
};

}  // namespace hangar::reconcile
