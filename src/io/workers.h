// Threads for work that would hold up the loop: running guests, decompressing, hashing.
#pragma once

#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace hangar::io {

class Workers {
 public:
  // The threads start at once. The destructor joins them after the jobs that have started; jobs
  // that still wait are dropped, so the loop must have ended before.
  Workers(Loop& loop, std::size_t thread_count);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  // Calls `work` on a worker. Any thread. First come, first served. The loop reports what
  // it throws.
  void submit(std::move_only_function<void()> work);

  // Calls `work` on a worker and returns its value, or throws what it threw, on the loop thread.
  // What `work` refers to must live until then: pass it values.
  template <class F>
  [[nodiscard]] Task<std::invoke_result_t<F&>> run(F work) {
    using Value = std::invoke_result_t<F&>;
    const OneShot<Ended<Value>> done(loop_);
    // noexcept: without memory for the few bytes of the answer the task would wait for ever, so the
    // process terminates.
    submit([&loop = loop_, done = OneShot<Ended<Value>>(done),
            work = std::move(work)]() mutable noexcept {
      // The result and the last reference to it both go back to the loop: OneShot is not for
      // several threads.
      loop.post(
          [done = std::move(done), ended = end(work)]() mutable { done.set(std::move(ended)); });
    });
    Ended<Value> ended = co_await done.wait();
    if (ended.exception) std::rethrow_exception(std::move(ended.exception));
    co_return *std::move(ended.value);
  }

  // Waits until the jobs submitted before have finished, at most `time_max`; returns whether they
  // have. Only for one thread: with several, the last job that started may finish first.
  [[nodiscard]] Task<bool> flush(Duration time_max);

  [[nodiscard]] std::size_t thread_count() const { return threads_.size(); }

 private:
  // How a job ended: exactly one of the two.
  template <class Value>
  struct Ended {
    std::optional<Value> value;
    std::exception_ptr exception;
  };
  template <class F>
  [[nodiscard]] static Ended<std::invoke_result_t<F&>> end(F& work) noexcept {
    try {
      return {.value = work(), .exception = nullptr};
    } catch (...) {
      return {.value = std::nullopt, .exception = std::current_exception()};
    }
  }

  void work_until_stopped();

  Loop& loop_;
  std::mutex mutex_;
  // Not std::condition_variable_any, which takes a stop token: it has a mutex of its own, which a
  // thread that is woken finds locked.
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::deque<std::move_only_function<void()>> waiting_;
  std::vector<std::jthread> threads_;
};

}  // namespace hangar::io
