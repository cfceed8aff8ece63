// Bytes of records by namespace, and how many each namespace gives up when space is short. Pure.
#pragma once

#include "base/text.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hangar::recorder {

// Only namespaces that hold bytes. The empty name: guests without a namespace.
using Holdings = boost::unordered_flat_map<std::string, std::uint64_t, TextHash, std::equal_to<>>;

void add(Holdings& holdings, std::string_view namespace_, std::uint64_t bytes);
void add(Holdings& holdings, const Holdings& more);
// Stops at zero. Without namespaces, it has no memory afterwards.
void subtract(Holdings& holdings, const Holdings& less);
[[nodiscard]] std::uint64_t held_by(const Holdings& holdings, std::string_view namespace_);

// How many bytes each namespace gives up so that together they hold at least `bytes` less (all
// bytes, if they hold no more than that). The namespaces that hold the most give up their bytes
// above one level, which is the same for all; namespaces below it give up nothing. So the records
// of a namespace that holds less than an equal share of the space are never deleted to make room.
[[nodiscard]] Holdings debts(const Holdings& held, std::uint64_t bytes);

}  // namespace hangar::recorder
