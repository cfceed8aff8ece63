// Percent-encoding for parts of URLs.
#pragma once

#include <string>
#include <string_view>

namespace hangar::kube::internal {

// Every byte but letters, digits, '-', '_', '.' and '~' becomes %XX: nothing in `text` can end a
// path segment or a query value.
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace hangar::kube::internal
