// Relations between a live object and an action that is about it. No I/O.
#pragma once

#include "json/value.h"
#include "workflows/actions.h"

#include <cstdint>
#include <span>
#include <string>

namespace hangar::workflows {

// The workflow has made the object.
[[nodiscard]] bool is_owned(const json::Value& object, const Owner& owner);

// Applying a Job again does not run it again, so a Job that another action created is in the way.
[[nodiscard]] bool is_earlier_job(const json::Value& live, ActionKind kind, const Owner& owner,
                                  std::int64_t action);

// The object belongs to one of these actions.
[[nodiscard]] bool belongs_to_any(const json::Value& live, const Owner& owner,
                                  std::span<const std::int64_t> actions);

// The unmet part of the wish; empty when all of it is met. Wish::is_gone does not count: `live`
// exists.
[[nodiscard]] std::string unmet(const Wish& wish, const json::Value& live);

}  // namespace hangar::workflows
