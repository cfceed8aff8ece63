// Amounts as Kubernetes writes them.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string_view>

namespace hangar {

// A resource.Quantity that is a whole number of bytes: "65536", "64Ki", "128Mi", "1G". InvalidInput
// for anything else, and for a number that does not fit 64 bits.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view quantity);

// A resource.Quantity of cores, in thousandths of one: "500m", "2", "1.5". InvalidInput for
// anything else, for more than three decimals, and for a number that does not fit 64 bits.
[[nodiscard]] Result<std::uint64_t> parse_millicores(std::string_view quantity);

}  // namespace hangar
