// A host function that may wait, as a coroutine.
//
//   HostTask<std::uint64_t> k8s_lookup(HostCall call, std::uint32_t state, std::uint64_t name) {
//     const Answer answer = HANGAR_CO_TRY(co_await call.on_loop<Answer>(...));  // The fiber waits.
//     const std::uint64_t address = HANGAR_CO_TRY(co_await call.call_guest("malloc", size));
//     ...
//   }
//
// The coroutine runs on the worker that currently runs its guest, and may await only what HostCall
// offers. Like an io::Task it starts when it is awaited and always runs to its end: when the
// guest's time is up, its waits fail. Its value is a Result: an error traps the guest.
#pragma once

#include "base/assert.h"
#include "base/result.h"

#include <coroutine>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace hangar::wasm {

template <class T>
class [[nodiscard]] HostTask {
 public:
  struct promise_type;  // NOLINT(readability-identifier-naming): the language's name.
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    struct FinalAwaiter {
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(Handle self) const noexcept {
        return self.promise().continuation;
      }
      void await_resume() const noexcept {}
    };

    HostTask get_return_object() { return HostTask(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    FinalAwaiter final_suspend() noexcept { return {}; }
    template <class U>
    void return_value(U&& result) {
      value.emplace(std::forward<U>(result));
    }
    // Below this frame on the stack are wasmtime and guests, which cannot handle exceptions.
    void unhandled_exception() noexcept {
      try {
        throw;
      } catch (const std::exception& error) {
        value.emplace(fail(ErrorKind::Unavailable, std::string("host function: ") + error.what()));
      } catch (...) {
        value.emplace(fail(ErrorKind::Unavailable, "host function: unknown exception"));
      }
    }

    std::optional<Result<T>> value;
    std::coroutine_handle<> continuation = std::noop_coroutine();
  };

  HostTask(HostTask&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  HostTask(const HostTask&) = delete;
  HostTask& operator=(const HostTask&) = delete;
  HostTask& operator=(HostTask&&) = delete;
  ~HostTask() {
    if (handle_) handle_.destroy();
  }

  auto operator co_await() && noexcept {
    struct Awaiter {
      Handle handle;
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
        handle.promise().continuation = awaiting;
        return handle;
      }
      Result<T> await_resume() const { return *std::move(handle.promise().value); }
    };
    HANGAR_ASSERT(handle_, "a task is awaited once");
    return Awaiter{handle_};
  }

  // For the caller that drives the outermost task.
  void begin() const { handle_.resume(); }
  [[nodiscard]] bool is_done() const { return handle_.done(); }
  [[nodiscard]] Result<T> take() const { return *std::move(handle_.promise().value); }

 private:
  explicit HostTask(Handle handle) : handle_(handle) {}

  Handle handle_;
};

}  // namespace hangar::wasm
