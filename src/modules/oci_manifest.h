// Chooses the blob of an OCI artifact that is the module. No I/O: bytes in, a choice out.
//
// Understands artifacts of `yoke stow`, Wasm OCI artifacts, `oras push` with any media type for a
// single layer, docker's manifests, and an index over those.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::modules {

// The value of the Accept header.
[[nodiscard]] std::string_view manifest_media_types();

struct Descriptor {
  std::string media_type;
  std::string digest;  // "sha256:<64 hex>", checked.
  std::uint64_t size_bytes = 0;
};

struct ModuleLayer {
  Descriptor blob;
};
struct ModuleManifest {
  Descriptor manifest;  // An entry of the index that was read: read this one next.
};

// Errors: InvalidInput when it is not a manifest, or when the module's layer is ambiguous (the
// message names the media types); LimitExceeded when the module is larger than
// limits::kFetchedBytesMax.
[[nodiscard]] Result<std::variant<ModuleLayer, ModuleManifest>> read_manifest(
    std::string_view bytes);

}  // namespace hangar::modules
