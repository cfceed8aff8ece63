#include "nodes/announcement.h"

#include "base/time.h"

#include <fmt/format.h>

namespace hangar::nodes {

using reconcile::EventType;

std::string_view name_of(AttemptEnd end) {
  return end == AttemptEnd::Succeeded ? "succeeded" : "failed";
}

std::optional<Announcement> announcement_of(const NodeState& before, const NodeState& after,
                                            const Policy& policy) {
  if (after.phase == Phase::Provisioned && before.phase == Phase::Verifying) {
    return Announcement{.action = before.action,
                        .text = {.reason = "Provisioned",
                                 .message = "Wasm workloads run here, by " + after.version}};
  }
  if (after.phase == Phase::None && before.phase == Phase::Uninstalling) {
    return Announcement{.action = before.action,
                        .text = {.reason = "Unprovisioned",
                                 .message = "the Wasm runtimes of this node were uninstalled"}};
  }
  if (after.phase == Phase::None && before.phase != Phase::None) {
    return Announcement{
        .action = Action::Uninstall,
        .text = {
            .type = EventType::Warning,
            .reason = "UninstallUnsupported",
            .message = "this installer image cannot uninstall; the runtime stays on the node"}};
  }
  if (after.phase == Phase::Failed && before.phase != Phase::Failed) {
    return Announcement{
        .action = after.action,
        .end = AttemptEnd::Failed,
        .text = {.type = EventType::Warning,
                 .reason = after.action == Action::Uninstall ? "UninstallFailed" : "InstallFailed",
                 .message =
                     fmt::format("{}; hangar retries in {} and starts no other node until this one "
                                 "succeeds or is skipped",
                                 after.last_error, to_go_duration(retry_delay(after, policy)))}};
  }
  return std::nullopt;
}

}  // namespace hangar::nodes
