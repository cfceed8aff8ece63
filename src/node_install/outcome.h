// The outcomes of a run of hangar-node: the reason of the error (Error::reason()), and the matching
// exit status. Both are for programs; docs/operating/node-installer.md has the list.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <utility>

namespace hangar::node_install {

namespace reason {
inline constexpr std::string_view kUsage = "Usage";
inline constexpr std::string_view kUnknownDistribution = "UnknownDistribution";
inline constexpr std::string_view kConfigInvalid = "ConfigInvalid";
inline constexpr std::string_view kConfigConflict = "ConfigConflict";
inline constexpr std::string_view kChecksumMismatch = "ChecksumMismatch";
inline constexpr std::string_view kRuntimeInvalid = "RuntimeInvalid";
inline constexpr std::string_view kReadOnly = "ReadOnly";
inline constexpr std::string_view kNoSpace = "NoSpace";
inline constexpr std::string_view kRestartFailed = "RestartFailed";
inline constexpr std::string_view kRestoreFailed = "RestoreFailed";
inline constexpr std::string_view kBusy = "Busy";
}  // namespace reason

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotInstalled = 10;
inline constexpr int kExitIncomplete = 11;

[[nodiscard]] int exit_status_of(const Error& error);

[[nodiscard]] inline std::unexpected<Error> refuse(ErrorKind kind, std::string_view reason,
                                                   std::string message) {
  return std::unexpected(Error(kind, std::move(message)).with_reason(std::string(reason)));
}

}  // namespace hangar::node_install
