#include "workflows/announcement.h"

#include <fmt/format.h>

namespace hangar::workflows {

using reconcile::EventText;
using reconcile::EventType;

std::vector<EventText> announcements_of(const std::vector<Decision::Transition>& transitions,
                                        const std::vector<std::string>& ignored,
                                        std::string_view value,
                                        const std::optional<Problem>& problem) {
  std::vector<EventText> events;
  for (const Decision::Transition& transition : transitions) {
    events.push_back({.reason = "Transition",
                      .message = transition.from.empty()
                                     ? fmt::format("began in {}", transition.to)
                                     : fmt::format("{} -> {} on {}", transition.from, transition.to,
                                                   transition.event)});
  }
  for (const std::string& type : ignored) {
    events.push_back({.type = EventType::Warning,
                      .reason = "EventIgnored",
                      .message = fmt::format("{} means nothing in state {}", type, value)});
  }
  if (problem && !problem->is_waiting) {
    events.push_back(
        {.type = EventType::Warning, .reason = problem->reason, .message = problem->message});
  }
  return events;
}

}  // namespace hangar::workflows
