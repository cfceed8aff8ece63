// Threads for work that would block the loop: running guests, decompressing, hashing.
//
// Each job is done for a consumer, and waits in its queue. Tenants take turns by the processor time
// that their jobs have used, then the consumers of each tenant do; the host's own jobs come first
// (base/fair_queue.h). A job is never interrupted, so a tenant that comes late waits for the
// running jobs, one for each thread, however many others wait.
#pragma once

#include "base/consumer.h"
#include "base/fair_queue.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
  using Work = std::move_only_function<void()>;
  enum class Order : std::uint8_t {
    InTurn,
    // Before all InTurn jobs, with the same fairness among First jobs. For deletions and for
    // stopping. While InTurn jobs wait, one of them follows each First job, so that a flood of
    // deletions blocks nobody.
    First,
  };

  // Of the threads, relative to other threads of the process: see io/priority.h.
  enum class Priority : std::uint8_t { Normal, BelowLoop, Last };

  // The threads start at once. The destructor joins them after the jobs that have started; jobs
  // that still wait are dropped, so the loop must have stopped before.
  Workers(Loop& loop, std::size_t thread_count, Priority priority = Priority::Normal);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  // Calls `work` on a worker. Any thread. Jobs of one consumer start in the order of submission.
  // The loop reports an exception of `work`. The submitter bounds how many jobs wait.
  void submit(const Consumer& whose, Work work, Order order = Order::InTurn);
  // The same for work that several consumers want: it waits in the queue of each, and starts with
  // the first turn that any of them gets.
  void submit_for_any(const std::vector<Consumer>& whose, Work work);

  // Calls `work` on a worker and returns its value, or rethrows its exception, on the loop thread.
  // Objects that `work` refers to must live until then: pass it values.
  template <class F>
  [[nodiscard]] Task<std::invoke_result_t<F&>> run(Consumer whose, F work,
                                                   Order order = Order::InTurn) {
    const OneShot<Ended<std::invoke_result_t<F&>>> done(loop_);
    submit(whose, answering(done, std::move(work)), order);
    co_return value_of(co_await done.wait());
  }
  // The same for work that several consumers want.
  template <class F>
  [[nodiscard]] Task<std::invoke_result_t<F&>> run_for_any(std::vector<Consumer> whose, F work) {
    const OneShot<Ended<std::invoke_result_t<F&>>> done(loop_);
    submit_for_any(whose, answering(done, std::move(work)));
    co_return value_of(co_await done.wait());
  }

  // Waits until the jobs that were submitted before for `whose` have finished, at most `time_max`;
  // returns whether they have. Only for one thread: with several, the last job that started may
  // finish first.
  [[nodiscard]] Task<bool> flush(Consumer whose, Duration time_max);

  // `on_work` gets the processor time of each job when it has ended, on the job's thread; it must
  // not call this object. Null: nobody gets it; after that call, `on_work` is not called any more.
  // Any thread.
  using OnWork = std::function<void(const Tenant& whose, Duration processor_time)>;
  void set_on_work(OnWork on_work);

  [[nodiscard]] std::size_t thread_count() const { return threads_.size(); }
  // Whether a job waits for a thread that is not one of `whose`. Any thread.
  [[nodiscard]] bool has_waiting_beside(const Consumer& whose) const;
  // How long one of the threads has worked, including its current job. Any thread.
  [[nodiscard]] Duration busy_time(std::size_t thread) const;

 private:
  using Queue = FairQueue<Work>;

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
  template <class Value>
  [[nodiscard]] static Value value_of(Ended<Value> ended) {
    if (ended.exception) std::rethrow_exception(std::move(ended.exception));
    return *std::move(ended.value);
  }
  // noexcept: without memory for the few bytes of the answer the task would wait for ever, so the
  // process terminates.
  template <class Value, class F>
  [[nodiscard]] Work answering(const OneShot<Ended<Value>>& done, F work) {
    return [&loop = loop_, done = OneShot<Ended<Value>>(done),
            work = std::move(work)]() mutable noexcept {
      // The result and the last reference to it both go back to the loop: OneShot is not for
      // several threads.
      loop.post(
          [done = std::move(done), ended = end(work)]() mutable { done.set(std::move(ended)); });
    };
  }

  struct Worker {
    Duration busy{};               // Without the current job.
    std::optional<Instant> since;  // When the current job began.
  };
  struct Job {
    Consumer whose;
    Work work;
    Order order = Order::InTurn;
  };

  void work_until_stopped(Worker& worker);
  // Waits for a job; std::nullopt when stopping.
  [[nodiscard]] std::optional<Job> begin_next(Worker& worker);
  void end_job(Worker& worker, const Job& job, Duration processor_time);
  void call(Work work);
  // The two functions below require that the mutex is held.
  [[nodiscard]] Queue& queue_of(Order order) { return order == Order::First ? first_ : in_turn_; }
  [[nodiscard]] bool is_any_waiting() const { return !first_.is_empty() || !in_turn_.is_empty(); }

  Loop& loop_;
  mutable std::mutex mutex_;
  // Not std::condition_variable_any, which takes a stop token: it has its own mutex, which a woken
  // thread would find locked.
  std::condition_variable changed_;
  bool is_stopping_ = false;
  Queue first_;
  Queue in_turn_;
  bool was_first_ = false;  // Whether the last job came from first_.
  OnWork on_work_;
  std::vector<Worker> workers_;
  std::vector<std::jthread> threads_;
};

}  // namespace hangar::io
