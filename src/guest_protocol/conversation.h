// The rules of the host's talk with one guest process, whose side may be an attacker's.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "guest_protocol/messages.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace hangar::guest_protocol {

// Far more than 64 runs that look things up one after the other have to say, and what costs the
// host's loop a few hundredths of its time.
inline constexpr double kMessagesPerSecondMax = 50'000;

// A machine: what was said, and when, in; whether it was a breach, out. Whoever breaks a rule is
// not talked to any more.
//
// The rules: it speaks of runs that are under way and of no others; each ends once; a flight asks
// for one thing at a time, a converter for nothing of the cluster; memory is asked for within the
// run's limit. It answers a ping, ends a run in time, and does not
// flood the host.
class Conversation {
 public:
  // One that works on something and says nothing for `quiet_max` is asked whether it is there, and
  // is ended when it does not answer for `silence_max`: a machine under load schedules everybody
  // within that. A run may be on its way to its end for `run_grace` after its time: what it printed
  // is up to kFlightOutputBytesMax.
  struct Patience {
    Duration quiet_max = std::chrono::seconds(2);
    Duration silence_max = std::chrono::seconds(10);
    Duration run_grace = std::chrono::seconds(10);
  };
  Conversation() = default;
  explicit Conversation(Patience patience) : patience_(patience) {}

  struct Terms {
    Contract contract = Contract::Flight;
    std::uint64_t memory_bytes_max = 0;  // As AskMemory counts.
    std::optional<Duration> timeout;
  };

  // `run` is a new number.
  void begin(std::uint64_t run, const Terms& terms, Instant now);
  // The host does not want its result any more: from now on it may take the grace only.
  void cancel(std::uint64_t run, Instant now);
  // The host has answered a LookUp or a MapKind.
  void answered(std::uint64_t run);

  // GuestFault for a breach, with words.
  [[nodiscard]] Result<> hear(const FromGuest& message, Instant now);

  enum class Move : std::uint8_t { Wait, Ping };
  // What to do now. GuestFault for a breach: the process is silent, or holds a run for too long.
  [[nodiscard]] Result<Move> look(Instant now);
  // When to look again; nothing while no run is under way.
  [[nodiscard]] std::optional<Instant> look_at() const;

  [[nodiscard]] std::size_t under_way() const { return runs_.size(); }

 private:
  struct Run {
    Terms terms;
    Instant due;  // Ended by then.
    bool is_asking = false;
  };

  [[nodiscard]] Result<Run*> find(std::uint64_t run);
  [[nodiscard]] Result<> hear_question(std::uint64_t run);
  [[nodiscard]] Result<> hear_one(const LookUp& message);
  [[nodiscard]] Result<> hear_one(const MapKind& message);
  [[nodiscard]] Result<> hear_one(const AskMemory& message);
  [[nodiscard]] Result<> hear_one(const EndRun& message);
  [[nodiscard]] Result<> hear_one(const Pong& message);

  Patience patience_;
  TokenBucket messages_{{.per_second = kMessagesPerSecondMax, .burst = kMessagesPerSecondMax}};
  std::map<std::uint64_t, Run> runs_;
  Duration timeouts_{};           // Of the runs under way, together.
  Instant heard_;                 // The last message.
  std::optional<Instant> asked_;  // When a ping was sent that has no answer.
};

}  // namespace hangar::guest_protocol
