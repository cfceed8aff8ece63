// Limits of the console's server, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// An answer to the page. A page of a list has at most 500 objects, and the table of 10,000 guests
// takes 3 MiB.
inline constexpr std::uint64_t kConsoleAnswerBytesMax = 32 * kMiB;

// Objects of one page of a list.
inline constexpr std::uint32_t kConsolePageItemsMax = 500;

// Questions in progress. A browser has six connections to one server; two windows are usual.
inline constexpr std::size_t kConsoleQuestionsMax = 16;
inline constexpr std::size_t kConsoleConnectionsMax = 64;

// The body of a signal, like an annotation.
inline constexpr std::uint64_t kConsoleBodyBytesMax = 64 * kKiB;

// The time for one request to the cluster.
inline constexpr std::chrono::seconds kConsoleClusterMax{30};

// The time in which the browser that the command opens must request the page.
inline constexpr std::chrono::minutes kConsoleOpeningMax{2};

}  // namespace hangar::limits
