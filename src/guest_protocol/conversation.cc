#include "guest_protocol/conversation.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "guest_protocol/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace hangar::guest_protocol {

namespace {

std::unexpected<Error> breach(std::string what) {
  return fail(ErrorKind::GuestFault, std::move(what));
}

}  // namespace

void Conversation::begin(std::uint64_t run, const Terms& terms, Instant now) {
  if (runs_.empty()) heard_ = now;
  // The run's time-out starts when a thread is free for it: at worst after all runs in progress.
  timeouts_ += terms.timeout.value_or(Duration::zero());
  // Guests compute in slices, so a sleep waits for other sleeps only: each has a thread until its
  // guest is compressed.
  const bool is_sleep = terms.work == Work::Sleep;
  if (is_sleep) sleep_timeouts_ += terms.timeout.value_or(Duration::zero());
  const Instant due = terms.timeout
                          ? now + (is_sleep ? sleep_timeouts_ : timeouts_) + patience_.run_grace
                          : Instant::max();
  const bool is_new = runs_.try_emplace(run, Run{.terms = terms, .due = due}).second;
  HANGAR_ASSERT(is_new, "each run has a number of its own");
}

void Conversation::cancel(std::uint64_t run, Instant now) {
  const auto found = runs_.find(run);
  if (found != runs_.end()) {
    found->second.due = std::min(found->second.due, now + patience_.run_grace);
  }
}

void Conversation::answered(std::uint64_t run, Instant now) {
  const auto found = runs_.find(run);
  HANGAR_ASSERT(found != runs_.end() && found->second.is_asking, "questions are answered once");
  Run& asking = found->second;
  if (is_kept_waiting(asking) && asking.due != Instant::max()) asking.due += now - asking.asked_at;
  asking.is_asking = false;
}

void Conversation::refused(std::uint64_t run, Instant now) {
  answered(run, now);
  runs_.find(run)->second.is_refused = true;
}

Result<> Conversation::hear(const FromGuest& message, Instant now) {
  heard_ = now;
  if (!messages_.try_take(now)) return breach("it sent more messages than its rate limit allows");
  return std::visit([this](const auto& one) { return hear_one(one); }, message);
}

Result<Conversation::Run*> Conversation::find(std::uint64_t run) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return breach("it named a run that is not in progress");
  return &found->second;
}

Result<Conversation::Run*> Conversation::find(std::uint64_t run,
                                              std::initializer_list<Work> works) {
  Run* const found = HANGAR_TRY(find(run));
  if (std::ranges::find(works, found->terms.work) == works.end()) {
    return breach("a run sent a message that its kind of work does not allow");
  }
  return found;
}

Result<Conversation::Run*> Conversation::find_sleep(std::uint64_t run) {
  Run* const found = HANGAR_TRY(find(run, {Work::Sleep}));
  if (found->is_refused) return breach("a guest went on to sleep although a part was refused");
  return found;
}

Result<> Conversation::ask(Run& run) const {
  if (std::exchange(run.is_asking, true)) return breach("a run made two requests at a time");
  run.asked_at = heard_;
  return {};
}

bool Conversation::is_kept_waiting(const Run& run) {
  return run.is_asking && run.terms.work == Work::Sleep;
}

Result<> Conversation::hear_question(std::uint64_t run) {
  Run* const found = HANGAR_TRY(find(run));
  if (found->terms.work != Work::Flight) {
    return breach("a run that is not a flight requested cluster data");
  }
  return ask(*found);
}

Result<> Conversation::end(std::uint64_t run, const Run& ended) {
  if (ended.is_asking) return breach("a run ended while it waited for an answer");
  const Duration timeout = ended.terms.timeout.value_or(Duration::zero());
  timeouts_ -= timeout;
  if (ended.terms.work == Work::Sleep) sleep_timeouts_ -= timeout;
  runs_.erase(run);
  return {};
}

Result<> Conversation::hear_one(const LookUp& message) {
  return hear_question(message.run);
}

Result<> Conversation::hear_one(const MapKind& message) {
  return hear_question(message.run);
}

Result<> Conversation::hear_one(const AskMemory& message) {
  const Run* const found = HANGAR_TRY(find(message.run));
  if (message.bytes > found->terms.memory_bytes_max) {
    return breach("a run asked for more memory than its limit");
  }
  return {};
}

Result<> Conversation::hear_one(const EndRun& message) {
  const Run& found = *HANGAR_TRY(find(message.run, {Work::Flight, Work::Converter, Work::Machine}));
  if (found.terms.work == Work::Machine && message.stdout_bytes.size() > kMachineAnswerBytesMax) {
    return breach("a machine's answer is longer than it may be");
  }
  if (found.terms.work == Work::Machine && message.stderr_bytes.size() > kMachineLogBytesMax) {
    return breach("a machine's output is longer than it may be");
  }
  return end(message.run, found);
}

Result<> Conversation::hear_one(const TurnCall& message) {
  Run* const found = HANGAR_TRY(find(message.run, {Work::Turn}));
  found->call_bytes += message.request.size();
  if (++found->calls > kTurnCallsMax || found->call_bytes > kTurnCallBytesMax) {
    return breach("a turn made more requests than a guest may have");
  }
  return {};
}

Result<> Conversation::hear_one(const TurnAnswer& message) {
  Run* const found = HANGAR_TRY(find(message.run, {Work::Turn}));
  if (++found->answers > kTurnAnswersMax)
    return breach("a turn gave more answers than a guest may");
  return {};
}

Result<> Conversation::hear_one(const EndTurn& message) {
  return end(message.run, *HANGAR_TRY(find(message.run, {Work::Turn})));
}

Result<> Conversation::hear_one(const AskPiece& message) {
  Run* const found = HANGAR_TRY(find(message.run, {Work::Turn}));
  const std::uint64_t left = found->terms.snapshot_bytes - found->piece_bytes;
  if (left == 0) return breach("a turn requested more pieces than its guest's snapshot has");
  found->piece_bytes += std::min<std::uint64_t>(left, kPieceBytes);
  return ask(*found);
}

Result<> Conversation::hear_one(const KeepPiece& message) {
  Run* const found = HANGAR_TRY(find_sleep(message.run));
  if (found->piece_bytes == 0) found->total_bytes = message.total_bytes;
  if (message.total_bytes == 0 || message.total_bytes != found->total_bytes ||
      message.total_bytes > found->terms.snapshot_bytes) {
    return breach("the total size of a snapshot is wrong");
  }
  const std::uint64_t left = found->total_bytes - found->piece_bytes;
  if (left == 0 || message.bytes.size() != std::min<std::uint64_t>(left, kPieceBytes)) {
    return breach("a piece of a snapshot has the wrong size");
  }
  found->piece_bytes += message.bytes.size();
  return ask(*found);
}

Result<> Conversation::hear_one(const EndSleep& message) {
  const Run& found = *(message.is_error ? HANGAR_TRY(find(message.run, {Work::Sleep}))
                                        : HANGAR_TRY(find_sleep(message.run)));
  if (!message.is_error && (found.piece_bytes == 0 || found.piece_bytes < found.total_bytes)) {
    return breach("a snapshot is incomplete");
  }
  if (!message.is_error && message.is_on_layer &&
      (found.terms.layer_pages == 0 ||
       (found.has_new_layer && found.layer_page < found.terms.layer_pages))) {
    return breach("a layer is incomplete");
  }
  return end(message.run, found);
}

Result<> Conversation::hear_one(const MakeLayer& message) {
  Run* const found = HANGAR_TRY(find_sleep(message.run));
  if (found->piece_bytes > 0 || found->layer_page > 0 || found->has_new_layer) {
    return breach("a layer was made too late");
  }
  std::uint64_t pages = 0;
  std::uint64_t end = 0;
  for (const Pages& piece : message.pieces) {
    if (piece.count == 0 || piece.first < end) return breach("the pieces of a layer are wrong");
    end = std::uint64_t{piece.first} + piece.count;
    pages += piece.count;
  }
  if (pages == 0 || pages > found->terms.layer_pages_max || end > found->terms.layer_end_max) {
    return breach("the size of a layer is wrong");
  }
  found->has_new_layer = true;
  found->terms.layer_pages = static_cast<std::uint32_t>(pages);
  return ask(*found);
}

Result<> Conversation::hear_one(const KeepPages& message) {
  Run* const found = HANGAR_TRY(find_sleep(message.run));
  if (found->piece_bytes > 0) return breach("pages of a layer came too late");
  std::uint64_t pages = 0;
  std::uint64_t end = found->layer_page;
  for (const Pages& range : message.pages) {
    // All pages of a new layer come, in order.
    if (range.count == 0 || range.first < end || (found->has_new_layer && range.first != end)) {
      return breach("the pages of a layer are out of order");
    }
    end = std::uint64_t{range.first} + range.count;
    pages += range.count;
  }
  if (pages == 0 || end > found->terms.layer_pages) {
    return breach("pages lie outside of their layer");
  }
  if (message.bytes.size() != pages * kLayerPageBytes) {
    return breach("the pages of a layer have the wrong size");
  }
  found->layer_page = static_cast<std::uint32_t>(end);
  return ask(*found);
}

Result<> Conversation::hear_one(const Pong& /*message*/) {
  if (!std::exchange(asked_, std::nullopt))
    return breach("it answered a ping that the host had not sent");
  return {};
}

Result<Conversation::Move> Conversation::look(Instant now) {
  for (const auto& [number, run] : runs_) {
    if (now >= run.due && !is_kept_waiting(run)) return breach("a run did not finish in time");
  }
  if (asked_ && now >= *asked_ + patience_.silence_max) {
    return breach(fmt::format("it did not answer for {}", to_go_duration(patience_.silence_max)));
  }
  if (runs_.empty() || asked_ || now < heard_ + patience_.quiet_max) return Move::Wait;
  asked_ = now;
  return Move::Ping;
}

std::optional<Instant> Conversation::look_at() const {
  if (runs_.empty()) return std::nullopt;
  Instant at = asked_ ? *asked_ + patience_.silence_max : heard_ + patience_.quiet_max;
  for (const auto& [number, run] : runs_)
    if (!is_kept_waiting(run)) at = std::min(at, run.due);
  return at;
}

}  // namespace hangar::guest_protocol
