// `hangar logs NAME`: what an operator printed last, read where its host keeps it.
#pragma once

#include "base/result.h"
#include "host/config.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::host {

struct OperatorLogsOptions {
  std::string namespace_;  // Empty: of `hangar run`.
  std::string name;
  std::optional<std::size_t> tail_lines;  // Nothing: all that is kept.
  bool follow = false;
  bool is_known = false;  // It exists: that it has printed nothing is no error.
};

// Hands whole lines to `print` until it returns false, or, without `follow`, until there are none.
// NotFound when nothing is kept of that operator, unless it is known.
[[nodiscard]] Result<> print_operator_logs(const Config& config, OperatorLogsOptions options,
                                           const std::function<bool(std::string_view)>& print);

}  // namespace hangar::host
