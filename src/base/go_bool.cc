#include "base/go_bool.h"

#include "base/invalid.h"
#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace hangar {

Result<bool> parse_go_bool(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "FALSE", "false", "False"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
  return invalid(fmt::format("strconv.ParseBool: parsing \"{}\": invalid syntax", text));
}

}  // namespace hangar
