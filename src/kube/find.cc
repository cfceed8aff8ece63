#include "kube/find.h"

#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/object.h"

#include <stop_token>
#include <utility>

namespace hangar::kube {

io::Task<Result<ObjectPtr>> find(const Client& client, Resource resource, ObjectKey key,
                                 std::stop_token stop) {
  const List list = HANGAR_CO_TRY(co_await client.list(
      std::move(resource),
      {.namespace_ = key.namespace_, .field_selector = "metadata.name=" + key.name},
      std::move(stop)));
  co_return list.items.empty() ? nullptr : list.items.front();
}

}  // namespace hangar::kube
