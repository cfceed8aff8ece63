#include "guest_protocol/conversation.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "guest_protocol/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
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
  // The run's time-out begins when a thread is free for it: at worst after all runs in progress.
  timeouts_ += terms.timeout.value_or(Duration::zero());
  const Instant due = terms.timeout ? now + timeouts_ + patience_.run_grace : Instant::max();
  const bool is_new = runs_.try_emplace(run, Run{.terms = terms, .due = due}).second;
  HANGAR_ASSERT(is_new, "each run has a number of its own");
}

void Conversation::cancel(std::uint64_t run, Instant now) {
  const auto found = runs_.find(run);
  if (found != runs_.end()) {
    found->second.due = std::min(found->second.due, now + patience_.run_grace);
  }
}

void Conversation::answered(std::uint64_t run) {
  const auto found = runs_.find(run);
  HANGAR_ASSERT(found != runs_.end() && found->second.is_asking, "questions are answered once");
  found->second.is_asking = false;
}

Result<> Conversation::hear(const FromGuest& message, Instant now) {
  heard_ = now;
  if (!messages_.try_take(now)) return breach("it sent more messages than it can have to say");
  return std::visit([this](const auto& one) { return hear_one(one); }, message);
}

Result<Conversation::Run*> Conversation::find(std::uint64_t run) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return breach("it spoke of a run that is not under way");
  return &found->second;
}

Result<> Conversation::hear_question(std::uint64_t run) {
  Run* const found = HANGAR_TRY(find(run));
  if (found->terms.contract != Contract::Flight) {
    return breach("a converter asked for something of the cluster");
  }
  if (std::exchange(found->is_asking, true)) return breach("a run asked for two things at a time");
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
  const Run* const found = HANGAR_TRY(find(message.run));
  if (found->is_asking) return breach("a run ended while it waited for an answer");
  timeouts_ -= found->terms.timeout.value_or(Duration::zero());
  runs_.erase(message.run);
  return {};
}

Result<> Conversation::hear_one(const Pong& /*message*/) {
  if (!std::exchange(asked_, std::nullopt)) return breach("it answered what nobody had asked");
  return {};
}

Result<Conversation::Move> Conversation::look(Instant now) {
  for (const auto& [number, run] : runs_) {
    if (now >= run.due) return breach("a run did not end in its time");
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
    at = std::min(at, run.due);
  return at;
}

}  // namespace hangar::guest_protocol
