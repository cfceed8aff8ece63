#include "workflows/migration.h"

#include "kube/object.h"
#include "workflows/workflow.h"

#include <fmt/format.h>

namespace hangar::workflows {

std::string open_request(const json::Value& manifest, const Ledger& ledger) {
  const std::string_view request = kube::annotation_of(manifest, kMigrateAnnotation);
  const bool is_open =
      ledger.has_begun() && (!ledger.migration || ledger.migration->request != request);
  return is_open ? std::string(request) : std::string();
}

std::optional<std::string> obstacle_of(const std::vector<abi::statemachine::Delay>& missing,
                                       const Ledger& ledger, std::string_view sha256) {
  for (const abi::statemachine::Delay& delay : missing) {
    if (delay.duration) continue;
    return fmt::format(
        "{} has the delay {} in the machine of sha256:{}, which only entering the "
        "state can start: migrate in another state",
        delay.actor.empty() ? "the state " + ledger.value : delay.actor, delay.event, sha256);
  }
  return std::nullopt;
}

}  // namespace hangar::workflows
