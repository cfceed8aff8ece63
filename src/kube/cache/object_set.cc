#include "kube/cache/object_set.h"

#include "io/loop.h"
#include "io/shared_slice.h"
#include "io/task.h"
#include "kube/limits.h"

#include <utility>

namespace hangar::kube {

namespace {

io::Task<void> drop(io::SharedSlice slice, ObjectSet objects) {
  while (!objects.empty()) {
    co_await slice.turn();
    do
      objects.erase(objects.begin());
    while (!slice.is_used_up_by(limits::kCacheFreedObjectCost) && !objects.empty());
  }
}

}  // namespace

void drop_in_slices(io::Loop& loop, io::SharedSlice slice, ObjectSet objects) {
  if (!objects.empty()) loop.spawn(drop(std::move(slice), std::move(objects)));
}

}  // namespace hangar::kube
