// Whether a machine's answer can be stored: a ledger is bounded, and the next leader has to be able
// to read it.
#pragma once

#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "workflows/ledger.h"

namespace hangar::workflows {

// `ledger`: before the step. LimitExceeded when the two together exceed the bounds of a ledger,
// InvalidInput when the step could not be read back; the message names the faulty part.
[[nodiscard]] Result<> check_step(const abi::statemachine::Step& step, const Ledger& ledger);

}  // namespace hangar::workflows
