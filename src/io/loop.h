// A thread that waits for events and handles one after the other. The main loop owns the caches,
// the queues and every decision.
//
// Everything else in the process hands it values through post(). It is also the only reader of the
// clock: what needs the time is given it.
//
// What a loop does between two waits is a turn. Other threads can see how long the present one has
// taken and whom it is for (activity), so that a loop that is held up is found out by name.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/task.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace hangar::io {

namespace internal {
struct Detached;
}

class Loop {
 public:
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  // Runs until stop() is called, then until nothing is ready any more. The calling thread is the
  // loop thread from here on.
  void run();
  // Runs until `done` returns true or stop() is called; for tests and one-shot commands.
  void run_until(const std::function<bool()>& done);
  // Any thread.
  void stop();

  // Goes on while the machine is suspended, unlike the clock of timers: what was valid until then
  // is not valid after a suspension.
  [[nodiscard]] static Instant now();
  [[nodiscard]] static WallTime wall_now();
  // True on the thread that runs the loop.
  [[nodiscard]] bool is_current() const;

  // Calls `work` on the loop thread, later. Any thread. In order per caller.
  void post(std::move_only_function<void()> work);

  // Starts `task` now and keeps it until it ends. Loop thread.
  void spawn(Task<void> task);
  // How many spawned tasks have not ended: zero is a quiet loop.
  [[nodiscard]] std::size_t spawned_count() const;

  // For whom the present turn works: "airway default/web". It follows a task through its waits, and
  // is what a task inherits that is spawned meanwhile. Null: nobody in particular.
  using ActivityName = std::shared_ptr<const std::string>;
  // Sets it until it is destroyed. Loop thread.
  class Activity {
   public:
    Activity(Loop& loop, std::string name);
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;
    ~Activity();

   private:
    Loop& loop_;
    ActivityName before_;
  };
  // For what suspends and resumes tasks. Loop thread.
  [[nodiscard]] const ActivityName& activity() const;
  void set_activity(ActivityName name);

  // What the process wants to know of its loop. Called on the loop thread; `activity` may be empty.
  struct Observer {
    std::function<void(Duration took, std::string_view activity)> on_turn = {};
    // A spawned task, posted work or a timer threw; it has ended. Without a handler the process
    // ends.
    std::function<void(const Error& error, std::string_view activity)> on_exception = {};
  };
  // Before run().
  void observe(Observer observer);

  struct RunningTurn {
    Instant began;
    std::string activity;
  };
  // The present turn; nothing while the loop waits for something to do. Any thread.
  [[nodiscard]] std::optional<RunningTurn> running_turn() const;

  // A timer that calls `work` once after `delay`, unless it is cancelled or destroyed before. Loop
  // thread.
  class Timer {
   public:
    Timer() = default;
    Timer(Timer&& other) noexcept = default;
    Timer& operator=(Timer&& other) noexcept;
    ~Timer() { cancel(); }
    void cancel();

   private:
    friend class Loop;
    struct State;
    std::weak_ptr<State> state_;  // The pending handler's: nothing is left once it was called.
  };
  [[nodiscard]] Timer after(Duration delay, std::move_only_function<void()> work);

  // Suspends the awaiting task. Cancelled as soon as a stop is requested. Loop thread; the stop may
  // be requested there only.
  [[nodiscard]] Task<Result<>> sleep(Duration delay, std::stop_token stop);

  // Readiness of a file descriptor that somebody else owns (libcurl's sockets). `on_ready` is
  // called each time until the Watch is destroyed, which must be before the descriptor is closed.
  // Both directions of one descriptor may be watched, each by one Watch.
  enum class Direction : std::uint8_t { Read, Write };
  class Watch {
   public:
    virtual ~Watch() = default;
  };
  [[nodiscard]] std::unique_ptr<Watch> watch(int descriptor, Direction direction,
                                             std::function<void()> on_ready);

  struct Watched;
  class Turn;

  // For io/ and http/, which know Asio: see io/asio.h.
  struct Asio;
  [[nodiscard]] Asio& asio() { return *asio_; }

 private:
  struct Inbox;
  struct Turns;

  static internal::Detached run_detached(Loop& loop, Task<void> task);
  template <class Step>
  void run_contained(Step step);
  void report_exception() const;

  std::unique_ptr<Asio> asio_;
  std::unique_ptr<Turns> turns_;
  std::unique_ptr<Inbox> inbox_;
  std::size_t spawned_count_ = 0;
  std::map<int, std::weak_ptr<Watched>> watched_;
};

}  // namespace hangar::io
