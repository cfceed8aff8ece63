// The kube-runtime-abi contract: an asynchronous controller whose HTTP requests and delays are
// calls of the host, answered by waking it. docs/abi/kube-runtime.md has it in full.
//
// Nothing here knows where requests go or when a guest sleeps: a turn ends with what the guest
// asked for, the next one begins with the answers.
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

// What guests of this contract get from the host, made once per engine.
class Runtime {
 public:
  explicit Runtime(wasm::Engine& engine);

  // InvalidInput, naming what is wrong, when `module` cannot be such a guest: it imports what they
  // do not get; exports no _start (a reactor's _initialize will do if it can be woken); only one of
  // allocate and wakeup, or one of another type; or only one half of what a guest needs that runs
  // until it is idle. Any thread.
  [[nodiscard]] Result<> check(const wasm::Module& module) const;
  // InvalidInput when it could neither ask for anything nor be woken, and says what it seems to be.
  // The contract lets such a program run once; one that uses the network by itself would wait for
  // an answer that never comes, until its time is over. Any thread.
  [[nodiscard]] static Result<> check_can_live_on(const wasm::Module& module);

  [[nodiscard]] wasm::Engine& engine() const { return engine_; }
  [[nodiscard]] const wasm::HostFunctions& functions() const { return functions_; }

 private:
  wasm::Engine& engine_;
  wasm::HostFunctions functions_;
};

struct Surroundings {
  std::vector<std::string> environment;  // "NAME=value".
  // Path as the guest sees it ("/etc/config/key") to content; read-only.
  std::map<std::string, std::string> files;
};

struct GuestOptions {
  std::vector<std::string> args;  // With the program's name first.
  std::vector<std::string> environment;
  std::map<std::string, std::string> files;
  // Besides, for a guest that runs until it is idle. What it is given under the same name wins.
  Surroundings in_pod;
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  Duration cpu_time_max = limits::kGuestCallMax;  // Of one turn.
  // Of output that is kept from one turn; what is beyond is dropped and counted.
  std::uint64_t output_bytes_max = limits::kOperatorOutputBytesMax;
};

struct TurnOutcome {
  // Errors as wasm::TurnReport; the guest is gone then. Also GuestFault when it asked for what the
  // contract does not know (bytes that are no request), LimitExceeded when it asked for too much,
  // and, of start(), InvalidInput for a module or options that are no good.
  Result<> ended;
  // The guest has finished and is gone: it called proc_exit, or (zero) it waits for nothing that
  // could wake it, as a program without wakeup after its _start.
  std::optional<std::uint32_t> exit_code;
  // In order, with the ids that it was given. Empty when the guest is gone: nobody waits for
  // them. Of requests, those that may be under way: the guest is held to kGuestRequestsMax here,
  // and what it asked for beyond comes with the outcome of a later turn.
  std::vector<HttpCall> calls;
  std::vector<Delay> delays;
  // Ids of calls and delays of earlier outcomes for which the guest does not wait any more. To be
  // ended before those above begin.
  std::vector<std::uint64_t> cancelled;
  std::vector<OutputLine> output;  // Lines without an end are ended by the turn's.
  std::uint64_t output_dropped_bytes = 0;
  bool was_asleep = false;
  Duration resume_time{};
  Duration cpu_time{};
};

// One guest, from _start to its end. Loop thread; one turn or sleep() at a time.
class Guest : public slots::InSlot {
 public:
  // `runtime` outlives it.
  Guest(const Runtime& runtime, std::shared_ptr<const wasm::SleepableModule> module,
        GuestOptions options);
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest();

  // _initialize where there is one, _start, and run_until_idle where there is one. Once, first.
  // `consumer`: for whom, whose share of the workers it uses.
  [[nodiscard]] io::Task<TurnOutcome> start(std::stop_token stop,
                                            budget::Consumer consumer = budget::unnamed_consumer());
  // For each in order: allocate, copy, wakeup; then run_until_idle where there is one. Ids that the
  // guest does not wait for (not asked for, or finished) are skipped: they would trap it. When none
  // is left it is not woken at all. An empty body that is not null still needs allocate(0).
  [[nodiscard]] io::Task<TurnOutcome> wake(std::vector<Wakeup> wakeups, std::stop_token stop,
                                           budget::Consumer consumer = budget::unnamed_consumer());

  // As those of wasm::Instance, before start() or wake().
  [[nodiscard]] std::uint64_t memory_bytes_needed() const;
  void provide(std::optional<budget::Reservation> memory);

  // Whether a wakeup of `id` would be delivered.
  [[nodiscard]] bool waits_for(std::uint64_t id) const;

  // Between turns. As wasm::Instance::sleep; nothing when it has not started, or is gone.
  [[nodiscard]] io::Task<Result<>> sleep(wasm::SnapshotStore& store,
                                         budget::Tenant tenant = budget::unnamed_consumer().tenant);

  [[nodiscard]] bool is_asleep() const;
  // As those of wasm::Instance.
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

  // Of one that is not gone.
  [[nodiscard]] io::Task<TurnOutcome> run(wasm::Turn& turn, std::stop_token stop,
                                          budget::Consumer consumer);
  void end();
  // The timer of a guest that runs until it is idle: until when it would have waited in its last
  // poll, in place of what it was before. A delay of the host's, whose id the guest does not know.
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
  bool runs_until_idle_ = false;  // Its module says so.
  // Mostly Asleep: of thousands this is all that there is.
  std::variant<std::unique_ptr<New>, std::unique_ptr<Awake>, Asleep, Gone> state_;
};

}  // namespace hangar::abi::kube_runtime
