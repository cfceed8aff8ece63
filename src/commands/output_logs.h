// `hangar logs`: prints the stored output of an operator, or of the flight of an instance, on the
// machine of its host.
#pragma once

#include "base/result.h"
#include "host/config.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::commands {

struct LogsOptions {
  std::string namespace_;                 // Empty: `hangar run`, or a cluster-scoped instance.
  std::string name;                       // Empty: all instances of the resource.
  std::string resource = {};              // The Airway of an instance: "backends.examples.com".
  std::optional<std::size_t> tail_lines;  // Unset: all lines.
  bool follow = false;
  bool is_known = false;  // The guest exists, so missing output is not an error.
};

// Passes whole lines to `print` until that returns false or, without `follow`, until the end of the
// output. NotFound when no output of the guest is stored, unless it is known to exist. InvalidInput
// for invalid names.
[[nodiscard]] Result<> print_output_logs(const host::Config& config, LogsOptions options,
                                         const std::function<bool(std::string_view)>& print);

}  // namespace hangar::commands
