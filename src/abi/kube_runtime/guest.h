// The kube-runtime-abi contract: the guest is an asynchronous controller. Its HTTP requests and
// delays are calls to the host, and the host answers by waking the guest. docs/abi/kube-runtime.md
// describes it in full.
//
// This code does not know where requests go or when a guest sleeps: a turn ends with the calls that
// the guest made, and the next turn begins with the answers.
#pragma once

#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/output_lines.h"
#include "abi/kube_runtime/pending_calls.h"
#include "base/in_slot.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleeping_instance.h"
#include "wasm/snapshot/snapshot_store.h"
#include "wasm/wasi/preview1.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace hangar::abi::kube_runtime {

// The host functions for guests of this contract, made once per engine.
class Runtime {
 public:
  explicit Runtime(wasm::Engine& engine);

  // InvalidInput, with the reason, when `module` cannot be such a guest. It imports functions that
  // these do not get; it exports no _start (a reactor's _initialize will do if the guest can be
  // woken); it exports only one of allocate and wakeup, or one with another type; or it has only
  // one half of what a guest needs that runs until it is idle. Any thread.
  [[nodiscard]] Result<> check(const wasm::Module& module) const;
  // InvalidInput, with what the module seems to be, when it can neither call the host nor be woken.
  // The contract lets such a program run once; one that uses the network by itself would wait for
  // an answer that never comes, until its time is up. Any thread.
  [[nodiscard]] static Result<> check_can_live_on(const wasm::Module& module);

  [[nodiscard]] wasm::Engine& engine() const { return engine_; }
  [[nodiscard]] const wasm::HostFunctions& functions() const { return functions_; }

 private:
  wasm::Engine& engine_;
  wasm::HostFunctions functions_;
};

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
  // The output that is kept from one turn; the rest is dropped and counted.
  std::uint64_t output_bytes_max = limits::kOperatorOutputBytesMax;
};

struct TurnOutcome {
  // Errors as in wasm::TurnReport; the guest is then gone. Also GuestFault for a call that the
  // contract does not know (bytes that are not a request), LimitExceeded when it asked for too
  // much, and, from start(), InvalidInput for a module or options that are not valid.
  Result<> ended;
  // The guest has finished and is gone: it called proc_exit, or (zero) it waits for nothing that
  // could wake it, like a program without wakeup after its _start.
  std::optional<std::uint32_t> exit_code;
  // In order, with the ids that the guest was given. Empty when the guest is gone: it waits for no
  // answers. Contains only requests that may start now: a guest has at most kGuestRequestsMax in
  // flight, and further ones come with the outcome of a later turn.
  std::vector<HttpCall> calls;
  std::vector<Delay> delays;
  // To requests that hand_in() has made wakeups of: each at most once, in any order and any turn.
  std::vector<InboundAnswer> answers;
  // Ids of calls and delays of earlier outcomes for which the guest no longer waits. The host must
  // cancel them before it starts the new ones above.
  std::vector<std::uint64_t> cancelled;
  std::vector<OutputLine> output;  // The end of the turn ends an unfinished line.
  std::uint64_t output_dropped_bytes = 0;
  bool was_asleep = false;
  Duration resume_time{};
  Duration cpu_time{};
};

// One guest, from _start until it is gone. Loop thread; one turn or sleep() at a time.
class Guest : public slots::InSlot {
 public:
  // `runtime` outlives it.
  Guest(const Runtime& runtime, std::shared_ptr<const wasm::SleepableModule> module,
        GuestOptions options);
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest();

  // Calls _initialize if it exists, _start, and run_until_idle if it exists. Once, before all other
  // turns. `consumer`: on whose behalf it runs; it uses this consumer's share of the workers.
  [[nodiscard]] io::Task<TurnOutcome> start(std::stop_token stop,
                                            budget::Consumer consumer = budget::unnamed_consumer());
  // For each wakeup in order: allocate, copy, wakeup; then run_until_idle if it exists. Ids that
  // the guest does not wait for (never asked for, or finished) are skipped: they would make it
  // trap. If none remains, the guest is not woken at all. An empty body that is not null still
  // needs allocate(0).
  [[nodiscard]] io::Task<TurnOutcome> wake(std::vector<Wakeup> wakeups, std::stop_token stop,
                                           budget::Consumer consumer = budget::unnamed_consumer());

  // Between turns: whether the guest takes requests of this kind.
  [[nodiscard]] bool listens(Listener listener) const;
  // Between turns: makes a wakeup of a request into the guest. `id` is that of the answer in some
  // later outcome; a guest may never answer. NotFound when it takes no such requests, Unavailable
  // when it has too many to answer already.
  struct Inbound {
    std::uint64_t id = 0;
    Wakeup wakeup;
  };
  [[nodiscard]] Result<Inbound> hand_in(Listener listener, const HttpRequest& request);

  // As in wasm::Instance; to be called before start() or wake().
  [[nodiscard]] std::uint64_t memory_bytes_needed() const;
  void provide(std::optional<budget::Reservation> memory);

  // True when a wakeup for `id` would be delivered.
  [[nodiscard]] bool waits_for(std::uint64_t id) const;

  // Between turns. As wasm::Instance::sleep; does nothing when the guest has not started, or
  // is gone.
  [[nodiscard]] io::Task<Result<>> sleep(wasm::SnapshotStore& store,
                                         budget::Tenant tenant = budget::unnamed_consumer().tenant);

  [[nodiscard]] bool is_asleep() const;
  // As in wasm::Instance.
  [[nodiscard]] std::uint64_t resident_bytes() const;
  [[nodiscard]] std::uint64_t disk_bytes() const;

 private:
  struct New;
  struct Awake;
  struct Asleep {
    wasm::SleepingInstance instance;
    wasm::wasi::ProcessState process;
  };
  struct Gone {};

  // Runs a turn of a guest that is not gone.
  [[nodiscard]] io::Task<TurnOutcome> run(wasm::Turn& turn, std::stop_token stop,
                                          budget::Consumer consumer);
  void end();
  // Sets the timer of a guest that runs until it is idle to the time until which its last poll
  // would have blocked. It is a delay of the host's own: the guest does not know its id.
  [[nodiscard]] Result<> set_timer(std::optional<Instant> due);

  const Runtime& runtime_;
  const Duration cpu_time_max_;
  const std::uint64_t output_bytes_max_;
  PendingCalls pending_;
  struct Timer {
    std::uint64_t id = 0;
    Instant due;
  };
  std::optional<Timer> timer_;
  bool runs_until_idle_ = false;  // According to its module.
  // Asleep for most of the thousands of guests, which then have no other state.
  std::variant<std::unique_ptr<New>, std::unique_ptr<Awake>, Asleep, Gone> state_;
};

}  // namespace hangar::abi::kube_runtime
