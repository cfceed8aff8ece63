#include "seeing/published.h"

#include "base/number.h"
#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::seeing {

namespace {

constexpr std::string_view kUrl = "url";
constexpr std::string_view kPod = "pod";
constexpr std::string_view kPort = "port";
constexpr std::string_view kAuthority = "ca.crt";

}  // namespace

json::Value config_map_of(const Published& published, std::string_view namespace_) {
  json::Object data{{kPort, std::to_string(published.port)}, {kAuthority, published.authority_pem}};
  if (!published.url.empty()) data[kUrl] = published.url;
  if (!published.pod.empty()) data[kPod] = published.pod;
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata", json::Object{{"namespace", namespace_}, {"name", kPublishedName}}},
      {"data", std::move(data)}};
}

Result<Published> parse_config_map(const json::Value& manifest) {
  const auto text = [&manifest](std::string_view key) {
    return json::string_at(manifest, {"data", key});
  };
  const auto wrong = [](std::string_view key) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("ConfigMap {}: \"{}\" is missing or wrong", kPublishedName, key));
  };
  Published published{.url = std::string(text(kUrl)),
                      .pod = std::string(text(kPod)),
                      .authority_pem = std::string(text(kAuthority))};
  published.port = parse_number<std::uint16_t>(text(kPort)).value_or(0);
  if (published.port == 0) return wrong(kPort);
  if (!published.url.empty() && !published.url.starts_with("https://")) return wrong(kUrl);
  const std::size_t slash = published.pod.find('/');
  if (!published.pod.empty() && (slash == 0 || slash + 1 >= published.pod.size())) {
    return wrong(kPod);
  }
  if (published.url.empty() && published.pod.empty()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("ConfigMap {} has neither a URL nor a pod: the host that leads is in "
                            "none, and has no records-url",
                            kPublishedName));
  }
  return published;
}

}  // namespace hangar::seeing
