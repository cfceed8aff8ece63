// A thread that waits for events and handles them one after the other. The main loop owns the
// caches and the queues, and makes every decision.
//
// All other threads pass values to it through post(). The loop is also the only reader of the
// clock: code that needs the time gets it as a parameter.
//
// A turn is the work of a loop between two waits. Other threads can see how long the current turn
// has taken and for whom it works (its activity), so that a report of a blocked loop can name
// the cause.
#pragma once

#include "base/consumer.h"
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

  // Runs until stop() is called, then until no handler is ready any more. The calling thread is the
  // loop thread from here on.
  void run();
  // Runs until `done` returns true or stop() is called; for tests and one-shot commands.
  void run_until(const std::function<bool()>& done);
  // Any thread.
  void stop();

  // This clock continues while the machine is suspended, unlike the clock of timers: a token that
  // expires in a minute has expired when the machine resumes.
  [[nodiscard]] static Instant now();
  [[nodiscard]] static WallTime wall_now();
  // True on the thread that runs the loop.
  [[nodiscard]] bool is_current() const;

  // Calls `work` on the loop thread, later. Any thread. In order per caller.
  void post(std::move_only_function<void()> work);

  // Who pays for a spawned task: see Activity.
  enum class Payer : std::uint8_t {
    None,     // For work that others may share, such as a watch: whoever starts it is no reason.
    Spawner,  // For a part of the spawning task, which waits for it.
  };
  // Starts `task` now and keeps it until it finishes. Loop thread.
  void spawn(Task<void> task, Payer payer = Payer::None);
  // How many spawned tasks have not finished; zero means a quiet loop.
  [[nodiscard]] std::size_t spawned_count() const;

  // For whom the current turn works. A task keeps its activity through its waits, and a task that
  // it spawns inherits the name.
  struct Doing {
    std::string name;  // "airway default/web"
    // Its processor time is reported to set_on_work(). Tenant::host(): it is not.
    Tenant payer = Tenant::host();
  };
  using DoingPtr = std::shared_ptr<const Doing>;  // Null: no particular tenant.
  // Sets the activity until this object is destroyed. Loop thread.
  class Activity {
   public:
    Activity(Loop& loop, std::string name, Tenant payer = Tenant::host());
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;
    ~Activity();

   private:
    Loop& loop_;
    DoingPtr before_;
  };
  // For code that suspends and resumes tasks. Loop thread.
  [[nodiscard]] const DoingPtr& activity() const;
  void set_activity(DoingPtr activity);
  // `on_work` is called on the loop thread whenever an activity with a payer has worked, with the
  // time since its last wait or call. Before run().
  using OnWork = std::function<void(const Tenant& payer, Duration processor_time)>;
  void set_on_work(OnWork on_work);

  // Callbacks for the owner of the loop. Called on the loop thread; `activity` may be empty.
  struct Observer {
    std::function<void(Duration took, std::string_view activity)> on_turn = {};
    // A spawned task, posted work or a timer threw; the exception has ended it. Without this
    // handler the process terminates.
    std::function<void(const Error& error, std::string_view activity)> on_exception = {};
  };
  // Before run().
  void observe(Observer observer);

  struct RunningTurn {
    Instant began;
    std::string activity;
  };
  // The current turn; std::nullopt while the loop waits for events. Any thread.
  [[nodiscard]] std::optional<RunningTurn> running_turn() const;

  // A timer that calls `work` once after `delay`, unless it is cancelled or destroyed before.
  // Loop thread.
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
    std::weak_ptr<State> state_;  // Owned by the pending handler; expired once it was called.
  };
  [[nodiscard]] Timer after(Duration delay, std::move_only_function<void()> work);

  // Suspends the awaiting task. Cancelled as soon as a stop is requested. Loop thread, which is
  // also the only thread that may request the stop.
  [[nodiscard]] Task<Result<>> sleep(Duration delay, std::stop_token stop);

  // Watches a file descriptor that another component owns (libcurl's sockets). The loop calls
  // `on_ready` each time the descriptor is ready, until the Watch is destroyed, which must happen
  // before the descriptor is closed. Each direction of a descriptor may have one Watch.
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
