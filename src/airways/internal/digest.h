// Digests of documents.
#pragma once

#include "json/value.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::airways::internal {

// The first half of a SHA-256.
[[nodiscard]] std::array<std::uint64_t, 2> digest_of(std::string_view bytes);

// Appends `value`. Two values give the same text exactly if json::equal() holds: keys in order,
// whole numbers without a fraction.
void append_canonical(const json::Value& value, std::string& text);

}  // namespace hangar::airways::internal
