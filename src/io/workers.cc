#include "io/workers.h"

#include "base/assert.h"
#include "base/consumer.h"
#include "base/time.h"
#include "io/cpu_time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/priority.h"
#include "io/task.h"
#include "io/virtual_time.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace hangar::io {

Workers::Workers(Loop& loop, std::size_t thread_count, Priority priority)
    : loop_(loop), workers_(thread_count) {
  if (VirtualTime* const time = VirtualTime::current()) {
    (void)time->queue_of(this);
    // None runs: submit() gives each job a turn of its own.
    threads_.resize(thread_count);
    return;
  }
  threads_.reserve(thread_count);
  for (Worker& worker : workers_) {
    threads_.emplace_back([this, &worker, priority] {
      if (priority == Priority::BelowLoop) give_some_way();
      if (priority == Priority::Last) give_way();
      work_until_stopped(worker);
    });
  }
}

Workers::~Workers() {
  if (VirtualTime* const time = VirtualTime::current()) time->drop_queue_of(this);
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  threads_.clear();  // Joins the threads before the mutex and the queues are destroyed.
}

void Workers::submit(const Consumer& whose, Work work, Order order) {
  {
    const std::scoped_lock lock(mutex_);
    // Its cost, the processor time, is charged when it has finished.
    const auto pushed = queue_of(order).push(whose, std::move(work), {.cost = 0});
    HANGAR_ASSERT(pushed.has_value(), "the queue has no bound of its own");
  }
  changed_.notify_one();
  VirtualTime* const time = VirtualTime::current();
  if (time == nullptr) return;
  time->queue_of(this).after(time->job_time(), [this] {
    if (std::optional<Job> job = begin_next(workers_.front())) {
      const Duration before = thread_cpu_time();
      call(std::move(job->work));
      end_job(workers_.front(), *job, thread_cpu_time() - before);
    }
  });
}

void Workers::submit_for_any(const std::vector<Consumer>& whose, Work work) {
  HANGAR_ASSERT(!whose.empty(), "work is for somebody");
  if (whose.size() == 1) {
    submit(whose.front(), std::move(work));
    return;
  }
  struct Shared {
    std::atomic<bool> is_taken = false;
    Work work;
  };
  const auto shared = std::make_shared<Shared>();
  shared->work = std::move(work);
  for (const Consumer& one : whose) {
    submit(one, [shared] {
      if (shared->is_taken.exchange(true)) return;
      Work own = std::move(shared->work);
      own();
    });
  }
}

bool Workers::has_waiting_beside(const Consumer& whose) const {
  const std::scoped_lock lock(mutex_);
  return !first_.is_empty() || in_turn_.waiting_count(whose) < in_turn_.size();
}

Task<bool> Workers::flush(Consumer whose, Duration time_max) {
  const OneShot<bool> done(loop_);
  submit(whose, [&loop = loop_, done = OneShot<bool>(done)]() mutable {
    // The last reference goes back to the loop, too: a OneShot must not be used by several threads.
    loop.post([done = std::move(done)] { done.set(true); });
  });
  const Loop::Timer limit = loop_.after(time_max, [done] { done.set(false); });
  co_return co_await done.wait();
}

void Workers::set_on_work(OnWork on_work) {
  const std::scoped_lock lock(mutex_);
  on_work_ = std::move(on_work);
}

Duration Workers::busy_time(std::size_t thread) const {
  const std::scoped_lock lock(mutex_);
  const Worker& worker = workers_.at(thread);
  return worker.since ? worker.busy + (Loop::now() - *worker.since) : worker.busy;
}

void Workers::work_until_stopped(Worker& worker) {
  Duration before = thread_cpu_time();
  while (std::optional<Job> job = begin_next(worker)) {
    call(std::move(job->work));
    const Duration after = thread_cpu_time();
    end_job(worker, *job, after - std::exchange(before, after));
  }
}

std::optional<Workers::Job> Workers::begin_next(Worker& worker) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_stopping_ || is_any_waiting(); });
  if (is_stopping_) return std::nullopt;
  const bool takes_first = !first_.is_empty() && (!was_first_ || in_turn_.is_empty());
  was_first_ = takes_first;
  const Order order = takes_first ? Order::First : Order::InTurn;
  std::optional<Queue::Taken> taken = queue_of(order).pop();
  HANGAR_ASSERT(taken.has_value(), "one of the queues is not empty");
  worker.since = Loop::now();
  return Job{.whose = std::move(taken->consumer), .work = std::move(taken->item), .order = order};
}

void Workers::end_job(Worker& worker, const Job& job, Duration processor_time) {
  const std::scoped_lock lock(mutex_);
  worker.busy += Loop::now() - *std::exchange(worker.since, std::nullopt);
  // At least one, so that consumers whose jobs take no measurable time take turns, too.
  queue_of(job.order).done(
      job.whose, static_cast<std::uint64_t>(std::max(processor_time, Duration(1)).count()));
  if (!on_work_) return;
  try {
    on_work_(job.whose.tenant, processor_time);
  } catch (...) {
    // No memory to note it; the job itself has ended.
  }
}

// Destroys the work.
void Workers::call(Work work) {
  std::exception_ptr exception;
  try {
    work();
  } catch (...) {
    exception = std::current_exception();
  }
  if (!exception) return;
  // The loop reports it; if that fails, the process terminates. The exception moves to the loop:
  // if this thread kept a reference until the end of a catch block, it could release it while the
  // loop reads it.
  loop_.post([exception = std::move(exception)]() mutable {
    std::rethrow_exception(std::move(exception));
  });
}

}  // namespace hangar::io
