#include "domains/said.h"

#include "base/result.h"
#include "base/utf8.h"
#include "budget/accounts.h"
#include "guest_protocol/messages.h"

#include <algorithm>
#include <optional>
#include <string>

namespace hangar::domains {

namespace {

namespace protocol = guest_protocol;

}  // namespace

std::string one_line(std::string text) {
  text.resize(valid_utf8_prefix(text));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

ErrorKind believed(ErrorKind said, bool is_stopped) {
  switch (said) {
    case ErrorKind::LimitExceeded:
    case ErrorKind::Unavailable:
      return said;
    case ErrorKind::Cancelled:
      return is_stopped ? said : ErrorKind::GuestFault;
    default:
      return ErrorKind::GuestFault;
  }
}

protocol::MemoryAnswer answer_of(const protocol::AskMemory& message,
                                 std::optional<budget::Reservation>& memory) {
  protocol::MemoryAnswer answer{.run = message.run};
  if (memory && message.bytes > memory->bytes()) {
    const auto resized = memory->resize(message.bytes);
    if (!resized) answer.refusal = budget::to_text(resized.error());
  }
  return answer;
}

std::string cut_name(std::string name) {
  name.resize(std::min(name.size(), protocol::kNameBytesMax));
  return name;
}

}  // namespace hangar::domains
