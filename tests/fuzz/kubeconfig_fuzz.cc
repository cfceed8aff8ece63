// A kubeconfig from anywhere: parsing and resolving end in a value or an error.
#include "kube/auth/kubeconfig.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto config = hangar::kube::parse_kubeconfig(bytes, "/fuzz/config");
  if (!config) return 0;
  const auto merged = hangar::kube::merge(*config, *config);
  for (const auto& [name, context] : merged.contexts) {
    if (!hangar::kube::resolve(merged, name)) continue;
  }
  return 0;
}
