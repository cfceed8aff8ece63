// A state machine's answer.

#include "abi/statemachine/answer.h"
#include "abi/statemachine/diagram.h"
#include "abi/statemachine/limits.h"
#include "base/assert.h"
#include "base/time.h"
#include "json/value.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace statemachine = hangar::abi::statemachine;

// The state before, a null byte, the answer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(bytes.find('\0'), size);
  const std::string before(bytes.substr(0, end));
  const std::string_view text = end == size ? bytes : bytes.substr(end + 1);

  const auto step = statemachine::read_answer(text, end == size ? std::string_view() : before);
  if (!step) {
    HANGAR_ASSERT(step.error().message().size() < 8192, "an error fits a condition");
  } else {
    HANGAR_ASSERT(step->state.size() <= hangar::limits::kWorkflowStateBytesMax, "bounded");
    HANGAR_ASSERT(step->is_handled || step->actions.empty(), "nothing is asked for then");
    HANGAR_ASSERT(hangar::json::parse(step->value).has_value(), "JSON");
    HANGAR_ASSERT(!step->output || hangar::json::parse(*step->output).has_value(), "JSON");
    for (const auto& action : step->actions) {
      const auto params = hangar::json::parse(action.params);
      HANGAR_ASSERT(!action.type.empty() && params && params->is_object(), "params are an object");
    }
    for (const auto& timer : step->timers_started) {
      HANGAR_ASSERT(timer.delay >= hangar::Duration::zero(), "not in the past");
      HANGAR_ASSERT(timer.delay <= hangar::limits::kWorkflowDelayMax, "bounded");
      HANGAR_ASSERT(hangar::json::parse(timer.event).has_value(), "JSON");
    }
  }
  const auto given = statemachine::restorable(before);
  HANGAR_ASSERT(!given || hangar::json::parse(*given).has_value(), "JSON");
  for (const auto& drawn :
       {statemachine::draw_tree(text, ""), statemachine::draw_mermaid(text, "")}) {
    HANGAR_ASSERT(!drawn || drawn->find('\x1b') == std::string::npos, "moves no cursor");
  }
  return 0;
}
