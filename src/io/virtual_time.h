// Time for simulations: a clock that moves on to the next timer whenever nothing is ready.
//
// While a VirtualTime lives, every Loop and all Workers that are constructed on its thread belong
// to it. They use neither threads nor descriptors: all their handlers run on this thread, one after
// the other, and all clocks (io/clock.h) and random numbers (base/random.h) come from the seed. So
// a seed repeats a run exactly, and hours pass in seconds.
//
// What the order of handlers promises is what real loops promise: a loop runs what was posted to it
// in order, and a timer not before its time. Everything else is drawn from the seed: which of
// several loops runs next, how long a turn takes, when a worker starts and ends a job.
//
// Each loop belongs to a Process, which can stand still while others run, as after SIGSTOP or in a
// virtual machine that is paused, and which has its own clocks.
//
// Not simulated: Loop::watch() and Asio's own sockets (a simulation replaces http::Client, see
// src/simulation), signals, programs and threads other than those of Workers.
#pragma once

#include "base/simulated_random.h"
#include "base/time.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace hangar::io {

class VirtualTime {
 public:
  struct Options {
    std::uint64_t seed = 0;
    // The longest time that a turn of a loop takes, and that a worker needs until it ends a job.
    Duration turn_max = std::chrono::microseconds(200);
    Duration job_max = std::chrono::milliseconds(5);
  };
  explicit VirtualTime(Options options);
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;
  // All loops and workers have been destroyed.
  ~VirtualTime();

  // That of the calling thread; null: time is real.
  [[nodiscard]] static VirtualTime* current();

  // A process of the simulation; outlives its loops and workers.
  class Process {
   public:
    explicit Process(VirtualTime& time) : time_(time) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    // None of its handlers runs until resume().
    void stop();
    // What its clocks showed meanwhile.
    enum class Clocks : std::uint8_t {
      WentOn,      // SIGSTOP, or no processor time in its cgroup.
      Suspended,   // The machine slept: timers stood still, the boot clock and the time of day not.
      StoodStill,  // The virtual machine was paused: all three.
    };
    void resume(Clocks clocks);
    [[nodiscard]] bool is_stopped() const { return is_stopped_; }
    // Someone sets the time of day.
    void jump_wall_clock(Duration by) { wall_offset_ += by; }

   private:
    friend class VirtualTime;
    VirtualTime& time_;
    bool is_stopped_ = false;
    Instant stopped_at_;
    Duration boot_lost_{};
    Duration timers_lost_{};
    Duration wall_offset_{};
  };

  // Loops and workers that are constructed while it lives belong to `process`; otherwise, to a
  // process that never stops.
  class Inside {
   public:
    explicit Inside(Process& process)
        : time_(process.time_), before_(std::exchange(time_.inside_, &process)) {}
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { time_.inside_ = before_; }

   private:
    VirtualTime& time_;
    Process* const before_;
  };

  // What a loop, a worker or the simulated world does, in order.
  class Queue {
   public:
    using Work = std::move_only_function<void()>;
    explicit Queue(VirtualTime& time);
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue();

    void post(Work work) { ready_.push_back(std::move(work)); }
    // `is_over` is asked when the time has come, and before time moves on to it: then the timer
    // counts as none. Null: it never is.
    void after(Duration delay, Work work, std::function<bool()> is_over = nullptr);

   private:
    friend class VirtualTime;
    struct Timer {
      Work work;
      std::function<bool()> is_over;
    };
    VirtualTime& time_;
    Process& process_;
    std::deque<Work> ready_;
    std::map<std::pair<Instant, std::uint64_t>, Timer> timers_;  // By the process's own time.
  };
  // The queue of a component that has no room for one of its own; made when it is first asked for.
  [[nodiscard]] Queue& queue_of(const void* owner);
  void drop_queue_of(const void* owner) { owned_.erase(owner); }

  // Runs one handler, after the time has moved on to the next timer if none is ready. False:
  // nothing is left to wait for, except in processes that are stopped.
  bool step();
  // Runs what happens within `duration`.
  void run_for(Duration duration);
  // The current turn takes so much longer.
  void spend(Duration duration) { world_ += duration; }

  // By the clocks of the process whose turn it is. Each reading takes a little time.
  [[nodiscard]] Instant now();
  [[nodiscard]] WallTime wall_now();
  [[nodiscard]] Duration processor_time();
  // The same for all processes.
  [[nodiscard]] Instant world() const { return world_; }
  [[nodiscard]] std::uint64_t step_count() const { return step_count_; }

  // At random, from `min` to `max`.
  [[nodiscard]] std::uint64_t draw(std::uint64_t min, std::uint64_t max);
  [[nodiscard]] Duration draw_up_to(Duration max);
  [[nodiscard]] bool draw_one_in(std::uint64_t count) { return draw(1, count) == 1; }
  [[nodiscard]] Duration job_time() { return draw_up_to(options_.job_max); }

 private:
  [[nodiscard]] Process& process_now() { return inside_ != nullptr ? *inside_ : outside_; }
  // When the timer of a process is due, by the world's time.
  static Instant world_time(const Process& process, Instant timer);
  // Makes due timers ready; false: none is.
  bool collect_due();
  // The world's time of the next timer; Instant::max(): none.
  [[nodiscard]] Instant next_due();

  const Options options_;
  SimulatedRandom entropy_;
  std::mt19937_64 random_;
  Process outside_{*this};
  Process* inside_ = nullptr;  // Null: `outside_`.
  Instant world_;
  Duration processor_time_{};
  std::uint64_t step_count_ = 0;
  std::uint64_t timer_count_ = 0;
  std::vector<Queue*> queues_;  // In the order of their construction.
  std::map<const void*, std::unique_ptr<Queue>> owned_;
};

}  // namespace hangar::io
