// Runs several tasks at the same time and returns all their results.
#pragma once

#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hangar::io {

namespace internal {

template <class T>
struct Gather {
  Gather(Loop& loop, std::size_t count) : results(count), left(count), done(loop) {}
  std::vector<std::optional<T>> results;
  std::exception_ptr exception;  // The first one.
  std::size_t left;
  OneShot<bool> done;
};

template <class T>
Task<void> run_one_of(Task<T> task, std::shared_ptr<Gather<T>> gather, std::size_t index) {
  try {
    gather->results[index].emplace(co_await std::move(task));
  } catch (...) {
    if (!gather->exception) gather->exception = std::current_exception();
  }
  if (--gather->left == 0) gather->done.set(true);
}

}  // namespace internal

// Starts every task, waits for every one, and returns their values in the same order. An error or
// an exception in one stops none of the others.
template <class T>
[[nodiscard]] Task<std::vector<T>> all(Loop& loop, std::vector<Task<T>> tasks) {
  std::vector<T> values;
  if (tasks.empty()) co_return values;
  const auto gather = std::make_shared<internal::Gather<T>>(loop, tasks.size());
  for (std::size_t index = 0; index < tasks.size(); ++index) {
    loop.spawn(internal::run_one_of(std::move(tasks[index]), gather, index), Loop::Payer::Spawner);
  }
  co_await gather->done.wait();
  if (gather->exception) std::rethrow_exception(gather->exception);
  values.reserve(gather->results.size());
  for (std::optional<T>& result : gather->results)
    values.push_back(*std::move(result));
  co_return values;
}

}  // namespace hangar::io
