// Percent-decoding of parts of URLs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hangar::modules::internal {

// Nothing when an escape is not two hexadecimal digits, or stands for one of the bytes `refused`.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text,
                                                        std::string_view refused = {});

}  // namespace hangar::modules::internal
