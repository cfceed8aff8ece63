// What this program calls itself: in --version, in User-Agent headers and to flights (as
// HANGAR_VERSION).
#pragma once

#include <string_view>

namespace hangar::host {

inline constexpr std::string_view kVersion = HANGAR_VERSION;

}  // namespace hangar::host
