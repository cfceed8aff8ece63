// Bounds of documents, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// Nesting of JSON and YAML documents. Deeper input is an attack on the parser's stack; the deepest
// CRD schemas in the wild stay below 60.
inline constexpr std::uint32_t kDocumentDepthMax = 128;

// How many bytes the aliases of one YAML text may add when they are expanded. Manifests share a few
// labels and environments that way; a few lines of nested aliases make gigabytes.
inline constexpr std::uint64_t kAliasBytesMax = 16 * kMiB;

// Up to this many differing lines a diff is the smallest possible: its memory grows with
// their square.
inline constexpr std::size_t kDiffLinesMax = 2000;

}  // namespace hangar::limits
