// One task for whoever has nothing else to do: commands, and tests.
#pragma once

#include "io/loop.h"
#include "io/task.h"

#include <optional>
#include <utility>

namespace hangar::io {

namespace internal {

template <class T>
Task<void> keep(Task<T> task, std::optional<T>& value) {
  value.emplace(co_await std::move(task));
}

}  // namespace internal

// Runs the loop until the task has ended, and gives its value. Nobody else runs or stops the loop.
template <class T>
[[nodiscard]] T run_to_end(Loop& loop, Task<T> task) {
  std::optional<T> value;
  loop.spawn(internal::keep(std::move(task), value));
  loop.run_until([&value] { return value.has_value(); });
  return *std::move(value);
}

}  // namespace hangar::io
