#include "io/workers.h"

#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

namespace hangar::io {

Workers::Workers(Loop& loop, std::size_t thread_count) : loop_(loop) {
  threads_.reserve(thread_count);
  for (std::size_t index = 0; index < thread_count; ++index) {
    threads_.emplace_back([this] { work_until_stopped(); });
  }
}

Workers::~Workers() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  threads_.clear();  // Joins the threads before the mutex and the queue are destroyed.
}

void Workers::submit(std::move_only_function<void()> work) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
}

Task<bool> Workers::flush(Duration time_max) {
  const OneShot<bool> done(loop_);
  submit([&loop = loop_, done = OneShot<bool>(done)]() mutable {
    // The last reference goes back to the loop, too: a OneShot must not be used by several threads.
    loop.post([done = std::move(done)] { done.set(true); });
  });
  const Loop::Timer limit = loop_.after(time_max, [done] { done.set(false); });
  co_return co_await done.wait();
}

void Workers::work_until_stopped() {
  while (true) {
    std::move_only_function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
      if (is_stopping_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    std::exception_ptr exception;
    try {
      work();
    } catch (...) {
      exception = std::current_exception();
    }
    if (!exception) continue;
    // The loop reports it; if that fails, the process terminates. The exception moves to the loop:
    // if this thread kept a reference until the end of a catch block, it could release it while the
    // loop reads it.
    loop_.post([exception = std::move(exception)]() mutable {
      std::rethrow_exception(std::move(exception));
    });
  }
}

}  // namespace hangar::io
