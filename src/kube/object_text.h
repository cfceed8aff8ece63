// The longest text of one object, as the API server sends it.
#pragma once

#include "base/limits.h"

#include <cstdint>

namespace hangar::limits {

// As JSON, an object has up to six times the bytes that are stored of it: '<' and control
// characters take six ("\u003c"). Kinds with many small parts have a little more. With a tighter
// bound, anybody who may create one such object would end the host's watches of its kind: they
// could neither read it nor begin anew.
inline constexpr std::uint64_t kObjectTextBytesMax = 8 * kObjectBytesMax;

}  // namespace hangar::limits
