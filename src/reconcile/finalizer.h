// Our finalizer on an object, added and removed without ever losing another owner's.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::reconcile {

enum class Presence : std::uint8_t { Present, Absent };

// The JSON patch that makes `finalizer` present or absent; none when it already is. It contains the
// whole list and the resourceVersion that the list was read with: the server refuses it (Conflict)
// after any other write, also one to the list.
[[nodiscard]] std::optional<json::Value> finalizer_patch(const json::Value& object,
                                                         std::string_view finalizer,
                                                         Presence presence);

// `object`: as last read. Returns the object as it is now. Conflict: read it again. NotFound: it is
// gone, which suits a caller that removes a finalizer. The write is recorded under `field_manager`.
[[nodiscard]] io::Task<Result<json::Value>> add_finalizer(kube::Client client,
                                                          kube::Resource resource,
                                                          json::Value object, std::string finalizer,
                                                          std::string field_manager,
                                                          std::stop_token stop);
[[nodiscard]] io::Task<Result<json::Value>> remove_finalizer(
    kube::Client client, kube::Resource resource, json::Value object, std::string finalizer,
    std::string field_manager, std::stop_token stop);

}  // namespace hangar::reconcile
