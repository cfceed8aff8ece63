// Names, labels and bounds of the copies of one feature. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace hangar::archive {

struct CopyFormat {
  std::string label;        // On each object; its value has no meaning.
  std::string name_prefix;  // Prefix of the objects' names; the digest follows.
  std::string field_manager;
  std::size_t parts_max = 1;    // Objects of one copy, each of limits::kSecretBytesMax.
  std::size_t objects_max = 0;  // Objects of all copies of a namespace; 0: as many as are needed.
};

// The name of an object of a copy: the first is 0.
[[nodiscard]] std::string name_of(const CopyFormat& format, std::string_view sha256,
                                  std::size_t index);

// The digest in the name of a copy's object; empty for other objects.
[[nodiscard]] std::string digest_of(const CopyFormat& format, std::string_view name);

enum class CopyState : std::uint8_t {
  Whole,   // All objects exist.
  Wanted,  // Objects are missing.
  NoRoom,  // Objects are missing, and the namespace already has too many.
};
// `names`: the objects of all copies in the namespace.
[[nodiscard]] CopyState state_of(const CopyFormat& format, const std::set<std::string>& names,
                                 std::string_view sha256, std::size_t parts);

}  // namespace hangar::archive
