// What a guest process says, as far as the host makes something of it, and what the host says to
// it.
#pragma once

#include "base/result.h"
#include "budget/accounts.h"
#include "guest_protocol/messages.h"

#include <optional>
#include <string>

namespace hangar::domains {

// Text of a process that may belong to an attacker, as one line for a status and a log.
[[nodiscard]] std::string one_line(std::string text);

// The kinds that a run in the host could end with. Any other would tell the host what to do: retry
// at once, or discard something.
[[nodiscard]] ErrorKind believed(ErrorKind said, bool is_stopped);

// Answers from the memory that is reserved for the run; none: there are no accounts.
[[nodiscard]] guest_protocol::MemoryAnswer answer_of(const guest_protocol::AskMemory& message,
                                                     std::optional<budget::Reservation>& memory);

// Cuts a name to kNameBytesMax, so that it may be sent.
[[nodiscard]] std::string cut_name(std::string name);

}  // namespace hangar::domains
