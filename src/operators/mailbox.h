// Arrivals for a guest that is in a turn or asleep: answers to its requests, whole or in pieces,
// in order.
//
// The mailbox is bounded, since a guest that does not take what it asked for would fill the
// host's memory. Beyond the bound the mailbox drops everything and closes until its guest starts
// anew. No I/O.
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
  // One arrival that the guest is woken for.
  struct Arrival {
    std::uint64_t id = 0;  // The request or the delay.
    std::variant<Head, gateway::Piece, End> what;
  };

  explicit Mailbox(std::size_t bytes_max = limits::kGuestAnswersBytesMax) : bytes_max_(bytes_max) {}

  enum class Room : std::uint8_t {
    Enough,
    Overflow,  // It has just closed. Returned once.
    Closed,    // It accepts nothing.
  };
  enum class Haste : std::uint8_t {
    None,    // Nobody can use it alone.
    Little,  // It may wait a moment (kOperatorEventHold) for what is more urgent.
    Full,
  };
  // The arrival was kept only if this returns Enough.
  [[nodiscard]] Room put(Arrival arrival, Instant now, Haste haste = Haste::Full);
  // An answer that has arrived in part now takes `now_bytes`, and took `before_bytes`.
  [[nodiscard]] Room set_under_way(std::uint64_t before_bytes, std::uint64_t now_bytes);

  // Everything, in order.
  [[nodiscard]] std::vector<Arrival> take();
  // Drops arrivals for these ids, which ascend: the guest no longer waits for them.
  void drop(std::span<const std::uint64_t> ids);
  // Drops everything, and forgets the answers under way. A closed mailbox stays closed.
  void clear();
  // The same, and accepts nothing until reopen().
  void close();
  void reopen() { is_closed_ = false; }

  [[nodiscard]] const std::vector<Arrival>& arrivals() const { return arrivals_; }
  [[nodiscard]] bool is_closed() const { return is_closed_; }
  [[nodiscard]] bool is_empty() const { return arrivals_.empty(); }
  // It is empty and no answer is under way.
  [[nodiscard]] bool is_idle() const { return arrivals_.empty() && under_way_bytes_ == 0; }
  [[nodiscard]] std::size_t size() const { return arrivals_.size(); }
  // Of arrivals and answers under way.
  [[nodiscard]] std::uint64_t bytes() const { return arrivals_bytes_ + under_way_bytes_; }
  // When the oldest arrived.
  [[nodiscard]] std::optional<Instant> first_arrival() const { return first_arrival_; }
  // When the guest should have a turn for what is here; nothing: it need not.
  [[nodiscard]] std::optional<Instant> due() const { return due_; }

 private:
  [[nodiscard]] Room check();

  const std::size_t bytes_max_;
  std::vector<Arrival> arrivals_;
  std::uint64_t arrivals_bytes_ = 0;
  std::uint64_t under_way_bytes_ = 0;
  std::optional<Instant> first_arrival_;
  std::optional<Instant> due_;
  bool is_closed_ = false;
};

}  // namespace hangar::operators
