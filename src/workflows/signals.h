// Events that people and other workflows send, as annotations of the workflow: one annotation each,
// in the order of their ids.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <string>
#include <string_view>
#include <vector>

namespace hangar::workflows {

struct Signal {
  std::string id;
  Result<json::Value> event;  // An object with a type; InvalidInput when it is not one.
};

// All pending signals on `manifest`, by id.
[[nodiscard]] std::vector<Signal> signals_of(const json::Value& manifest);

// Accepts {"type": ...} or a word, which becomes {"type": WORD}. InvalidInput for anything else.
[[nodiscard]] Result<json::Value> parse_event(std::string_view text);

// The merge patch that removes the signals' annotations; ids without an annotation do no harm.
[[nodiscard]] json::Value removal_of_signals(const std::vector<std::string>& ids);

}  // namespace hangar::workflows
