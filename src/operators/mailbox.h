// What waits for a guest while it is in a turn or asleep: answers to its requests, whole or in
// pieces, in the order of their arrival.
//
// Its room is bounded. A guest that does not take what it asked for would fill the host's memory:
// beyond the bound the mailbox drops all that it has and closes, until its guest begins anew. No
// I/O.
#pragma once

#include "base/time.h"
#include "gateway/gateway.h"
#include "http/client.h"
#include "operators/limits.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace hangar::operators {

class Mailbox {
 public:
  struct Head {
    int status = 0;
    http::Headers headers;
  };
  struct End {};
  // One thing that the guest is woken for.
  struct Arrival {
    std::uint64_t id = 0;  // Of the request, or of the delay.
    std::variant<Head, gateway::Piece, End> what;
  };

  explicit Mailbox(std::size_t bytes_max = limits::kGuestAnswersBytesMax) : bytes_max_(bytes_max) {}

  enum class Room : std::uint8_t {
    Enough,
    Overflow,  // It has closed just now. Said once.
    Closed,    // Nothing is taken any more.
  };
  // Only with Enough it was put.
  [[nodiscard]] Room put(Arrival arrival, Instant now);
  // An answer that is not all here yet takes `now_bytes`, and took `before_bytes`.
  [[nodiscard]] Room set_under_way(std::uint64_t before_bytes, std::uint64_t now_bytes);

  // All of it, in order.
  [[nodiscard]] std::vector<Arrival> take();
  // Drops what has arrived for these: the guest does not wait for them any more.
  void drop(std::span<const std::uint64_t> ids);
  // Drops what it has, and what is under way. It stays closed if it is.
  void clear();
  void reopen() { is_closed_ = false; }

  [[nodiscard]] bool is_closed() const { return is_closed_; }
  [[nodiscard]] bool is_empty() const { return arrivals_.empty(); }
  // It is empty and nothing is under way.
  [[nodiscard]] bool is_idle() const { return arrivals_.empty() && under_way_bytes_ == 0; }
  [[nodiscard]] std::size_t size() const { return arrivals_.size(); }
  // Since when the oldest waits.
  [[nodiscard]] std::optional<Instant> first_arrival() const { return first_arrival_; }

 private:
  [[nodiscard]] Room check();

  const std::size_t bytes_max_;
  std::vector<Arrival> arrivals_;
  std::uint64_t arrivals_bytes_ = 0;
  std::uint64_t under_way_bytes_ = 0;
  std::optional<Instant> first_arrival_;
  bool is_closed_ = false;
};

}  // namespace hangar::operators
