#include "node_install/outcome.h"

#include "base/result.h"

#include <array>
#include <string_view>
#include <utility>

namespace hangar::node_install {

int exit_status_of(const Error& error) {
  static constexpr std::array<std::pair<std::string_view, int>, 11> kStatuses = {{
      {reason::kUsage, kExitUsage},
      {reason::kUnknownDistribution, 3},
      {reason::kConfigInvalid, 4},
      {reason::kConfigConflict, 4},
      {reason::kChecksumMismatch, 5},
      {reason::kRuntimeInvalid, 5},
      {reason::kReadOnly, 6},
      {reason::kNoSpace, 6},
      {reason::kRestartFailed, 7},
      {reason::kRestoreFailed, 8},
      {reason::kBusy, 9},
  }};
  for (const auto& [reason, status] : kStatuses) {
    if (error.reason() == reason) return status;
  }
  return kExitFailed;
}

}  // namespace hangar::node_install
