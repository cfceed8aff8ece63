// The rules for messages of one guest process, which an attacker may control.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "guest_protocol/messages.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>

namespace hangar::guest_protocol {

// Far more messages than 64 runs can send that look up one object after the other; reading so many
// takes a few hundredths of the time of the host's loop.
inline constexpr double kMessagesPerSecondMax = 50'000;

// A state machine: it receives each message and its time, and returns whether the message breaks a
// rule. The host kills a process that breaks one.
//
// The rules: the process names only runs that are in progress; each run ends once, with the message
// for its kind of work; a run has at most one open question, and only a flight asks about the
// cluster; memory requests stay within the run's limit; a machine's answer and output stay within
// their bounds; a turn makes no more calls than a guest may, and fetches its guest once; a guest
// that falls asleep arrives in whole pieces, as large as announced; before them the pages of its
// layer, each at most once and all of a new one. The process answers a ping,
// ends a run in time, and does not flood the host. abi/kube_runtime/known_calls.h checks the
// content of a turn's calls.
class Conversation {
 public:
  // A process that has work and sends nothing for `quiet_max` gets a ping; it is killed when it
  // does not answer within `silence_max`, which is long enough even on a loaded machine. A run may
  // take `run_grace` beyond its time-out to deliver its output of up to kOutputBytesMax.
  struct Patience {
    Duration quiet_max = std::chrono::seconds(2);
    Duration silence_max = std::chrono::seconds(10);
    Duration run_grace = std::chrono::seconds(10);
  };
  Conversation() = default;
  explicit Conversation(Patience patience) : patience_(patience) {}

  enum class Work : std::uint8_t {
    Flight,
    Converter,
    Machine,  // A question to a machine.
    Turn,     // A turn of a long-lived guest.
    Sleep,    // A long-lived guest falls asleep.
  };
  struct Terms {
    Work work = Work::Flight;
    std::uint64_t memory_bytes_max = 0;  // Counted as AskMemory counts.
    // Sleep: without the time that the host takes to store it.
    std::optional<Duration> timeout;
    // Turn: the size of the guest's snapshot, if it is asleep. Sleep: the bound for it.
    std::uint64_t snapshot_bytes = 0;
    // Sleep: the pages of the guest's layer, the bound for those of a new one, and where it ends in
    // the guest's memory at the latest.
    std::uint32_t layer_pages = 0;
    std::uint32_t layer_pages_max = 0;
    std::uint32_t layer_end_max = 0;
  };

  // The host has started a run. `run` is a new number.
  void begin(std::uint64_t run, const Terms& terms, Instant now);
  // The host no longer needs the result: from now on the run has only the grace time left.
  void cancel(std::uint64_t run, Instant now);
  // The host has answered a LookUp, MapKind, AskPiece, KeepPiece, MakeLayer or KeepPages.
  void answered(std::uint64_t run, Instant now);
  // The same when the host has refused to keep something: the run can only end with an error.
  void refused(std::uint64_t run, Instant now);

  // GuestFault, with a description, when the message breaks a rule.
  [[nodiscard]] Result<> hear(const FromGuest& message, Instant now);

  enum class Move : std::uint8_t { Wait, Ping };
  // What the host has to do now. GuestFault when the process is silent, or a run takes too long.
  [[nodiscard]] Result<Move> look(Instant now);
  // When to call look() again; std::nullopt while no run is in progress.
  [[nodiscard]] std::optional<Instant> look_at() const;

  [[nodiscard]] std::size_t under_way() const { return runs_.size(); }

 private:
  struct Run {
    Terms terms;
    Instant due;  // The run must have ended by then.
    bool is_asking = false;
    Instant asked_at;               // While it is asking.
    std::uint64_t piece_bytes = 0;  // Bytes of the pieces that it has fetched or handed over.
    std::uint64_t total_bytes = 0;  // Sleep: the size that its first piece announced.
    bool is_refused = false;
    bool has_new_layer = false;
    std::uint32_t layer_page = 0;  // Pages of its layer may follow from this one on.
    std::size_t calls = 0;
    std::size_t call_bytes = 0;
    std::size_t answers = 0;
  };

  [[nodiscard]] Result<Run*> find(std::uint64_t run);
  // The run, if its work is one of `works`.
  [[nodiscard]] Result<Run*> find(std::uint64_t run, std::initializer_list<Work> works);
  [[nodiscard]] Result<> hear_question(std::uint64_t run);
  [[nodiscard]] Result<> ask(Run& run) const;
  // Whether the run waits until the host has stored a part of a guest: its time stands still.
  [[nodiscard]] static bool is_kept_waiting(const Run& run);
  // The run if it hands over a guest that falls asleep.
  [[nodiscard]] Result<Run*> find_sleep(std::uint64_t run);
  [[nodiscard]] Result<> end(std::uint64_t run, const Run& ended);
  [[nodiscard]] Result<> hear_one(const LookUp& message);
  [[nodiscard]] Result<> hear_one(const MapKind& message);
  [[nodiscard]] Result<> hear_one(const AskMemory& message);
  [[nodiscard]] Result<> hear_one(const EndRun& message);
  [[nodiscard]] Result<> hear_one(const Pong& message);
  [[nodiscard]] Result<> hear_one(const TurnCall& message);
  [[nodiscard]] Result<> hear_one(const TurnAnswer& message);
  [[nodiscard]] Result<> hear_one(const EndTurn& message);
  [[nodiscard]] Result<> hear_one(const AskPiece& message);
  [[nodiscard]] Result<> hear_one(const KeepPiece& message);
  [[nodiscard]] Result<> hear_one(const EndSleep& message);
  [[nodiscard]] Result<> hear_one(const MakeLayer& message);
  [[nodiscard]] Result<> hear_one(const KeepPages& message);

  Patience patience_;
  TokenBucket messages_{{.per_second = kMessagesPerSecondMax, .burst = kMessagesPerSecondMax}};
  std::map<std::uint64_t, Run> runs_;
  Duration timeouts_{};           // The sum over the runs in progress.
  Duration sleep_timeouts_{};     // The sum over those in which a guest falls asleep.
  Instant heard_;                 // When the last message arrived.
  std::optional<Instant> asked_;  // When the unanswered ping was sent.
};

}  // namespace hangar::guest_protocol
