// Asynchronous functions of the loop thread, as C++20 coroutines.
//
//   io::Task<Result<Object>> get(Name name);      // declares one
//   Object object = HANGAR_CO_TRY(co_await get(name));
//
// A Task does nothing until it is awaited (or given to Loop::spawn). The task that awaits it owns
// it. A task that has started always runs until it returns: a std::stop_token asks it to return
// early, and nothing destroys it while it is suspended. An exception ends it, too: see exception.h.
// Loop thread only.
#pragma once

#include "base/assert.h"
#include "base/result.h"

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace hangar::io {

template <class T>
class Task;

// The exception that is being handled, as an Error: Unavailable, so that the caller retries later.
// Call it inside a catch block.
[[nodiscard]] Error error_of_exception() noexcept;

namespace internal {

struct TaskPromiseBase {
  // Returns control to the awaiting task without growing the stack.
  struct FinalAwaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      return self.promise().continuation;
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }

  std::coroutine_handle<> continuation = std::noop_coroutine();
};

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

template <class T>
struct TaskPromise : TaskPromiseBase {
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  // The first enclosing function that returns a Result turns the exception into an error.
  void unhandled_exception() noexcept {
    if constexpr (kIsResult<T>) {
      value.emplace(std::unexpected(error_of_exception()));
    } else {
      exception = std::current_exception();
    }
  }
  T take() {
    if (exception) std::rethrow_exception(std::move(exception));
    return *std::move(value);
  }

  std::optional<T> value;
  std::exception_ptr exception;
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void unhandled_exception() noexcept { exception = std::current_exception(); }
  void take() {
    if (exception) std::rethrow_exception(std::move(exception));
  }

  std::exception_ptr exception;
};

}  // namespace internal

template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::TaskPromise<T>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) end(handle_);
  }

  auto operator co_await() && noexcept {
    struct Awaiter {
      std::coroutine_handle<promise_type> handle;
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
        handle.promise().continuation = awaiting;
        return handle;
      }
      T await_resume() const { return handle.promise().take(); }
    };
    HANGAR_ASSERT(handle_, "a task is awaited once");
    return Awaiter{handle_};
  }

 private:
  friend promise_type;
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  // Never inlined: where clang sees that a frame is destroyed, it merges that frame into the
  // awaiting one, once for each place that may await it. A request's frame would carry 17 KB for
  // branches that were not taken.
  [[gnu::noinline]] static void end(std::coroutine_handle<> handle) { handle.destroy(); }

  std::coroutine_handle<promise_type> handle_;
};

namespace internal {

template <class T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

}  // namespace internal

}  // namespace hangar::io
