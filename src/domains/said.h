// Conversions of messages from a guest process into checked values, and of answers to it.
#pragma once

#include "base/result.h"
#include "budget/accounts.h"
#include "guest_protocol/messages.h"

#include <optional>
#include <string>

namespace hangar::domains {

// Turns text of a process that an attacker may control into one line for a status and a log.
[[nodiscard]] std::string one_line(std::string text);

// Returns `said` if a run in the host could fail with that kind, else GuestFault. Other kinds would
// let the process steer the host: retry at once, or discard something.
[[nodiscard]] ErrorKind believed(ErrorKind said, bool is_stopped);

// Answers a request for memory by growing the run's reservation; std::nullopt: there are
// no accounts.
[[nodiscard]] guest_protocol::MemoryAnswer answer_of(const guest_protocol::AskMemory& message,
                                                     std::optional<budget::Reservation>& memory);

// Cuts a name to kNameBytesMax, the most that a message may contain.
[[nodiscard]] std::string cut_name(std::string name);

}  // namespace hangar::domains
