// The digest that names modules, manifests and blobs.
#pragma once

#include <string>
#include <string_view>

namespace hangar::modules {

// 64 lower-case hexadecimal digits. Any thread; 82 MB take some 50 ms: large inputs belong on a
// worker.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

// True for exactly 64 lower-case hexadecimal digits.
[[nodiscard]] bool is_sha256_hex(std::string_view text);

}  // namespace hangar::modules
