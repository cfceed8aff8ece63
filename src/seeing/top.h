// What each guest costs: processor time, turns, requests and bytes of a while, from the records,
// and memory, disk and starts as the host has them now.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "recorder/record.h"
#include "recorder/story.h"
#include "seeing/find.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hangar::seeing {

struct GuestKey {
  recorder::Contract contract = recorder::Contract::Operator;
  std::string namespace_;
  std::string name;

  friend auto operator<=>(const GuestKey&, const GuestKey&) = default;
};

// One guest that the host has.
struct PresentGuest {
  GuestKey key;
  std::string phase;  // "Asleep".
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t restarts = 0;
};

struct TopRow {
  GuestKey key;
  std::string phase;  // Empty: not known, the guest is gone.
  Duration cpu{};
  std::uint64_t turns = 0;
  std::uint64_t failures = 0;  // Of these.
  std::uint64_t requests = 0;
  std::uint64_t written_bytes = 0;  // Of the bodies of writes.
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t restarts = 0;
};

struct TopQuestion {
  std::string namespace_;  // Empty: all of them.
  std::chrono::seconds window{60};

  friend bool operator==(const TopQuestion&, const TopQuestion&) = default;
};
struct FoundTop {
  WallTime at;
  Duration window{};         // What the counts are of: less than asked where records are younger.
  std::vector<TopRow> rows;  // By their keys.
  recorder::ReadDirectory read;
};

// Of those guests alone that had a turn, as far as records tell.
[[nodiscard]] Result<FoundTop> find_top(const RecordsPlace& place, const TopQuestion& question,
                                        const ReadBounds& bounds);
// With all others that the host has.
void add_present(FoundTop& found, const std::vector<PresentGuest>& present);

}  // namespace hangar::seeing
