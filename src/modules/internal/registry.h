// A conversation with one OCI registry about one repository: authentication as the registry asks
// for it, manifests and blobs, read and written, each checked against its digest.
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

// Loop thread. Used by one task, which outlives no call.
class Registry {
 public:
  struct Trust {
    std::shared_ptr<const http::Transport> transport;
    // Plain HTTP may be used when HTTPS does not answer.
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

  // The bytes of a blob, not yet compared with its digest: that takes a worker.
  [[nodiscard]] io::Task<Result<std::string>> blob(Descriptor descriptor, OnBytes on_bytes,
                                                   std::stop_token stop);

  // As the distribution specification has a push: the blob in one piece unless the registry has it
  // already. `digest` is that of the bytes. Errors: Denied, Unavailable, LimitExceeded, Cancelled;
  // InvalidInput when the registry refuses it.
  [[nodiscard]] io::Task<Result<>> push_blob(std::string digest, http::BodySource bytes,
                                             std::stop_token stop);
  // After what it names. Errors as push_blob().
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
  // The body of a 200.
  io::Task<Result<std::string>> get(Get what, std::stop_token stop);
  io::Task<Result<http::Response>> send(Get what, std::stop_token stop);
  struct Put {
    std::string method;
    std::string url;  // After the registry's address: "/v2/...".
    std::string media_type = {};
    std::string body = {};
    std::optional<http::BodySource> source = {};
  };
  // The answer, whatever its status; authenticated once more when the registry says so: a token for
  // reading does not write.
  io::Task<Result<http::Response>> write(Put what, std::stop_token stop);
  io::Task<Result<http::Response>> write_once(Put what, std::stop_token stop);
  // Where the registry wants a blob: the path and query of its own address.
  [[nodiscard]] Result<std::string> upload_url(const http::Response& response) const;
  [[nodiscard]] Error refusal(const http::Response& response) const;
  // From https to http, once and where that is allowed.
  bool fall_back_to_plain_http();
  io::Task<Result<>> authenticate(http::Headers headers, std::stop_token stop);
  [[nodiscard]] std::string host() const;
  [[nodiscard]] std::string address() const;  // "https://registry.example:5000".

  http::Client& client_;
  const OciSource source_;
  const Credential credential_;
  const Trust trust_;
  bool is_https_ = true;
  bool was_reached_ = false;   // No change of the scheme after the first answer.
  std::string authorization_;  // Secret. Empty before the registry asks for it.
};

}  // namespace hangar::modules
