// Amounts as Kubernetes writes them.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string_view>

namespace hangar {

// A resource.Quantity that is a whole number of bytes: "65536", "64Ki", "128Mi", "1G". InvalidInput
// for anything else, and for what does not fit.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view quantity);

}  // namespace hangar
