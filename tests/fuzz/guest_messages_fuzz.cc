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
#include <vector>

namespace protocol = hangar::guest_protocol;

namespace {

// Of ranges that lie in the first `end` pages, in order.
std::uint64_t pages_of(const std::vector<protocol::Pages>& ranges, std::uint64_t end) {
  std::uint64_t pages = 0;
  std::uint64_t at = 0;
  for (const protocol::Pages& range : ranges) {
    HANGAR_ASSERT(range.count > 0 && range.first >= at, "ranges ascend");
    at = std::uint64_t{range.first} + range.count;
    pages += range.count;
  }
  HANGAR_ASSERT(at <= end, "they lie within their bound");
  return pages;
}

}  // namespace

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
  talk.begin(4,
             {.work = Work::Sleep,
              .snapshot_bytes = hangar::limits::kMiB,
              .layer_pages = 2,
              .layer_pages_max = 8,
              .layer_end_max = 64},
             now);
  std::size_t ended = 0;
  std::uint64_t layer_pages = 2;
  std::uint64_t written = 0;
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
        talk.answered(kept->run, now);
      }
      if (const auto* const made = std::get_if<protocol::MakeLayer>(&*message)) {
        HANGAR_ASSERT(!made->pieces.empty() && made->pieces.size() <= 8, "none is empty");
        layer_pages = pages_of(made->pieces, 64);
        HANGAR_ASSERT(layer_pages <= 8, "as large as it may be");
        talk.answered(made->run, now);
      }
      if (const auto* const kept = std::get_if<protocol::KeepPages>(&*message)) {
        const std::uint64_t pages = pages_of(kept->pages, layer_pages);
        HANGAR_ASSERT(pages * protocol::kLayerPageBytes == kept->bytes.size(), "whole pages");
        written += pages;
        HANGAR_ASSERT(written <= layer_pages, "each page once");
        talk.answered(kept->run, now);
      }
    }
    HANGAR_ASSERT(frames.waiting_bytes() <= size, "nothing is made up");
  }
  return 0;
}
