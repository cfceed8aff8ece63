// Base64 as kubeconfig files, Secrets and HTTP basic authentication have it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hangar::kube::internal {

[[nodiscard]] std::string to_base64(std::string_view bytes);

// The standard alphabet with padding; line breaks are passed over. Nothing for other text.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace hangar::kube::internal
