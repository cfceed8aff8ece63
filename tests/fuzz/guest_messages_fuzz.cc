// Messages of a guest process that an attacker has taken over.
#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/frames.h"
#include "guest_protocol/messages.h"
#include "guest_protocol/zygote_messages.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace protocol = hangar::guest_protocol;

// The first byte is the size of the pieces in which the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece_bytes = std::size_t{data[0]} + 1;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);

  const auto zygote = protocol::decode_from_zygote(rest);
  HANGAR_ASSERT(!zygote || protocol::encode(*zygote) == rest, "one way to write it");

  protocol::Frames frames(protocol::kFromGuestBytesMax);
  protocol::Conversation talk;
  const hangar::Instant now = hangar::Instant() + std::chrono::hours(1);
  talk.begin(1, {.memory_bytes_max = hangar::limits::kMiB, .timeout = std::chrono::seconds(1)},
             now);
  using Work = protocol::Conversation::Work;
  talk.begin(2, {.work = Work::Converter}, now);
  talk.begin(3, {.work = Work::Turn, .memory_bytes_max = hangar::limits::kMiB, .snapshot_bytes = 1},
             now);
  talk.begin(4, {.work = Work::Sleep, .snapshot_bytes = hangar::limits::kMiB}, now);
  std::size_t ended = 0;
  while (!rest.empty()) {
    frames.add(rest.substr(0, piece_bytes));
    rest.remove_prefix(std::min(piece_bytes, rest.size()));
    while (true) {
      const auto frame = frames.next();
      if (!frame) return 0;
      if (!*frame) break;
      const auto message = protocol::decode_from_guest((*frame)->type, (*frame)->payload);
      if (!message) return 0;
      const std::string again = protocol::encode(*message);
      HANGAR_ASSERT(again.substr(protocol::kFrameHeaderBytes) == (*frame)->payload,
                    "one way to write it");
      if (!talk.hear(*message, now)) return 0;
      if (std::holds_alternative<protocol::EndRun>(*message) ||
          std::holds_alternative<protocol::EndTurn>(*message) ||
          std::holds_alternative<protocol::EndSleep>(*message)) {
        ++ended;
      }
      HANGAR_ASSERT(ended + talk.under_way() == 4, "each run ends once");
      if (const auto* const kept = std::get_if<protocol::KeepPiece>(&*message)) {
        talk.answered(kept->run);
      }
    }
    HANGAR_ASSERT(frames.waiting_bytes() <= size, "nothing is made up");
  }
  return 0;
}
