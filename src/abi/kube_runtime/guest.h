// The kube-runtime-abi contract: the guest is an asynchronous controller. Its HTTP requests and
// delays are calls to the host, and the host answers by waking the guest. docs/abi/kube-runtime.md
// describes it in full.
//
// This code does not know where requests go or when a guest is suspended: a turn returns the calls
// that the guest made, and the next turn starts with the answers. Nor do its users know in which
// process the guest lives: local_guest.h has the guests of this process.
#pragma once

#include "abi/kube_runtime/carried_guest.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/output_lines.h"
#include "base/in_slot.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/limits.h"
#include "wasm/snapshot/sleepable_module.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::abi::kube_runtime {

struct Surroundings {
  std::vector<std::string> environment;  // "NAME=value".
  // From the path as the guest sees it ("/etc/config/key") to the content; read-only.
  std::map<std::string, std::string> files;
};

struct GuestOptions {
  std::vector<std::string> args;  // The name of the program comes first.
  std::vector<std::string> environment;
  std::map<std::string, std::string> files;
  // Added for a guest that runs until it is idle. `environment` and `files` above take precedence.
  Surroundings in_pod;
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  Duration cpu_time_max = limits::kGuestCallMax;  // For one turn.
  // False: sleep() will not be called.
  bool may_sleep = true;
  // The name of the guest in its namespace, if it shares its place with no other guest; it
  // identifies that place. Empty: the guest shares a place.
  std::string alone = {};
  // The maximum output that is kept from one turn; the rest is dropped and counted.
  std::uint64_t output_bytes_max = limits::kOperatorOutputBytesMax;
};

struct TurnOutcome {
  // Errors as in wasm::TurnReport; the guest is then gone. Also GuestFault for a call that the
  // contract does not know (bytes that are not a request), LimitExceeded when the guest requested
  // too much, and, from start(), InvalidInput for a module or options that are not valid.
  Result<> ended;
  // The guest has finished and is gone: it called proc_exit, or (zero) it waits for nothing that
  // could wake it, like a program without wakeup after its _start.
  std::optional<std::uint32_t> exit_code;
  // In order, with the ids that the guest was given. Empty when the guest is gone: it waits for no
  // answers. Contains only requests that may start now: a guest has at most kGuestRequestsMax in
  // flight, and further ones come with the outcome of a later turn.
  std::vector<HttpCall> calls;
  std::vector<Delay> delays;
  // Answers to requests for which hand_in() made wakeups: each at most once, in any order and any
  // turn.
  std::vector<InboundAnswer> answers;
  // Ids of calls and delays of earlier outcomes for which the guest no longer waits. The host must
  // cancel them before it starts the new ones above.
  std::vector<std::uint64_t> cancelled;
  std::vector<OutputLine> output;  // An unfinished line ends with the turn.
  std::uint64_t output_dropped_bytes = 0;
  bool was_asleep = false;
  // Of bringing it into memory, if it was asleep: the time that it took, and processor time.
  Duration resume_time{};
  Duration resume_cpu_time{};
  Duration cpu_time{};  // Including resuming.
};

// One guest, from _start until it is gone. Loop thread; one turn or sleep() at a time.
class Guest : public slots::InSlot {
 public:
  Guest() = default;
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  virtual ~Guest() = default;

  // Calls _initialize if it exists, _start, and run_until_idle if it exists. Once, before all other
  // turns. `consumer`: on whose behalf it runs; it uses this consumer's share of the workers.
  [[nodiscard]] virtual io::Task<TurnOutcome> start(
      std::stop_token stop, budget::Consumer consumer = budget::unnamed_consumer()) = 0;
  // For each wakeup in order: allocate, copy, wakeup; then run_until_idle if it exists. Ids that
  // the guest does not wait for (unknown or finished) are skipped, because they would make it trap.
  // If none remains, the guest is not woken at all. An empty body that is not null still needs
  // allocate(0).
  [[nodiscard]] virtual io::Task<TurnOutcome> wake(
      std::vector<Wakeup> wakeups, std::stop_token stop,
      budget::Consumer consumer = budget::unnamed_consumer()) = 0;

  // Between turns: resumes a suspended guest into memory without a turn, so that its next turn need
  // not. Does nothing if the guest is in memory. Errors as in wasm::TurnReport; the guest is then
  // gone.
  struct Loaded {
    Duration resume_time{};  // Zero: it was in memory.
    Duration cpu_time{};
  };
  [[nodiscard]] virtual io::Task<Result<Loaded>> load(
      std::stop_token stop, budget::Consumer consumer = budget::unnamed_consumer()) = 0;

  // Between turns: whether the guest accepts requests of this kind.
  [[nodiscard]] virtual bool listens(Listener listener) const = 0;
  // Between turns: makes a wakeup of a request into the guest. `id` is that of the answer in some
  // later outcome; a guest may never answer. NotFound when it accepts no such requests, Unavailable
  // when it has too many unanswered ones.
  struct Inbound {
    std::uint64_t id = 0;
    Wakeup wakeup;
  };
  [[nodiscard]] virtual Result<Inbound> hand_in(Listener listener, const HttpRequest& request) = 0;
  // Between turns: the answer to this request is no longer needed. A late one is ignored, and the
  // guest may get another request in its place.
  virtual void forget(std::uint64_t id) = 0;

  // The memory that a turn needs to bring the guest into memory; zero while it is there.
  [[nodiscard]] virtual std::uint64_t memory_bytes_needed() const = 0;
  // The reservation for that (wasm::Engine::reserve), to be passed before start() or wake().
  virtual void provide(std::optional<budget::Reservation> memory) = 0;

  // Between turns: suspends the guest to disk; the next turn resumes it. Returns the processor time
  // that it took. Does nothing when it has not started, or is gone. Unavailable when the disk has
  // no room for it or for `tenant`: the guest then stays in memory, unchanged. InvalidInput: its
  // module cannot sleep.
  [[nodiscard]] virtual io::Task<Result<Duration>> sleep(
      budget::Tenant tenant = budget::unnamed_consumer().tenant) = 0;

  // Of a sleeping guest: gives it to the process that replaces this one (Guests::take_over); it is
  // gone here. Unavailable, with the reason, when it does not sleep, or cannot be given away; then
  // nothing has changed.
  [[nodiscard]] virtual Result<CarriedGuest> carry() = 0;

  // As in wasm::Instance.
  [[nodiscard]] virtual std::uint64_t resident_bytes() const = 0;
  [[nodiscard]] virtual std::uint64_t disk_bytes() const = 0;
};

// A place in which guests live, such as a process.
class Guests {
 public:
  struct Events {
    // The guest is gone without a turn, because its process exited. The call may destroy the guest,
    // unless it is in sleep().
    std::function<void(Error)> on_lost;
    // Others wait for the memory that the guest's place holds: the guest should sleep as soon as it
    // may. The call must not destroy it.
    std::function<void()> on_notice;
  };
  [[nodiscard]] virtual std::unique_ptr<Guest> make(
      std::shared_ptr<const wasm::SleepableModule> module, GuestOptions options, Events events) = 0;
  // Continues a sleeping guest of the host that this process has replaced. It must be of the same
  // module and form (kPackedGuestVersion), and have the same options. LimitExceeded when there is
  // no room for its snapshot any more, Corrupt when it is not whole.
  [[nodiscard]] virtual Result<std::unique_ptr<Guest>> take_over(
      std::shared_ptr<const wasm::SleepableModule> module, GuestOptions options, Events events,
      budget::Tenant tenant, CarriedGuest carried) = 0;
  // Frees what a guest holds that nobody continues.
  virtual void discard(CarriedGuest carried) = 0;
  // Whether Guest::load() is useful here; otherwise it returns Unavailable.
  [[nodiscard]] virtual bool loads_ahead() const = 0;
  // Whether a guest may have a place for itself (GuestOptions::alone).
  [[nodiscard]] virtual bool has_places_alone() const = 0;

 protected:
  ~Guests() = default;
};

}  // namespace hangar::abi::kube_runtime
