// The standard alphabet with padding: Basic authentication, kubeconfig files, Secrets, ConfigMaps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hangar {

[[nodiscard]] std::string base64_encode(std::string_view bytes);

// Skips white space (people wrap lines) and continues after padding, so that the concatenation of
// encoded parts decodes to the concatenation of the parts. std::nullopt for anything else.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace hangar
