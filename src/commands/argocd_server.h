// The server of the plugin for Argo CD: it runs flights and keeps their modules and their code
// between requests. Requests and answers are those of yoke's server.
//
//   POST /exec    the flight of an ArgoRequest; answered with what it printed, as JSON
//   GET  /health  200
//
// Guarantees: only programs on this machine can run a flight, since its lookups use the server's
// rights. Concurrent flights, their time, memory and output, and the size of requests are limited.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "host/config.h"

#include <string>

namespace hangar::commands {

// The address of yoke's server, which its probes use.
inline constexpr const char* kArgoServerAddress = ":3666";

// Serves until SIGINT or SIGTERM. `address` as for http::parse_listen_address(). If `config` has
// module_verification_keys, one of them must have signed each module, except for those of URLs that
// its allow list names.
[[nodiscard]] Result<> serve_argocd(const host::Config& config, const std::string& address,
                                    const Log& log);

}  // namespace hangar::commands
