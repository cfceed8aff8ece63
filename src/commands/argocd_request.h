// A request to the plugin server to run a flight. Its JSON is that of yoke's server, so that each
// program can talk to the other.
#pragma once

#include "base/result.h"
#include "base/time.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

struct ArgoRequest {
  std::string source;  // The module, gzipped or not. Empty: `path` is its URL.
  std::string path;
  std::string checksum;
  std::string release;
  std::string namespace_;
  std::vector<std::string> args;
  std::vector<std::string> environment;  // "NAME=value".
  std::string input;
  std::uint32_t memory_mib_max = 0;  // Zero: the default.
  Duration timeout{0};               // Zero: the default.
  bool insecure = false;
  bool cluster_access = false;
  std::vector<std::string> resource_matchers;
};

[[nodiscard]] std::string to_json(const ArgoRequest& request);

// Names of members are compared as Go does, without regard to case; unknown ones are ignored. Every
// member may be missing or null. InvalidInput names the member.
[[nodiscard]] Result<ArgoRequest> parse_argo_request(std::string_view text);

}  // namespace hangar::commands
