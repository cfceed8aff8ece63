// The host under the name `atc`. It takes the command line and environment of yoke's Air Traffic
// Controller, so the controller's Deployment needs only another image.
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

// The given values as settings of host::settings().
struct AtcSettings {
  struct Entry {
    std::string setting;
    std::string text;
    std::string variable;  // The variable that it comes from, for errors.
  };
  std::vector<Entry> entries;
  // For the user: values that are ignored or have another meaning here.
  std::vector<std::string> remarks;
};

using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// `arguments` without the program's name. Each variable is a flag as well (--cache-fs for
// CACHE_FS); the flag wins. InvalidInput names every variable that is missing or wrong.
[[nodiscard]] Result<AtcSettings> read_atc_settings(std::span<const std::string> arguments,
                                                    const Environment& environment);

// The directory of modules by the variables of yoke's programs: their own variable, and TMPDIR,
// each empty when it is not set. A subdirectory, since other users may write to TMPDIR.
[[nodiscard]] std::string module_cache_in(std::string_view own, std::string_view temporary);

// Returns the exit code.
[[nodiscard]] int run_atc(std::span<const std::string> arguments);

}  // namespace hangar::cli
