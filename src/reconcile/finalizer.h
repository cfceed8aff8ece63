// Our finalizer on an object, without ever losing somebody else's.
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

// The JSON patch that makes `finalizer` present or absent; none when it is so already. It says the
// whole list and the resourceVersion that the list was read with: the server refuses it (Conflict)
// when anyone wrote meanwhile, also someone who changed the list.
[[nodiscard]] std::optional<json::Value> finalizer_patch(const json::Value& object,
                                                         std::string_view finalizer,
                                                         Presence presence);

// `object` as it was read last. Returns it as it is now. Conflict: read again. NotFound: it is
// gone, which is what whoever removes a finalizer wants. `field_manager` is what the write is
// signed with.
[[nodiscard]] io::Task<Result<json::Value>> add_finalizer(kube::Client client,
                                                          kube::Resource resource,
                                                          json::Value object, std::string finalizer,
                                                          std::string field_manager,
                                                          std::stop_token stop);
[[nodiscard]] io::Task<Result<json::Value>> remove_finalizer(
    kube::Client client, kube::Resource resource, json::Value object, std::string finalizer,
    std::string field_manager, std::stop_token stop);

}  // namespace hangar::reconcile
