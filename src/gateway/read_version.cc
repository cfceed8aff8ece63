#include "gateway/read_version.h"

#include "gateway/request_target.h"
#include "kube/object.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace hangar::gateway {

namespace {

bool is_any(const ReadOptions& asked) {
  return asked.resource_version == "0";
}

// The oldest version from which the API server may answer; std::nullopt: its newest state, or one
// exact state.
std::optional<std::uint64_t> not_older_than(const RequestTarget& read) {
  const ReadOptions& asked = read.options;
  // For one object, the API server reads no other option than the version.
  if (read.verb != Verb::Get) {
    const bool is_exact = asked.resource_version_match.empty()
                              ? asked.limit != 0 && !is_any(asked)
                              : asked.resource_version_match != "NotOlderThan";
    if (is_exact || !asked.continue_token.empty() || asked.send_initial_events) return std::nullopt;
  }
  return kube::parse_version(asked.resource_version);
}

// Parts of lists, and options that a cached answer could not heed, are left to the API server.
bool may_be_cached(const ReadOptions& asked) {
  return asked.continue_token.empty() && !asked.send_initial_events &&
         (asked.resource_version_match.empty() || asked.resource_version_match == "NotOlderThan") &&
         (is_any(asked) || asked.limit == 0);
}

}  // namespace

ReadVersion require_own_writes(RequestTarget& read, std::uint64_t own_version) {
  const std::optional<std::uint64_t> oldest = not_older_than(read);
  ReadVersion version{.asked = may_be_cached(read.options) ? oldest : std::nullopt,
                      .needed = std::max(oldest.value_or(0), own_version)};
  if (oldest.value_or(own_version) < own_version) read.ask_for_newest();
  return version;
}

}  // namespace hangar::gateway
