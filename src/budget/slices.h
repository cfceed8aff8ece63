// Long work on the loop, cut into slices, so that everything else on the loop gets a turn between
// two slices.
//
// How long an answer takes depends on objects that tenants made. Between two rounds of the loop,
// all such work together gets one slice. Further work waits, in an order that is fair between
// tenants. A tenant's running job continues before the tenant's next one starts, so that only one
// of its jobs holds collected objects.
//
// Work is counted in bytes read or copied and not in time, so that the same work is cut at the same
// places on every machine. Its processor time is charged to the tenant. Work of another job that
// begins meanwhile is charged to that one only. In an activity with a payer (io::Loop::Activity)
// the loop reports the time, and the job charges nothing.
#pragma once

#include "base/fair_queue.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace hangar::budget {

// A slice takes about half a millisecond: a processor copies a few GB/s.
inline constexpr std::size_t kSliceBytes = std::size_t{1} << 20U;
// The cost of an object in addition to its bytes: it lies elsewhere in memory.
inline constexpr std::size_t kSliceObjectBytes = 256;

// Loop thread.
class Slices {
  struct State;

 public:
  // `rates` outlives this object and its jobs; null: nothing is charged.
  explicit Slices(io::Loop& loop, Rates* rates = nullptr);
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;
  ~Slices();  // Requires that no task waits for a turn.

  // One piece of work, such as an answer that is being built. Between turn() and the next one, or
  // its destruction, the job computes and must not wait for anything else.
  class Job {
   public:
    Job(Job&& other) noexcept;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    Job& operator=(Job&&) = delete;
    ~Job();

    // Waits for a slice. Cancelled.
    [[nodiscard]] io::Task<Result<>> turn(std::stop_token stop);
    // Reports work that was done.
    void add(std::size_t bytes);
    // The slice is used up: the job has to wait for its next turn.
    [[nodiscard]] bool is_over() const;

   private:
    friend class Slices;
    Job(std::shared_ptr<State> state, Consumer consumer)
        : state_(std::move(state)), consumer_(std::move(consumer)) {}

    // Charges the work since the last turn.
    void charge();

    std::shared_ptr<State> state_;
    Consumer consumer_;
    bool has_begun_ = false;
    std::optional<Duration> works_since_;  // By the thread's processor time.
  };
  [[nodiscard]] Job begin(Tenant tenant);

 private:
  using Queue = FairQueue<io::OneShot<bool>>;  // True: its turn has come.
  struct State : std::enable_shared_from_this<State> {
    State(io::Loop& loop_in, Rates* rates_in) : loop(loop_in), rates(rates_in) {}

    void schedule();
    void on_round();

    io::Loop& loop;
    Rates* const rates;
    Queue waiting;
    std::optional<Consumer> served;  // The consumer whose turn it is now.
    std::size_t used_bytes = 0;      // In this round.
    bool is_scheduled = false;
  };

  static io::Task<Result<>> wait(std::shared_ptr<State> state, Consumer consumer, bool has_begun,
                                 std::stop_token stop);

  std::shared_ptr<State> state_;
};

}  // namespace hangar::budget
