#include "commands/sdk_source.h"

#include "base/result.h"
#include "io/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

// NOLINTNEXTLINE(readability-identifier-naming): symbols of the object that the build makes.
extern "C" const char hangar_sdk_source_begin[], hangar_sdk_source_end[];

namespace hangar::commands {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = "-- ";
constexpr std::string_view kBehind = " --";

// The name, if the line is a file header.
std::optional<std::string_view> name_in(std::string_view line) {
  if (!line.starts_with(kBefore) || !line.ends_with(kBehind)) return std::nullopt;
  if (line.size() <= kBefore.size() + kBehind.size()) return std::nullopt;
  return line.substr(kBefore.size(), line.size() - kBefore.size() - kBehind.size());
}

bool is_below(const fs::path& name) {
  return name.is_relative() &&
         std::ranges::none_of(name, [](const fs::path& part) { return part == ".."; });
}

Result<> write_below(const fs::path& directory, std::string_view name, std::string_view content) {
  if (!is_below(name)) {
    return fail(ErrorKind::Corrupt, fmt::format("{} is outside of {}", name, directory.string()));
  }
  const fs::path path = directory / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return fail(ErrorKind::Unavailable,
                fmt::format("make {}: {}", path.parent_path().string(), error.message()));
  }
  return io::write_file(path, content);
}

}  // namespace

std::string_view sdk_source() {
  return {static_cast<const char*>(hangar_sdk_source_begin),
          static_cast<std::size_t>(hangar_sdk_source_end - hangar_sdk_source_begin)};
}

Result<> write_files(std::string_view text, const fs::path& directory) {
  std::optional<std::string_view> name;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (const std::optional<std::string_view> next = name_in(line)) {
      if (name) HANGAR_TRY(write_below(directory, *name, text.substr(begin, at - begin)));
      name = next;
      begin = end;
    }
    if (!name) break;
    at = end;
  }
  if (name) return write_below(directory, *name, text.substr(begin));
  return fail(ErrorKind::Corrupt, "files: the text does not begin with a name");
}

}  // namespace hangar::commands
