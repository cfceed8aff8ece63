// A module into an OCI registry, as an artifact that this host fetches again, and yoke's tools too:
// what `hangar build go --push` and `hangar stow` do.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "io/task.h"
#include "modules/docker_config.h"
#include "modules/reference.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::modules {

struct PushOptions {
  std::filesystem::path module;
  OciSource target;  // With a tag.
  std::vector<std::string> more_tags = {};
  DockerConfig credentials;
  std::shared_ptr<const http::Transport> transport;
  bool plain_http = false;     // Where https does not answer; on loopback always.
  std::filesystem::path work;  // A private directory for the compressed module.
};

struct Pushed {
  std::string reference;  // By digest: "oci://registry/repository@sha256:...".
  std::string sha256;     // Of the module.
  std::uint64_t compressed_bytes = 0;
};

// "oci://registry/repository:tag" as a place to push to. InvalidInput for anything else, a digest
// included: the push determines it.
[[nodiscard]] Result<OciSource> read_push_target(const std::string& text);

// The manifest of a module: its layer is the module, compressed with gzip.
[[nodiscard]] std::string module_manifest(const std::string& layer_digest,
                                          std::uint64_t layer_bytes);

// The module is compressed into a file, which is then sent piece by piece. Blocks the loop while it
// reads files: for commands. `client` outlives the task.
// Errors: NotFound (no such file), LimitExceeded (larger than a module may be), Denied,
// Unavailable, Cancelled; InvalidInput when the registry refuses what it is given.
[[nodiscard]] io::Task<Result<Pushed>> push_module(http::Client& client, PushOptions options,
                                                   std::stop_token stop);

}  // namespace hangar::modules
