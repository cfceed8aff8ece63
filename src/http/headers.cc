#include "base/text.h"
#include "http/client.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace hangar::http {

std::optional<std::string_view> find_header(const Headers& headers, std::string_view name) {
  const auto found = std::ranges::find_if(
      headers, [name](const auto& header) { return equals_ignoring_case(header.first, name); });
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

}  // namespace hangar::http
