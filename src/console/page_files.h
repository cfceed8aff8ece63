// The page of the console: files that the build has bundled, compressed and linked in.
#pragma once

#include <optional>
#include <string_view>

namespace hangar::console {

struct PageFile {
  std::string_view content_type;
  std::string_view gzipped;
};
// std::nullopt: the file does not exist.
[[nodiscard]] std::optional<PageFile> page_file(std::string_view path);

}  // namespace hangar::console
