// Turns a change of a node's state into an Event on the Node and into the result of an attempt for
// the metrics. No I/O.
#pragma once

#include "nodes/names.h"
#include "nodes/node_view.h"
#include "nodes/rollout.h"
#include "reconcile/event_log.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace hangar::nodes {

enum class AttemptEnd : std::uint8_t { Succeeded, Failed };
[[nodiscard]] std::string_view name_of(AttemptEnd end);

struct Announcement {
  Action action = Action::Install;
  AttemptEnd end = AttemptEnd::Succeeded;
  reconcile::EventText text = {};
};

// std::nullopt for a change that ends no attempt.
[[nodiscard]] std::optional<Announcement> announcement_of(const NodeState& before,
                                                          const NodeState& after,
                                                          const Policy& policy);

}  // namespace hangar::nodes
