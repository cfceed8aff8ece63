// Runs one task until it finishes, for callers without their own loop: commands and tests.
#pragma once

#include "io/loop.h"
#include "io/task.h"

#include <exception>
#include <optional>
#include <utility>

namespace hangar::io {

namespace internal {

template <class T>
struct Kept {
  std::optional<T> value;
  std::exception_ptr exception;
};

template <class T>
Task<void> keep(Task<T> task, Kept<T>& kept) {
  try {
    kept.value.emplace(co_await std::move(task));
  } catch (...) {
    kept.exception = std::current_exception();
  }
}

}  // namespace internal

// Runs the loop until the task has finished, and returns its value or rethrows its exception.
// Nothing else may run or stop the loop meanwhile.
template <class T>
[[nodiscard]] T run_to_end(Loop& loop, Task<T> task) {
  internal::Kept<T> kept;
  loop.spawn(internal::keep(std::move(task), kept));
  loop.run_until([&kept] { return kept.value.has_value() || kept.exception; });
  if (kept.exception) std::rethrow_exception(kept.exception);
  return *std::move(kept.value);
}

}  // namespace hangar::io
