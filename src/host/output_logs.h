// `hangar logs`: what an operator, or the flight of an instance, printed last, read where its host
// keeps it.
#pragma once

#include "base/result.h"
#include "host/config.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::host {

// Where the output of guests is kept.
[[nodiscard]] std::filesystem::path log_directory(const Config& config);

struct LogsOptions {
  std::string namespace_;     // Empty: of `hangar run`, or of an instance that has none.
  std::string name;           // Empty: of all instances of the resource.
  std::string resource = {};  // Of an instance: its Airway, "backends.examples.com".
  std::optional<std::size_t> tail_lines;  // Nothing: all that is kept.
  bool follow = false;
  bool is_known = false;  // It exists: that it has printed nothing is no error.
};

// Hands whole lines to `print` until it returns false, or, without `follow`, until there are none.
// NotFound when nothing is kept of that one, unless it is known. InvalidInput for names that are
// none.
[[nodiscard]] Result<> print_output_logs(const Config& config, LogsOptions options,
                                         const std::function<bool(std::string_view)>& print);

}  // namespace hangar::host
