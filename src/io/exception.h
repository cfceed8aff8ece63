// What becomes of an exception that nobody expected.
//
// Code of this project does not throw, but what it calls may: an allocation that is too large, a
// library's bug. Such an exception ends the task, the turn of the loop or the job of a worker that
// threw, not the process:
// - A Task<Result<T>> that throws has an error as its value (task.h).
// - Any other Task hands the exception to the task that awaits it.
// - A spawned task, a posted function, a timer: the loop reports it (Loop::Observer) and goes on.
// - Workers::run() hands it back to the task that awaits the job.
// - Callbacks of C libraries turn it into an error before it leaves them (error_of_exception).
// What the failed code had half changed stays half changed, so callers treat the error as they
// treat a lost connection: they try again, later.
#pragma once

#include "base/result.h"
#include "io/task.h"

#include <utility>

namespace hangar::io {

// The value of `task`, or what it threw as an error.
template <class T>
[[nodiscard]] Task<Result<T>> contained(Task<T> task) {
  co_return co_await std::move(task);
}
[[nodiscard]] inline Task<Result<>> contained(Task<void> task) {
  co_await std::move(task);
  co_return Result<>();
}

}  // namespace hangar::io
