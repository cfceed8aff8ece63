// Where a host that leads answers questions about its records, as a ConfigMap in its namespace says
// it to the command that asks. Pure.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::seeing {

inline constexpr std::string_view kPublishedName = "hangar-records";
// A name that the host's certificate is for, wherever it is reached.
inline constexpr std::string_view kServerName = "hangar-records";

struct Published {
  std::string url;            // "https://host:port"; empty: only the pod can be reached.
  std::string pod;            // "namespace/name"; empty: it is in none, or does not know it.
  std::uint16_t port = 0;     // Of the pod.
  std::string authority_pem;  // Of its certificate.

  friend bool operator==(const Published&, const Published&) = default;
};

[[nodiscard]] json::Value config_map_of(const Published& published, std::string_view namespace_);
// InvalidInput names what is missing or wrong.
[[nodiscard]] Result<Published> parse_config_map(const json::Value& manifest);

}  // namespace hangar::seeing
