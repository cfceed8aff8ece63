// The version of this program: in `hangar version`, in the log, and for flights (as
// HANGAR_VERSION).
#pragma once

#include <string_view>

namespace hangar::host {

inline constexpr std::string_view kVersion = HANGAR_VERSION;

}  // namespace hangar::host
