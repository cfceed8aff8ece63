// Amounts as Kubernetes writes them.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string_view>

namespace hangar {

// A resource.Quantity that is a whole number of bytes: "65536", "64Ki", "128Mi", "1G". InvalidInput
// for anything else, and for a number that does not fit 64 bits.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view quantity);

}  // namespace hangar
