// A module as it is sent to another process: compressed.
#pragma once

#include <string>

namespace hangar::modules {

// The bytes as a gzip; unchanged if they are gzipped already. Blocking.
[[nodiscard]] std::string packed_module(std::string bytes);

}  // namespace hangar::modules
