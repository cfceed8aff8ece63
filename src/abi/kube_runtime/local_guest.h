// Guests of this process. They are suspended to its snapshot store.
#pragma once

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/pending_calls.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/module.h"
#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleeping_instance.h"
#include "wasm/snapshot/snapshots.h"
#include "wasm/wasi/preview1.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::abi::kube_runtime {

// The host functions for guests of this contract, made once per engine.
class Runtime {
 public:
  explicit Runtime(wasm::Engine& engine);
  // With functions that were made before the engine, from its parts.
  Runtime(wasm::Engine& engine, std::shared_ptr<const wasm::HostFunctions> functions);
  [[nodiscard]] static std::shared_ptr<const wasm::HostFunctions> make_functions(
      const wasm::EngineParts& parts);

  // InvalidInput, with the reason, when `module` cannot be such a guest: it imports functions that
  // these guests do not get; it exports no _start (a reactor's _initialize is enough if the guest
  // can be woken); it exports only one of allocate and wakeup, or one with another type; or it has
  // only one half of what a guest that runs until it is idle needs. Any thread.
  [[nodiscard]] Result<> check(const wasm::Module& module) const;
  // InvalidInput, with the likely kind of the module, when it can neither call the host nor be
  // woken. The contract lets such a program run once; one that uses the network by itself would
  // wait until its time is up for an answer that never comes. Any thread.
  [[nodiscard]] static Result<> check_can_live_on(const wasm::Module& module);

  [[nodiscard]] wasm::Engine& engine() const { return engine_; }
  [[nodiscard]] const wasm::HostFunctions& functions() const { return *functions_; }

 private:
  wasm::Engine& engine_;
  std::shared_ptr<const wasm::HostFunctions> functions_;
};

class LocalGuests final : public Guests {
 public:
  // Both outlive the guests. `ask_memory` as in wasm::RunLimits.
  LocalGuests(const Runtime& runtime, wasm::Snapshots& snapshots, wasm::AskMemory ask_memory = {})
      : runtime_(runtime), snapshots_(snapshots), ask_memory_(std::move(ask_memory)) {}

  [[nodiscard]] std::unique_ptr<Guest> make(std::shared_ptr<const wasm::SleepableModule> module,
                                            GuestOptions options, Events events) override;

  // Their images and snapshots are this process's own.
  [[nodiscard]] Result<std::unique_ptr<Guest>> take_over(
      std::shared_ptr<const wasm::SleepableModule> module, GuestOptions options, Events events,
      budget::Tenant tenant, CarriedGuest carried) override;
  void discard(CarriedGuest /*carried*/) override {}
  [[nodiscard]] bool loads_ahead() const override { return true; }
  [[nodiscard]] bool has_places_alone() const override { return false; }

  [[nodiscard]] const Runtime& runtime() const { return runtime_; }
  [[nodiscard]] wasm::Snapshots& snapshots() const { return snapshots_; }
  [[nodiscard]] const wasm::AskMemory& ask_memory() const { return ask_memory_; }

 private:
  const Runtime& runtime_;
  wasm::Snapshots& snapshots_;
  const wasm::AskMemory ask_memory_;
};

class LocalGuest final : public Guest {
 public:
  // `home` outlives it.
  LocalGuest(const LocalGuests& home, std::shared_ptr<const wasm::SleepableModule> module,
             GuestOptions options);
  ~LocalGuest() override;

  [[nodiscard]] io::Task<TurnOutcome> start(
      std::stop_token stop, budget::Consumer consumer = budget::unnamed_consumer()) override;
  [[nodiscard]] io::Task<TurnOutcome> wake(
      std::vector<Wakeup> wakeups, std::stop_token stop,
      budget::Consumer consumer = budget::unnamed_consumer()) override;
  [[nodiscard]] io::Task<Result<Loaded>> load(
      std::stop_token stop, budget::Consumer consumer = budget::unnamed_consumer()) override;
  [[nodiscard]] bool listens(Listener listener) const override;
  [[nodiscard]] Result<Inbound> hand_in(Listener listener, const HttpRequest& request) override;
  void forget(std::uint64_t id) override { pending_.forget_inbound(id); }
  [[nodiscard]] std::uint64_t memory_bytes_needed() const override;
  void provide(std::optional<budget::Reservation> memory) override;
  [[nodiscard]] io::Task<Result<Duration>> sleep(
      budget::Tenant tenant = budget::unnamed_consumer().tenant) override;
  [[nodiscard]] Result<CarriedGuest> carry() override;
  [[nodiscard]] std::uint64_t resident_bytes() const override;
  [[nodiscard]] std::uint64_t disk_bytes() const override;

  // True when a wakeup for `id` would be delivered.
  [[nodiscard]] bool waits_for(std::uint64_t id) const;
  [[nodiscard]] bool is_asleep() const;

  // For a sleeping guest of a module that was handed over (wasm/snapshot/handed_module.h): the
  // whole guest except its layer, as bytes with which it continues in this or another process. The
  // guest here remains too.
  [[nodiscard]] Result<std::string> pack() const;
  // The layer of a sleeping guest; null without one.
  [[nodiscard]] const wasm::PageLayer* layer() const;
  // What a sleeping guest has besides the bytes that pack() returned.
  struct Beside {
    std::unique_ptr<wasm::PageLayer> layer = nullptr;
    Instant since = {};  // When it fell asleep, if that is known.
  };
  // Makes the sleeping guest from the `bytes` that pack() returned. `options`: only the bounds
  // count. Unavailable for damaged bytes, or when the snapshots have no room.
  [[nodiscard]] static Result<std::unique_ptr<LocalGuest>> unpack(
      const LocalGuests& home, std::shared_ptr<const wasm::SleepableModule> module,
      const GuestOptions& options, std::string_view bytes, Beside beside);

  // The pending calls, for a process that runs this guest on behalf of a host elsewhere.
  [[nodiscard]] PendingCalls& pending() { return pending_; }

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
  LocalGuest(const LocalGuests& home, const GuestOptions& bounds);
  void end();
  // Sets the timer of a guest that runs until it is idle to the time until which its last poll
  // would have blocked. It is the host's own delay: the guest does not know its id.
  [[nodiscard]] Result<> set_timer(std::optional<Instant> due);

  const LocalGuests& home_;
  const Duration cpu_time_max_;
  const std::uint64_t output_bytes_max_;
  PendingCalls pending_;
  struct Timer {
    std::uint64_t id = 0;
    Instant due;
  };
  std::optional<Timer> timer_;
  bool runs_until_idle_ = false;  // According to its module.
  // Most of the thousands of guests are Asleep, and then have no other state.
  std::variant<std::unique_ptr<New>, std::unique_ptr<Awake>, Asleep, Gone> state_;
};

}  // namespace hangar::abi::kube_runtime
