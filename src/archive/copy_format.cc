#include "archive/copy_format.h"

#include "base/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace hangar::archive {

std::string name_of(const CopyFormat& format, std::string_view sha256, std::size_t index) {
  std::string name = fmt::format("{}{}", format.name_prefix, sha256);
  if (index > 0) name += fmt::format("-{}", index);
  return name;
}

std::string digest_of(const CopyFormat& format, std::string_view name) {
  if (!name.starts_with(format.name_prefix)) return {};
  name.remove_prefix(format.name_prefix.size());
  name = name.substr(0, name.find('-'));
  return is_sha256_hex(name) ? std::string(name) : std::string();
}

CopyState state_of(const CopyFormat& format, const std::set<std::string>& names,
                   std::string_view sha256, std::size_t parts) {
  std::size_t present = 0;
  while (present < parts && names.contains(name_of(format, sha256, present)))
    ++present;
  if (present == parts) return CopyState::Whole;
  const auto others = std::ranges::count_if(
      names, [&](const std::string& name) { return digest_of(format, name) != sha256; });
  const bool has_room =
      format.objects_max == 0 || static_cast<std::size_t>(others) + parts <= format.objects_max;
  return has_room ? CopyState::Wanted : CopyState::NoRoom;
}

}  // namespace hangar::archive
