// Percent-decoding of parts of URLs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules::internal {

// Nothing when an escape is not two hexadecimal digits, or stands for one of the bytes `refused`.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text,
                                                        std::string_view refused = {});
// The path of a URL, decoded; nothing when servers may disagree about it: some resolve dots and
// slashes that are escaped or doubled, and backslashes, and some do not.
[[nodiscard]] std::optional<std::string> plain_path(std::string_view path);

}  // namespace hangar::modules::internal
