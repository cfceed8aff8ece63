// The cost of each guest: processor time, turns, requests and bytes in a period, from the records;
// memory, disk and starts from the host's current state.
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

// A guest that currently exists on the host.
struct PresentGuest {
  GuestKey key;
  std::string phase;  // "Asleep".
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t restarts = 0;
};

struct TopRow {
  GuestKey key;
  std::string phase;  // Empty: unknown, since the guest no longer exists.
  Duration cpu{};
  std::uint64_t turns = 0;
  std::uint64_t failures = 0;  // Turns that failed.
  std::uint64_t requests = 0;
  std::uint64_t written_bytes = 0;  // Size of the bodies of writes.
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t restarts = 0;
};

struct TopQuestion {
  std::string namespace_;  // Empty: all namespaces.
  std::chrono::seconds window{60};

  friend bool operator==(const TopQuestion&, const TopQuestion&) = default;
};
struct FoundTop {
  WallTime at;
  Duration window{};         // Period of the counts; shorter than requested if records are younger.
  std::vector<TopRow> rows;  // Sorted by their keys.
  recorder::ReadDirectory read;
};

// Only guests with a recorded turn.
[[nodiscard]] Result<FoundTop> find_top(const RecordsPlace& place, const TopQuestion& question,
                                        const ReadBounds& bounds);
// Adds the host's other guests, and the current state of all.
void add_present(FoundTop& found, const std::vector<PresentGuest>& present);

}  // namespace hangar::seeing
