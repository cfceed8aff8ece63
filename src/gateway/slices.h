// Long work on the loop, cut into slices, so that everything else on the loop has its turn between
// two of them.
//
// How long an answer takes to make is up to those whose objects it has. Between two rounds of the
// loop all such work together gets one slice, whoever it is for: what wants more waits, in an order
// that is fair between tenants. Of one tenant a job that has begun goes on before the next begins,
// so that one holds what it has collected, and not all.
//
// Work is counted in bytes that are looked at or copied, not in time: the same work is cut at the
// same places on every machine.
#pragma once

#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_queue.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::gateway {

// A slice is half a millisecond or so: bytes are copied at some GB/s.
inline constexpr std::size_t kSliceBytes = std::size_t{1} << 20U;
// What an object costs besides its bytes: it is somewhere else in memory.
inline constexpr std::size_t kSliceObjectBytes = 256;

// Loop thread.
class Slices {
  struct State;

 public:
  explicit Slices(io::Loop& loop);
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;
  ~Slices();  // No task waits for a turn.

  // One answer that is being made.
  class Job {
   public:
    // Until there is room for a slice. Cancelled.
    [[nodiscard]] io::Task<Result<>> turn(std::stop_token stop);
    // So much has been done.
    void add(std::size_t bytes);
    // The slice is over: what is left waits for its turn.
    [[nodiscard]] bool is_over() const;

   private:
    friend class Slices;
    Job(std::shared_ptr<State> state, budget::Consumer consumer)
        : state_(std::move(state)), consumer_(std::move(consumer)) {}

    std::shared_ptr<State> state_;
    budget::Consumer consumer_;
    bool has_begun_ = false;
  };
  // `tenant`: see tenant_of().
  [[nodiscard]] Job begin(const std::string& tenant);

 private:
  using Queue = budget::FairQueue<io::OneShot<bool>>;  // The value: whether it is its turn.
  struct State : std::enable_shared_from_this<State> {
    explicit State(io::Loop& loop_in) : loop(loop_in) {}

    void schedule();
    void on_round();

    io::Loop& loop;
    Queue waiting;
    std::optional<budget::Consumer> served;  // Whose turn it is.
    std::size_t used_bytes = 0;              // Of this round.
    bool is_scheduled = false;
  };

  static io::Task<Result<>> wait(std::shared_ptr<State> state, budget::Consumer consumer,
                                 bool has_begun, std::stop_token stop);

  std::shared_ptr<State> state_;
};

}  // namespace hangar::gateway
