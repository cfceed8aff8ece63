// Pushes a module to an OCI registry as an artifact that hangar and yoke's tools can fetch: for
// `hangar build go --push` and `hangar stow`.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "io/task.h"
#include "modules/docker_config.h"
#include "modules/reference.h"

#include <cstdint>
#include <filesystem>
#include <functional>
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
  // Reports how many bytes of the compressed module were read for sending; the count restarts when
  // a request is repeated. Called inside the transfer.
  std::function<void(std::uint64_t bytes, std::uint64_t of)> on_progress = {};
  bool plain_http = false;     // Used if https does not answer; always on loopback.
  std::filesystem::path work;  // A private directory for the compressed module.
};

struct Pushed {
  std::string reference;  // With the digest: "oci://registry/repository@sha256:...".
  std::string sha256;     // Of the module.
  std::uint64_t compressed_bytes = 0;
};

// Reads "oci://registry/repository:tag" as the target of a push. InvalidInput for anything else, a
// digest included: the push determines it.
[[nodiscard]] Result<OciSource> read_push_target(const std::string& text);

// The manifest for a module: its layer is the module, compressed with gzip.
[[nodiscard]] std::string module_manifest(const std::string& layer_digest,
                                          std::uint64_t layer_bytes);

// Compresses the module into a file, then sends that in pieces. Blocks the loop while it reads
// files: for commands. `client` outlives the task. Errors: NotFound (no such file), LimitExceeded
// (larger than a module may be), Denied, Unavailable, Cancelled; InvalidInput when the registry
// refuses it.
[[nodiscard]] io::Task<Result<Pushed>> push_module(http::Client& client, PushOptions options,
                                                   std::stop_token stop);

}  // namespace hangar::modules
