// Whether what a machine decided can be written down: a ledger is bounded, and what is in it is
// read again by whoever leads next.
#pragma once

#include "abi/statemachine/machine.h"
#include "base/result.h"
#include "workflows/ledger.h"

namespace hangar::workflows {

// `ledger`: before the step. LimitExceeded when the two together are more than a ledger holds,
// InvalidInput when the step cannot be read back; the message says which part of it is wrong.
[[nodiscard]] Result<> check_step(const abi::statemachine::Step& step, const Ledger& ledger);

}  // namespace hangar::workflows
