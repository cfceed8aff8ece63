// The discovery answer of an API server (or an aggregated one behind it): whatever its resources
// are called, a request for them stays below their path.
#include "base/assert.h"
#include "json/value.h"
#include "kube/internal/discovery_documents.h"
#include "kube/object.h"
#include "kube/urls.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace {

using hangar::kube::Resource;

void check(const std::vector<Resource>& resources) {
  for (const Resource& resource : resources) {
    HANGAR_ASSERT(!resource.kind.empty(), "a resource without kind");
    const auto path = hangar::kube::collection_path(resource, "team");
    HANGAR_ASSERT(!path || (path->find_first_of(" ?#\r\n\\") == std::string_view::npos &&
                            !(*path + "/").contains("/../") && !path->contains("//")),
                  "leaves its path");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto document =
      hangar::json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!document) return 0;
  if (const auto groups = hangar::kube::internal::parse_aggregated(*document)) {
    for (const auto& [group, versions] : *groups) {
      for (const auto& version : versions)
        check(version.resources);
    }
  }
  for (const auto& version : hangar::kube::internal::parse_versions(*document))
    check(hangar::kube::internal::parse_resources(*document, "example.com", version));
  check(hangar::kube::internal::parse_resources(*document, "example.com", "v1"));
  return 0;
}
