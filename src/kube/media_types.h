// What a request accepts for an answer.
#pragma once

#include <string_view>

namespace hangar::kube {

inline constexpr std::string_view kJsonType = "application/json";
// Of objects and of watches, and of lists: only the metadata.
inline constexpr std::string_view kMetadataType =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
inline constexpr std::string_view kMetadataListType =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

}  // namespace hangar::kube
