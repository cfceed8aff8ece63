// The host under the name `atc`: it reads what yoke's Air Traffic Controller reads, from the
// command line and the environment, so that its Deployment needs another image and no more.
#pragma once

#include "base/result.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::cli {

// What was given, as settings of host::settings().
struct AtcSettings {
  struct Entry {
    std::string setting;
    std::string text;
    std::string variable;  // Whence it comes, for errors.
  };
  std::vector<Entry> entries;
  // What means something else here, or nothing: for people.
  std::vector<std::string> remarks;
};

using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// `arguments` without the program's name: each variable is a flag as well (--cache-fs for
// CACHE_FS), which wins. InvalidInput names every variable that is missing or wrong.
[[nodiscard]] Result<AtcSettings> read_atc_settings(std::span<const std::string> arguments,
                                                    const Environment& environment);

// Returns the exit code.
[[nodiscard]] int run_atc(std::span<const std::string> arguments);

}  // namespace hangar::cli
