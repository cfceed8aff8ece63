// Host functions: the functions that a guest may import, and what such a function can do while the
// guest waits for it.
//
// A host function is a plain C++ function that takes a HostCall and i32/i64 arguments:
//
//   Result<std::uint32_t> random_get(HostCall call, std::uint32_t address, std::uint32_t size);
//
// or, if it may wait, a coroutine that returns a HostTask (see wasm/host_task.h). An error traps
// the guest and becomes the result of its run. An exception is caught here and has the same effect.
#pragma once

#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_task.h"
#include "wasm/module.h"

#include <array>
#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

struct wasmtime_caller;

namespace hangar::wasm {

class Execution;

// The state that the host functions of one kind of guest keep for one run, or for one instance in
// all its turns: derive from it. Until the run or turn has finished, only the worker that runs the
// guest uses it.
class HostState {
 public:
  HostState() = default;
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;
  virtual ~HostState() = default;
};

namespace internal {

class WaitingCall;

// Something for which a host function waits.
class Wait {
 public:
  Wait() = default;
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  virtual ~Wait() = default;
  // Called each time the guest's fiber is resumed.
  [[nodiscard]] virtual bool is_over() = 0;
};

// An answer on its way from the loop to a worker.
template <class T>
struct Answer {
  std::optional<T> value;
  std::atomic<bool> is_set = false;  // Release: after value. The worker reads it with acquire.
};

}  // namespace internal

// One call of a host function by a guest. A handle: copy it, and use it only while the call lasts,
// on the worker that runs the guest.
class HostCall {
 public:
  // `State` is the type of the state with which the run was started.
  template <std::derived_from<HostState> State>
  [[nodiscard]] State& state() const {
    return static_cast<State&>(host_state());
  }

  [[nodiscard]] io::Loop& loop() const;

  // The memory that the guest exports as "memory"; GuestFault when it exports none.
  [[nodiscard]] Result<GuestMemory> memory() const;

  // Ends the run successfully, as if the guest had returned: `return call.leave();`
  [[nodiscard]] std::unexpected<Error> leave() const;

  // Calls `ask` on the loop thread and waits for its task without holding a worker. Cancelled when
  // the run must stop first; the stop token then stops the task, too. The run's owner gets no
  // result before the task has finished, so the task may refer to objects that the owner keeps
  // alive.
  template <class T>
  using Ask = std::move_only_function<io::Task<T>(std::stop_token)>;
  template <class T>
  [[nodiscard]] HostTask<T> on_loop(Ask<T> ask) const;

  // Calls a function of type (i32) -> i64 that the guest exports: its allocator. GuestFault when
  // there is none, when it traps, or when the guest is already in such a call.
  [[nodiscard]] HostTask<std::uint64_t> call_guest(std::string name, std::uint32_t argument) const;

  // For wasm/ only.
  HostCall(Execution& run, wasmtime_caller* caller, internal::WaitingCall* waiting)
      : run_(&run), caller_(caller), waiting_(waiting) {}
  [[nodiscard]] Execution& run() const { return *run_; }
  [[nodiscard]] wasmtime_caller* caller() const { return caller_; }

  // Suspends the coroutine until `wait` is over. For awaiters of wasm/.
  void suspend(internal::Wait& wait, std::coroutine_handle<> awaiting) const;

 private:
  template <class T>
  class LoopWait;

  [[nodiscard]] HostState& host_state() const;
  // Between these two calls the run counts as waiting for an answer.
  void begin_wait() const;
  void end_wait() const;
  [[nodiscard]] bool is_stopped() const;
  // Runs `task` on the loop, and keeps the run alive until the task has finished.
  void spawn_ask(std::move_only_function<io::Task<void>(std::stop_token)> task) const;

  Execution* run_;
  wasmtime_caller* caller_;
  internal::WaitingCall* waiting_;  // Null in calls that may not wait.
};

enum class ValueType : std::uint8_t { I32, I64 };

struct Signature {
  std::vector<ValueType> parameters;
  std::optional<ValueType> result;
};

// The functions that one kind of guest may import. Filled once, then read by any thread. Outlives
// every run that was started with it, and is destroyed before its engine.
class HostFunctions {
 public:
  explicit HostFunctions(const Engine& engine);
  // For an engine that is made from these parts later.
  explicit HostFunctions(const EngineParts& parts);
  HostFunctions(const HostFunctions&) = delete;
  HostFunctions& operator=(const HostFunctions&) = delete;
  ~HostFunctions();

  // Registers `kFunction` as `module`.`name`. The C++ signature gives its type: arguments
  // std::uint32_t (i32) and std::uint64_t (i64), result void, one of these, or a HostTask of one.
  template <auto kFunction>
  void add(std::string_view module, std::string_view name) {
    add_erased<kFunction>(module, name, kFunction);
  }

  // Once all functions are registered: does what is otherwise done for the first module, which
  // takes longer than starting a guest.
  void link_now() const;

  // The imports of `module` that are not registered here, or are with another type.
  [[nodiscard]] std::vector<Import> missing(const Module& module) const;

  // For wasm/ only.
  using Arguments = std::array<std::uint64_t, 10>;  // path_open has nine.
  using Function = Result<std::uint64_t> (*)(HostCall, const Arguments&);
  using WaitingFunction = HostTask<std::uint64_t> (*)(HostCall, const Arguments&);
  struct Entry;
  struct Native;
  [[nodiscard]] const Native& native() const { return *native_; }

 private:
  void add_function(std::string_view module, std::string_view name, Signature signature,
                    Function function);
  void add_waiting(std::string_view module, std::string_view name, Signature signature,
                   WaitingFunction function);
  void define(std::string_view module, std::string_view name, Entry entry);

  template <class T>
  static constexpr ValueType type_of() {
    static_assert(std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t>);
    return std::same_as<T, std::uint32_t> ? ValueType::I32 : ValueType::I64;
  }
  template <class R, class... Args>
  static Signature signature_of() {
    Signature signature{.parameters = {type_of<Args>()...}};
    if constexpr (!std::is_void_v<R>) signature.result = type_of<R>();
    return signature;
  }

  template <auto kFunction, class R, class... Args>
  void add_erased(std::string_view module, std::string_view name,
                  Result<R> (*)(HostCall, Args...)) {
    static_assert(sizeof...(Args) <= std::tuple_size_v<Arguments>);
    add_function(
        module, name, signature_of<R, Args...>(), [](HostCall call, const Arguments& arguments) {
          return invoke<kFunction, R, Args...>(call, arguments, std::index_sequence_for<Args...>());
        });
  }
  template <auto kFunction, class R, class... Args>
  void add_erased(std::string_view module, std::string_view name,
                  HostTask<R> (*)(HostCall, Args...)) {
    static_assert(sizeof...(Args) <= std::tuple_size_v<Arguments>);
    add_waiting(
        module, name, signature_of<R, Args...>(), [](HostCall call, const Arguments& arguments) {
          return begin<kFunction, R, Args...>(call, arguments, std::index_sequence_for<Args...>());
        });
  }

  template <auto kFunction, class R, class... Args, std::size_t... kIndex>
  static Result<std::uint64_t> invoke(HostCall call, [[maybe_unused]] const Arguments& arguments,
                                      std::index_sequence<kIndex...>) {
    if constexpr (std::is_void_v<R>) {
      HANGAR_TRY(kFunction(call, static_cast<Args>(arguments[kIndex])...));
      return 0;
    } else {
      return std::uint64_t{HANGAR_TRY(kFunction(call, static_cast<Args>(arguments[kIndex])...))};
    }
  }
  template <auto kFunction, class R, class... Args, std::size_t... kIndex>
  static HostTask<std::uint64_t> begin(HostCall call, Arguments arguments,
                                       std::index_sequence<kIndex...>) {
    co_return std::uint64_t{
        HANGAR_CO_TRY(co_await kFunction(call, static_cast<Args>(arguments[kIndex])...))};
  }

  std::unique_ptr<Native> native_;
};

template <class T>
class HostCall::LoopWait final : public internal::Wait {
 public:
  LoopWait(HostCall call, Ask<T> ask) : call_(call), ask_(std::move(ask)) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) {
    call_.begin_wait();
    call_.suspend(*this, awaiting);
    call_.spawn_ask([answer = answer_, ask = std::move(ask_)](std::stop_token stop) mutable {
      return fetch(std::move(answer), std::move(ask), std::move(stop));
    });
  }
  [[nodiscard]] Result<T> await_resume() {
    call_.end_wait();
    if (!answer_->is_set.load(std::memory_order_acquire)) {
      return fail(ErrorKind::Cancelled, "the run ended while the guest waited for the host");
    }
    return *std::move(answer_->value);
  }
  [[nodiscard]] bool is_over() override {
    return answer_->is_set.load(std::memory_order_acquire) || call_.is_stopped();
  }

 private:
  static io::Task<void> fetch(std::shared_ptr<internal::Answer<T>> answer, Ask<T> ask,
                              std::stop_token stop) {
    answer->value.emplace(co_await ask(std::move(stop)));
    answer->is_set.store(true, std::memory_order_release);
  }

  HostCall call_;
  Ask<T> ask_;
  std::shared_ptr<internal::Answer<T>> answer_ = std::make_shared<internal::Answer<T>>();
};

template <class T>
HostTask<T> HostCall::on_loop(Ask<T> ask) const {
  co_return co_await LoopWait<T>(*this, std::move(ask));
}

}  // namespace hangar::wasm
