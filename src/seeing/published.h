// The address of the leading host's server for records, in a ConfigMap of the host's namespace,
// where commands find it. Pure.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::seeing {

inline constexpr std::string_view kPublishedName = "hangar-records";
// A name in the host's certificate, independent of the address.
inline constexpr std::string_view kServerName = "hangar-records";

struct Published {
  std::string url;            // "https://host:port"; empty: reachable by its pod only.
  std::string pod;            // "namespace/name"; empty: not in a pod, or unknown.
  std::uint16_t port = 0;     // The port of the pod.
  std::string authority_pem;  // The authority of its certificate.

  friend bool operator==(const Published&, const Published&) = default;
};

[[nodiscard]] json::Value config_map_of(const Published& published, std::string_view namespace_);
// InvalidInput names the key that is missing or wrong.
[[nodiscard]] Result<Published> parse_config_map(const json::Value& manifest);

}  // namespace hangar::seeing
