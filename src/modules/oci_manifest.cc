#include "modules/oci_manifest.h"

#include "base/digest.h"
#include "base/result.h"
#include "json/value.h"
#include "modules/limits.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::modules {

namespace {

constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";
constexpr std::string_view kDockerManifest = "application/vnd.docker.distribution.manifest.v2+json";
constexpr std::string_view kDockerList =
    "application/vnd.docker.distribution.manifest.list.v2+json";

// Media types of layers that can only be a module, whatever else the artifact has.
constexpr std::array<std::string_view, 5> kModuleTypes = {
    "application/vnd.yoke.wasm.gzip",
    "application/vnd.yoke.wasm",
    "application/wasm",
    "application/vnd.wasm.content.layer.v1+wasm",
    "application/vnd.module.wasm.content.layer.v1+wasm",
};

// An artifact with more layers is something else; the message lists them all.
constexpr std::size_t kLayersMax = 64;
constexpr std::size_t kMediaTypeBytesMax = 255;  // RFC 6838: 127 + "/" + 127.

std::unexpected<Error> invalid(std::string why) {
  return fail(ErrorKind::InvalidInput, "oci manifest: " + std::move(why));
}

// Untrusted text, made safe for a status.
std::string printable(std::string_view text) {
  std::string safe(text.substr(0, kMediaTypeBytesMax));
  std::ranges::replace_if(safe, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return safe;
}

Result<Descriptor> read_descriptor(const json::Value& value, std::string_view what) {
  constexpr std::string_view kPrefix = "sha256:";
  Descriptor descriptor{.media_type = printable(json::string_at(value, {"mediaType"})),
                        .digest = std::string(json::string_at(value, {"digest"})),
                        .size_bytes = 0};
  if (!descriptor.digest.starts_with(kPrefix) ||
      !is_sha256_hex(std::string_view(descriptor.digest).substr(kPrefix.size()))) {
    return invalid(fmt::format("{} has no sha256 digest", what));
  }
  const std::int64_t size = json::int_at(value, {"size"}, -1);
  if (size < 0) return invalid(fmt::format("{} has no size", what));
  descriptor.size_bytes = static_cast<std::uint64_t>(size);
  return descriptor;
}

bool is_module_type(std::string_view media_type) {
  return std::ranges::find(kModuleTypes, media_type) != kModuleTypes.end();
}

// True for the file system of a container, which is not a module.
bool is_file_system(std::string_view media_type) {
  return media_type.contains(".tar");
}

bool is_wasm_platform(const json::Value& entry) {
  const std::string_view architecture = json::string_at(entry, {"platform", "architecture"});
  const std::string_view os = json::string_at(entry, {"platform", "os"});
  return (architecture.starts_with("wasm") && (os.starts_with("wasi") || os.empty())) ||
         os == "wasip1";
}

// True for signatures and provenance that build tools add next to the images.
bool is_attestation(const json::Value& entry) {
  return json::string_at(entry, {"platform", "architecture"}) == "unknown";
}

Result<ModuleManifest> choose_manifest(const json::Array& entries) {
  if (entries.size() > kLayersMax) return invalid("the index has too many entries");
  std::vector<const json::Value*> candidates;
  std::vector<const json::Value*> for_wasm;
  for (const json::Value& entry : entries) {
    if (is_attestation(entry)) continue;
    candidates.push_back(&entry);
    if (is_wasm_platform(entry)) for_wasm.push_back(&entry);
  }
  if (!for_wasm.empty()) candidates = std::move(for_wasm);
  if (candidates.size() != 1) {
    return invalid(
        fmt::format("the index has {} entries that could be the module: push one for the platform "
                    "wasip1/wasm, or refer to a manifest by its digest",
                    candidates.size()));
  }
  Descriptor manifest = HANGAR_TRY(read_descriptor(*candidates.front(), "the index's entry"));
  if (manifest.media_type == kOciIndex || manifest.media_type == kDockerList) {
    return invalid("the index leads to another index");
  }
  if (manifest.size_bytes > limits::kManifestBytesMax) {
    return invalid("the index's entry is too large for a manifest");
  }
  return ModuleManifest{std::move(manifest)};
}

Result<ModuleLayer> choose_layer(const json::Array& layers) {
  if (layers.empty()) return invalid("has no layers, so no module");
  if (layers.size() > kLayersMax) return invalid("has too many layers for a module");
  std::vector<const json::Value*> candidates;
  std::vector<std::string> types;
  for (const json::Value& layer : layers) {
    const std::string_view type = json::string_at(layer, {"mediaType"});
    types.push_back(printable(type));
    if (is_module_type(type)) candidates.push_back(&layer);
  }
  // oras lets people push a file under any type; its first bytes will tell what it is.
  if (candidates.empty() && layers.size() == 1 && !is_file_system(types.front())) {
    candidates.push_back(&layers.front());
  }
  if (candidates.empty() && std::ranges::all_of(types, is_file_system)) {
    return invalid(
        "is a container image: push the module itself, with yoke stow or as a layer of type "
        "application/wasm");
  }
  if (candidates.size() != 1) {
    return invalid(
        fmt::format("{} of its layers could be the module (types {}): push exactly one "
                    "as application/wasm",
                    candidates.size(), fmt::join(types, ", ")));
  }
  Descriptor blob = HANGAR_TRY(read_descriptor(*candidates.front(), "the module's layer"));
  if (blob.size_bytes > limits::kFetchedBytesMax) {
    return fail(ErrorKind::LimitExceeded, fmt::format("module of {} bytes is larger than {} bytes",
                                                      blob.size_bytes, limits::kFetchedBytesMax));
  }
  return ModuleLayer{std::move(blob)};
}

}  // namespace

std::string_view manifest_media_types() {
  return "application/vnd.oci.image.manifest.v1+json, "
         "application/vnd.oci.image.index.v1+json, "
         "application/vnd.docker.distribution.manifest.v2+json, "
         "application/vnd.docker.distribution.manifest.list.v2+json";
}

Result<std::variant<ModuleLayer, ModuleManifest>> read_manifest(std::string_view bytes) {
  const Result<json::Value> parsed = json::parse(bytes);
  if (!parsed || !parsed->is_object()) return invalid("is not a JSON object");
  if (json::int_at(*parsed, {"schemaVersion"}) != 2) {
    return invalid("is not of schema version 2");
  }
  const json::Array* const layers = json::array_at(*parsed, {"layers"});
  const json::Array* const manifests = json::array_at(*parsed, {"manifests"});
  // Refuse bytes that one reader takes for an image and another for an index.
  if ((layers != nullptr) == (manifests != nullptr)) {
    return invalid("has to have either layers or manifests");
  }
  const std::string_view type = json::string_at(*parsed, {"mediaType"});
  if (layers != nullptr) {
    if (!type.empty() && type != kOciManifest && type != kDockerManifest) {
      return invalid(fmt::format("has layers but calls itself {}", printable(type)));
    }
    return HANGAR_TRY(choose_layer(*layers));
  }
  if (!type.empty() && type != kOciIndex && type != kDockerList) {
    return invalid(fmt::format("has manifests but calls itself {}", printable(type)));
  }
  return HANGAR_TRY(choose_manifest(*manifests));
}

}  // namespace hangar::modules
