// From the bytes that a source gave to a module that may be compiled, or to words about what they
// are instead.
#pragma once

#include "base/result.h"
#include "modules/config_map.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::modules {

struct Unpacked {
  std::string wasm;
  std::string sha256;   // Of `wasm`.
  std::string gzipped;  // A gzip of exactly `wasm`, if the source had one; else empty.
};

// Inflates what is gzipped, by its first bytes and whatever the name or the headers say, and makes
// sure that a core module is inside, or a script where that is wanted (any text that does not look
// like something else). Blocking: for worker threads. Errors: InvalidInput (not a
// module, gzip cut off), LimitExceeded (more than `bytes_max`).
[[nodiscard]] Result<Unpacked> unpack(std::string bytes, std::uint64_t bytes_max,
                                      Content content = Content::Module);

// "an HTML page", "a WebAssembly component", "text": never the bytes themselves, which may be the
// answer of a server that whoever reads the status may not ask.
[[nodiscard]] std::string_view describe(std::string_view bytes);

}  // namespace hangar::modules
