// An object in Kubernetes' protobuf envelope: what is found are short plain texts.
#include "base/assert.h"
#include "kube/protobuf_object.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto found = hangar::kube::identify_protobuf(bytes);
  if (!found) return 0;
  HANGAR_ASSERT(!found->kind.empty() && found->kind != "Status", "no object");
  for (const std::string_view text : {std::string_view(found->name), found->resource_version,
                                      std::string_view(found->namespace_), found->api_version}) {
    HANGAR_ASSERT(text.size() <= 253, "a long text");
    for (const char c : text)
      HANGAR_ASSERT(c > ' ' && c <= '~', "no plain text");
  }
  return 0;
}
