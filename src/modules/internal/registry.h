// Requests to one OCI registry about one repository: authenticates as the registry demands, reads
// and writes manifests and blobs, and checks manifests against their digests.
#pragma once

#include "base/result.h"
#include "http/client.h"
#include "io/task.h"
#include "modules/docker_config.h"
#include "modules/internal/download.h"
#include "modules/oci_manifest.h"
#include "modules/reference.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::modules {

// Loop thread. Used by one task at a time; no call may outlive this object.
class Registry {
 public:
  struct Trust {
    std::shared_ptr<const http::Transport> transport;
    // Plain HTTP may be used if HTTPS does not answer.
    bool plain_http = false;
    std::string requester = {};  // http::Request::requester.
  };

  // `client` outlives it.
  Registry(http::Client& client, OciSource source, Credential credential, Trust trust);

  struct Manifest {
    std::string bytes;
    std::string digest;  // Computed from `bytes`.
  };
  // `reference` is a tag or a digest. Errors: NotFound, Denied, Unavailable, LimitExceeded,
  // Cancelled; InvalidInput when the bytes are not those of the digest.
  [[nodiscard]] io::Task<Result<Manifest>> manifest(std::string reference, std::stop_token stop);

  // The first page of the manifests that refer to that digest, as an OCI index. NotFound where the
  // registry has no API for them; else as for manifest().
  [[nodiscard]] io::Task<Result<std::string>> referrers(std::string digest, std::stop_token stop);

  // The bytes of a blob. They are not yet compared with its digest: a worker must do that.
  [[nodiscard]] io::Task<Result<std::string>> blob(Descriptor descriptor, OnBytes on_bytes,
                                                   std::stop_token stop);

  // Pushes as the distribution specification describes it: the blob in one piece, unless the
  // registry has it already. `digest` is that of the bytes. Errors: Denied, Unavailable,
  // LimitExceeded, Cancelled; InvalidInput when the registry refuses it.
  [[nodiscard]] io::Task<Result<>> push_blob(std::string digest, http::BodySource bytes,
                                             std::stop_token stop);
  // To be called after the blobs that the manifest names are pushed. Errors as for push_blob().
  [[nodiscard]] io::Task<Result<>> push_manifest(std::string tag, std::string_view media_type,
                                                 std::string bytes, std::stop_token stop);

 private:
  struct Get {
    std::string path;  // After /v2/<repository>/.
    std::string_view accept;
    std::uint64_t bytes_max = 0;
    int redirects_max = 0;
    OnBytes on_bytes = {};
  };
  // The body of a 200 response.
  io::Task<Result<std::string>> get(Get what, std::stop_token stop);
  io::Task<Result<http::Response>> send(Get what, std::stop_token stop);
  struct Put {
    std::string method;
    std::string url;  // After the registry's address: "/v2/...".
    std::string media_type = {};
    std::string body = {};
    std::optional<http::BodySource> source = {};
  };
  // The response, whatever its status. Authenticates once more when the registry demands it: a
  // token for reading does not permit writing.
  io::Task<Result<http::Response>> write(Put what, std::stop_token stop);
  io::Task<Result<http::Response>> write_once(Put what, std::stop_token stop);
  // The path and query to which the registry wants a blob uploaded, at its own address.
  [[nodiscard]] Result<std::string> upload_url(const http::Response& response) const;
  [[nodiscard]] Error refusal(const http::Response& response) const;
  // Switches from https to http, once and only if that is allowed; true if it did.
  bool fall_back_to_plain_http();
  io::Task<Result<>> authenticate(http::Headers headers, std::stop_token stop);
  [[nodiscard]] std::string host() const;
  [[nodiscard]] std::string address() const;  // "https://registry.example:5000".

  http::Client& client_;
  const OciSource source_;
  const Credential credential_;
  const Trust trust_;
  bool is_https_ = true;
  bool was_reached_ = false;   // The scheme is fixed after the first response.
  std::string authorization_;  // Secret. Empty until the registry demands it.
};

}  // namespace hangar::modules
