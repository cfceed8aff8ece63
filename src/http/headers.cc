#include "http/client.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace hangar::http {

namespace {

char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::optional<std::string_view> find_header(const Headers& headers, std::string_view name) {
  const auto found = std::ranges::find_if(headers, [name](const auto& header) {
    return std::ranges::equal(header.first, name, {}, to_lower, to_lower);
  });
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

}  // namespace hangar::http
