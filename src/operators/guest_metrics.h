// The metrics that a guest registers, as it has given them last.
//
// A guest's memory does not change between its turns, so its metrics do not either: text that was
// taken in the last turn is served without running the guest. A guest is asked only while it is in
// memory: when someone scrapes it after a turn in which it was not asked, and before it goes to
// sleep if someone has scraped it lately. No I/O, except that it wakes the tasks that wait.
#pragma once

#include "abi/kube_runtime/messages.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/stepped_reservation.h"
#include "io/event.h"
#include "io/loop.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hangar::operators {

// Loop thread only.
class GuestMetrics {
 public:
  // `memory` counts the text.
  explicit GuestMetrics(budget::SteppedReservation memory) : memory_(std::move(memory)) {}

  void on_scrape(Instant now) { scraped_at_ = now; }
  [[nodiscard]] bool was_scraped_lately(Instant now) const;
  // The guest has had no turn since it was asked last.
  [[nodiscard]] bool is_current() const { return is_current_; }

  // The returned value is set when the next turn has an answer: false if there will be none.
  [[nodiscard]] io::OneShot<bool> wait(io::Loop& loop);
  [[nodiscard]] bool is_waited_for() const;

  // The guest is asked in the turn that begins, under this id; nothing: it could not be. Either way
  // it is not asked again before it has had another turn.
  void on_asked(std::optional<std::uint64_t> id);
  // The request that it has not answered.
  [[nodiscard]] std::optional<std::uint64_t> unanswered() const { return asked_; }
  // A turn begins in which the guest is not asked.
  void on_turn() { is_current_ = false; }
  // What the guest has answered in a turn, to whatever it was asked.
  void on_answers(std::span<abi::kube_runtime::InboundAnswer> answers);
  // The guest is gone, and its metrics with it.
  void clear();

  // Nothing: it has never been asked, or has not answered. Unavailable: its last answer could not
  // be used, for this reason.
  [[nodiscard]] const std::optional<Result<std::string>>& last() const { return last_; }

 private:
  [[nodiscard]] Result<std::string> taken(abi::kube_runtime::InboundAnswer answer);
  void tell(bool is_answered);

  budget::SteppedReservation memory_;
  std::optional<Result<std::string>> last_;
  std::optional<std::uint64_t> asked_;  // The request that has no answer yet.
  std::vector<io::OneShot<bool>> waiting_;
  Instant scraped_at_;
  bool is_current_ = false;
};

}  // namespace hangar::operators
