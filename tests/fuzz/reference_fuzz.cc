// A module reference from anywhere: an understood one cannot leave its place in a URL or a path,
// means the same when it is read again, and shows no secret.
#include "base/assert.h"
#include "base/dns_name.h"
#include "http/authority.h"
#include "modules/reference.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace {

using hangar::modules::ConfigMapSource;
using hangar::modules::FileSource;
using hangar::modules::HttpSource;
using hangar::modules::OciSource;
using hangar::modules::Reference;

// One segment of a path, or several of them.
bool is_safe_in_path(std::string_view text) {
  const std::string segments = "/" + std::string(text) + "/";
  return text.find_first_of(" ?#%\\\r\n") == std::string_view::npos && !segments.contains("/../") &&
         !segments.contains("/./") && (text.empty() || !segments.contains("//"));
}

void check(const Reference& reference, const HttpSource& source) {
  const std::string_view url = source.url;
  HANGAR_ASSERT(url.starts_with("http://") || url.starts_with("https://"), "another protocol");
  const std::string_view rest = url.substr(url.find("://") + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  const auto server = hangar::http::parse_authority(authority);
  HANGAR_ASSERT(server && server->to_string() == authority, "another spelling of a server");
  HANGAR_ASSERT(
      !url.contains('#') &&
          std::ranges::all_of(
              url, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; }),
      "breaks a request line");
  const std::size_t query = url.find('?');
  const std::string& shown = reference.display();
  HANGAR_ASSERT(query == std::string_view::npos ||
                    (shown.ends_with("?...") && shown.find('?') == shown.size() - 4),
                "a query that is shown");
}

void check(const Reference& reference, const OciSource& source) {
  HANGAR_ASSERT(is_safe_in_path(source.repository) && is_safe_in_path(source.tag) &&
                    !source.tag.contains('/') && !source.digest.contains('/'),
                "leaves its path");
  const auto server = hangar::http::parse_authority(source.registry);
  HANGAR_ASSERT(server && server->to_string() == source.registry, "another spelling of a server");
  HANGAR_ASSERT(!source.tag.empty() || !source.digest.empty(), "names no manifest");
  HANGAR_ASSERT(reference.is_pinned() == !source.digest.empty(), "pinned by digest");
}

void check(const Reference& reference, const ConfigMapSource& source) {
  HANGAR_ASSERT(
      hangar::is_dns_subdomain(source.namespace_name) && hangar::is_dns_subdomain(source.name),
      "leaves its path");
  HANGAR_ASSERT(!source.key.contains('/') && source.key != "..", "leaves its ConfigMap");
  HANGAR_ASSERT(reference.is_config_map(), "another kind of source");
}

void check(const Reference& /*reference*/, const FileSource& source) {
  HANGAR_ASSERT(!source.path.contains('\0'), "cut by the kernel");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto reference = Reference::parse(text);
  if (!reference) return 0;
  std::visit([&](const auto& source) { check(*reference, source); }, reference->source());
  const auto promised = hangar::modules::expected_sha256(*reference, "");
  // It may be mistyped, but it is compared with digests: these are lower-case and not empty.
  HANGAR_ASSERT(
      !promised || (!promised->empty() &&
                    promised->find_first_of("/ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos),
      "not spelled like a digest");

  HANGAR_ASSERT(Reference::parse(text)->key() == reference->key(), "another key");
  // An artifact or a ConfigMap is shown as the reference itself.
  if (!std::holds_alternative<OciSource>(reference->source()) && !reference->is_config_map()) {
    return 0;
  }
  const auto again = Reference::parse(reference->display());
  HANGAR_ASSERT(again && again->display() == reference->display() &&
                    again->source().index() == reference->source().index(),
                "shown as something else");
  return 0;
}
