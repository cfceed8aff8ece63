// A sleeping guest on its way from a host to the process that replaces it: its state without its
// memory, and where the memory lies in files that both have.
#pragma once

#include "base/time.h"
#include "io/descriptor.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace hangar::abi::kube_runtime {

// The form of a packed guest (LocalGuest::pack), with the snapshot in it and the rewriting of its
// module. Raise it with every change: a guest of another form starts anew.
inline constexpr std::uint32_t kPackedGuestVersion = 1;

// What KnownCalls has of a guest that waits.
struct CarriedCalls {
  struct Call {
    std::uint64_t id = 0;
    bool is_delay = false;  // Otherwise a request.
    friend bool operator==(const Call&, const Call&) = default;
  };
  std::vector<Call> calls;  // Ascending.
  std::optional<std::uint64_t> metrics = {};
  std::optional<std::uint64_t> webhooks = {};
  std::optional<std::uint64_t> last_request = {};
  std::optional<std::uint64_t> last_delay = {};
  std::uint64_t next_id = 0;
  // Requests into the guest that it has not answered, and need not answer any more.
  std::vector<std::uint64_t> forgotten = {};

  friend bool operator==(const CarriedCalls&, const CarriedCalls&) = default;
};

struct CarriedGuest {
  // In the file of the snapshot store.
  std::uint64_t snapshot_offset = 0;
  std::uint32_t snapshot_bytes = 0;
  std::uint64_t memory_bytes = 0;  // That it needs to wake.
  Instant asleep_since;
  // Pages of its memory that are in a file of their own.
  struct Layer {
    struct Piece {
      std::uint32_t first = 0;
      std::uint32_t count = 0;
      friend bool operator==(const Piece&, const Piece&) = default;
    };
    std::vector<Piece> pieces;  // Ascending; one after the other in the file.
    io::Descriptor file;
  };
  std::optional<Layer> layer;
  CarriedCalls calls;
};

}  // namespace hangar::abi::kube_runtime
