// Compares what a watch shows of an object that a workflow made with what its machine knows. No
// I/O.
#pragma once

#include "json/value.h"
#include "workflows/ledger.h"

#include <optional>
#include <string>
#include <string_view>

namespace hangar::workflows {

// The machine knows a version of the object, so a different version is news.
[[nodiscard]] bool is_followed(const OwnedResource& resource);

struct Sighting {
  std::optional<std::string_view>
      live;                // The object's version. None: the watch has no such object.
  std::string_view watch;  // The version up to which the watch has seen its kind.
};
struct ResourceChange {
  std::string seen;   // For OwnedResource::seen.
  json::Value event;  // For the machine.
};
// None if the machine knows this or a newer version: a watch may lag behind our own writes.
// Requires is_followed().
[[nodiscard]] std::optional<ResourceChange> change_of(const OwnedResource& resource,
                                                      const Sighting& sighting);

}  // namespace hangar::workflows
