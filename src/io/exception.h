// How an unexpected exception is handled.
//
// The code of this project does not throw, but code that it calls may: an allocation that is too
// large, a library's bug. Such an exception ends the task, the turn of the loop or the worker's job
// that threw, not the process:
// - A Task<Result<T>> that throws has an error as its value (task.h).
// - Any other Task rethrows the exception in the task that awaits it.
// - A spawned task, a posted function, a timer: the loop reports it (Loop::Observer) and continues.
// - Workers::run() rethrows it in the task that awaits the job.
// - Callbacks of C libraries turn it into an error before they return (error_of_exception).
// State that the failed code had half changed stays half changed, so callers treat the error like a
// lost connection: they retry later.
#pragma once

#include "base/result.h"
#include "io/task.h"

#include <utility>

namespace hangar::io {

// The value of `task`, or the exception that it threw as an error.
template <class T>
[[nodiscard]] Task<Result<T>> contained(Task<T> task) {
  co_return co_await std::move(task);
}
[[nodiscard]] inline Task<Result<>> contained(Task<void> task) {
  co_await std::move(task);
  co_return Result<>();
}

}  // namespace hangar::io
