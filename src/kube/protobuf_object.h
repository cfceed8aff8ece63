// What identifies an object in the protobuf encoding of Kubernetes.
#pragma once

#include "kube/object.h"

#include <optional>
#include <string_view>

namespace hangar::kube {

// The same as identify() for an object in Kubernetes' protobuf envelope. std::nullopt for a Status,
// a list, and all other bytes. Reads a bounded number of fields, and relies on metadata being the
// first field of an object, as it is in all kinds with metadata.
[[nodiscard]] std::optional<Identification> identify_protobuf(std::string_view bytes);

// For bytes that are either.
[[nodiscard]] std::optional<Identification> identify_json_or_protobuf(std::string_view bytes);

}  // namespace hangar::kube
