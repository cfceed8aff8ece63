// Turns the bytes of a source into a module that may be compiled, or into a description of what
// they are instead.
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
  std::string gzipped;  // A gzip of exactly `wasm`, if the source had one; otherwise empty.
};

// Decompresses bytes that begin like a gzip, whatever the name or the headers say, and checks that
// the content is a core module, or a script where that is wanted (any text that does not look like
// something else). Blocking: for worker threads. Errors: InvalidInput (not a module, gzip cut off),
// LimitExceeded (more than `bytes_max`).
[[nodiscard]] Result<Unpacked> unpack(std::string bytes, std::uint64_t bytes_max,
                                      Content content = Content::Module);

// "an HTML page", "a WebAssembly component", "text". Never the bytes themselves: they may come from
// a server that the reader of the status has no access to.
[[nodiscard]] std::string_view describe(std::string_view bytes);

}  // namespace hangar::modules
