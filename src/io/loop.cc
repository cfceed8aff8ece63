#include "io/loop.h"

#include "base/assert.h"
#include "base/consumer.h"
#include "base/result.h"
#include "base/time.h"
#include "io/asio.h"
#include "io/clock.h"
#include "io/cpu_time.h"
#include "io/task.h"
#include "io/virtual_time.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::io {

// A coroutine that no task awaits: it destroys itself at its end.
struct internal::Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// The state of the loop's turns.
struct Loop::Turns {
  Observer observer;
  OnWork on_work;
  // When the current turn began; zero while the loop waits.
  std::atomic<Instant::rep> began = 0;
  DoingPtr activity;
  // When, by the thread's processor time, the activity began to work; set while its payer is to be
  // reported.
  std::optional<Duration> works_since;
  // Of the activities of the current turn, the one that has worked for longest at a time: a report
  // of a turn that has ended names it. Null: none has worked yet.
  DoingPtr longest;
  Duration longest_worked{};
  Instant activity_began;
  // The last activity of the current turn: still set when its task has finished or thrown. Only the
  // loop thread changes it, so that thread reads it without the lock.
  DoingPtr latest;
  std::mutex latest_mutex;
  // In virtual time: in place of Asio's queue and timers.
  std::optional<VirtualTime::Queue> simulated;
  bool is_simulation_stopped = false;

  void set_latest(DoingPtr doing) {
    const std::scoped_lock lock(latest_mutex);
    latest.swap(doing);  // The old one is destroyed without the lock.
  }
  [[nodiscard]] std::string_view latest_text() const {
    return latest ? std::string_view(latest->name) : std::string_view();
  }
  void end_activity(Instant at) {
    const Duration worked = at - std::exchange(activity_began, at);
    if (!activity || worked <= longest_worked) return;
    longest = activity;
    longest_worked = worked;
  }
  // The activity that a report of the whole turn names.
  [[nodiscard]] std::string_view longest_text() const {
    return longest ? std::string_view(longest->name) : latest_text();
  }

  void begin_work() {
    if (on_work && activity && !activity->payer.is_host()) works_since = thread_cpu_time();
  }
  void end_work() {
    if (!works_since) return;
    const Duration since = *std::exchange(works_since, std::nullopt);
    try {
      on_work(activity->payer, thread_cpu_time() - since);
    } catch (...) {
      // No memory to report it: tasks that resume must not throw because of that.
    }
  }
};

// The time between two waits that one handler takes. Handlers of Asio's own sockets (http::Server)
// are not counted as turns.
class Loop::Turn {
 public:
  template <class Work>
  static void run(Loop& loop, Work& work) {
    const Turn turn(*loop.turns_);
    try {
      work();
    } catch (...) {
      loop.report_exception();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  explicit Turn(Turns& turns) : turns_(turns), began_(now()) {
    turns_.began.store(began_.time_since_epoch().count(), std::memory_order_relaxed);
    turns_.activity_began = began_;
  }
  ~Turn() {
    turns_.began.store(0, std::memory_order_relaxed);
    turns_.end_work();
    const Instant ended = now();
    turns_.end_activity(ended);
    if (turns_.observer.on_turn) {
      try {
        turns_.observer.on_turn(ended - began_, turns_.longest_text());
      } catch (...) {
        // No memory to report it; the turn itself is over.
      }
    }
    turns_.activity.reset();
    turns_.longest.reset();
    turns_.longest_worked = Duration::zero();
    if (turns_.latest) turns_.set_latest(nullptr);
  }

  Turns& turns_;
  const Instant began_;
};

// A descriptor that Asio watches. epoll takes each descriptor once, so the watches of both
// directions share it.
struct Loop::Watched {
  Watched(Loop& loop_in, int native) : loop(loop_in), descriptor(loop.asio().context, native) {}
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { loop.watched_.erase(descriptor.release()); }  // Its owner closes the descriptor.

  Loop& loop;
  boost::asio::posix::stream_descriptor descriptor;
};

namespace {

class DescriptorWatch final : public Loop::Watch {
 public:
  DescriptorWatch(std::shared_ptr<Loop::Watched> watched, Loop::Direction direction,
                  std::function<void()> on_ready)
      : state_(std::make_shared<State>(std::move(watched), direction, std::move(on_ready))) {
    wait(state_);
  }

  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;

  ~DescriptorWatch() override {
    // Cancels the waits of both directions; the watch of the other direction waits again.
    state_->watched->descriptor.cancel();
    state_->watched.reset();
  }

 private:
  // Outlives the watch while Asio holds the handler.
  struct State {
    std::shared_ptr<Loop::Watched> watched;  // Null once the watch is destroyed.
    Loop::Direction direction;
    std::function<void()> on_ready;
  };

  static void wait(const std::shared_ptr<State>& state) {
    const auto type = state->direction == Loop::Direction::Read
                          ? boost::asio::posix::stream_descriptor::wait_read
                          : boost::asio::posix::stream_descriptor::wait_write;
    state->watched->descriptor.async_wait(type, [state](const boost::system::error_code& error) {
      if (!state->watched) return;
      // A copy: the callback may destroy this watch.
      const auto keep = state;
      if (error != boost::asio::error::operation_aborted) {
        Loop::Turn::run(state->watched->loop, keep->on_ready);
      }
      if (keep->watched) wait(keep);
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace

// Work from other threads. Asio's own post() would wake the loop while it holds the lock that the
// loop needs first: each answer of a worker would cost two more context switches.
struct Loop::Inbox {
  explicit Inbox(Loop& loop_in)
      : loop(loop_in),
        context(loop.asio().context),
        wake(context, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    wait();
  }

  // Any thread.
  void push(std::move_only_function<void()> work) {
    {
      const std::scoped_lock lock(mutex);
      waiting.push_back(std::move(work));
      if (waiting.size() > 1) return;  // The push that made it non-empty wakes the loop.
    }
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then the loop is woken anyway.
    [[maybe_unused]] const ssize_t written = ::write(wake.native_handle(), &one, sizeof one);
  }

  void wait() {
    wake.async_read_some(boost::asio::buffer(&count, sizeof count),
                         [this](const boost::system::error_code& error, std::size_t /*size*/) {
                           if (error == boost::asio::error::operation_aborted) return;
                           wait();
                           std::vector<std::move_only_function<void()>> arrived;
                           {
                             const std::scoped_lock lock(mutex);
                             arrived.swap(waiting);
                           }
                           for (auto& work : arrived)
                             boost::asio::post(context, [this, work = std::move(work)]() mutable {
                               Turn::run(loop, work);
                             });
                         });
  }

  Loop& loop;
  boost::asio::io_context& context;
  boost::asio::posix::stream_descriptor wake;  // An eventfd.
  std::uint64_t count = 0;
  std::mutex mutex;
  std::vector<std::move_only_function<void()>> waiting;
};

struct Loop::Timer::State {
  explicit State(boost::asio::io_context& context) : timer(context) {}

  boost::asio::steady_timer timer;
  std::move_only_function<void()> work;  // Null once due or cancelled.
};

Loop::Timer& Loop::Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

void Loop::Timer::cancel() {
  const auto state = std::exchange(state_, {}).lock();
  if (!state) return;
  // The handler may be queued already; it checks whether `work` is set.
  state->work = nullptr;
  state->timer.cancel();
}

Loop::Loop()
    : asio_(std::make_unique<Asio>()),
      turns_(std::make_unique<Turns>()),
      inbox_(std::make_unique<Inbox>(*this)) {
  VirtualTime* const time = VirtualTime::current();
  if (time == nullptr) return;
  turns_->simulated.emplace(*time);
  asio_->thread = std::this_thread::get_id();
}
Loop::~Loop() = default;

void Loop::run() {
  asio_->thread = std::this_thread::get_id();
  if (turns_->simulated) return run_until([] { return false; });
  const auto guard = boost::asio::make_work_guard(asio_->context);
  asio_->context.restart();
  run_contained([this] { asio_->context.run(); });
  asio_->context.restart();
  run_contained([this] { asio_->context.poll(); });
}

void Loop::run_until(const std::function<bool()>& done) {
  asio_->thread = std::this_thread::get_id();
  if (turns_->simulated) {
    turns_->is_simulation_stopped = false;
    while (!done() && !turns_->is_simulation_stopped) {
      run_contained([] {
        HANGAR_ASSERT(VirtualTime::current()->step(), "the simulation waits for nothing");
      });
    }
    return;
  }
  const auto guard = boost::asio::make_work_guard(asio_->context);
  asio_->context.restart();
  while (!done() && !asio_->context.stopped())
    run_contained([this] { asio_->context.run_one(); });
}

// run() of Asio can continue after a handler that threw.
template <class Step>
void Loop::run_contained(Step step) {
  while (true) {
    try {
      step();
      return;
    } catch (...) {
      report_exception();
    }
  }
}

// Called inside a catch block.
void Loop::report_exception() const {
  if (!turns_->observer.on_exception) throw;
  try {
    turns_->observer.on_exception(error_of_exception(), turns_->latest_text());
  } catch (...) {
    // No memory to report it: the work that threw has ended, and the loop continues.
  }
}

void Loop::stop() {
  if (turns_->simulated) turns_->is_simulation_stopped = true;
  asio_->context.stop();
}

Instant Loop::now() {
  return read_boot_clock();
}
WallTime Loop::wall_now() {
  return read_wall_clock();
}

bool Loop::is_current() const {
  return asio_->thread == std::this_thread::get_id();
}

void Loop::post(std::move_only_function<void()> work) {
  if (turns_->simulated) {
    turns_->simulated->post([this, work = std::move(work)]() mutable { Turn::run(*this, work); });
    return;
  }
  // Before the first run() no thread waits for events, so none needs waking.
  const std::thread::id thread = asio_->thread;
  if (thread != std::thread::id() && thread != std::this_thread::get_id()) {
    inbox_->push(std::move(work));
    return;
  }
  boost::asio::post(asio_->context,
                    [this, work = std::move(work)]() mutable { Turn::run(*this, work); });
}

internal::Detached Loop::run_detached(Loop& loop, Task<void> task) {
  ++loop.spawned_count_;
  try {
    co_await std::move(task);
  } catch (...) {
    loop.report_exception();
  }
  --loop.spawned_count_;
}

void Loop::spawn(Task<void> task, Payer payer) {
  const DoingPtr spawning = activity();
  if (payer == Payer::None && spawning && !spawning->payer.is_host()) {
    set_activity(std::make_shared<const Doing>(Doing{.name = spawning->name}));
  }
  run_detached(*this, std::move(task));
  set_activity(spawning);
}

std::size_t Loop::spawned_count() const {
  return spawned_count_;
}

Loop::Activity::Activity(Loop& loop, std::string name, Tenant payer)
    : loop_(loop), before_(loop.activity()) {
  loop_.set_activity(
      std::make_shared<const Doing>(Doing{.name = std::move(name), .payer = std::move(payer)}));
}

Loop::Activity::~Activity() {
  loop_.set_activity(std::move(before_));
}

const Loop::DoingPtr& Loop::activity() const {
  return turns_->activity;
}

void Loop::set_activity(DoingPtr activity) {
  if (activity == turns_->activity) return;
  if (activity && activity != turns_->latest) turns_->set_latest(activity);
  turns_->end_work();
  turns_->end_activity(now());
  turns_->activity = std::move(activity);
  turns_->begin_work();
}

void Loop::set_on_work(OnWork on_work) {
  turns_->on_work = std::move(on_work);
}

void Loop::observe(Observer observer) {
  turns_->observer = std::move(observer);
}

std::optional<Loop::RunningTurn> Loop::running_turn() const {
  const Instant::rep began = turns_->began.load(std::memory_order_relaxed);
  if (began == 0) return std::nullopt;
  const std::scoped_lock lock(turns_->latest_mutex);
  return RunningTurn{.began = Instant(Duration(began)),
                     .activity = std::string(turns_->latest_text())};
}

Loop::Timer Loop::after(Duration delay, std::move_only_function<void()> work) {
  // Not make_shared: the weak_ptr of a Timer that has fired would keep the memory of its state.
  const std::shared_ptr<Timer::State> state(new Timer::State(asio_->context));
  state->work = std::move(work);
  Timer timer;
  timer.state_ = state;
  const auto call = [this, state] {
    if (auto due = std::exchange(state->work, nullptr)) Turn::run(*this, due);
  };
  if (turns_->simulated) {
    if (delay <= Duration::zero()) {
      turns_->simulated->post(call);
    } else {
      turns_->simulated->after(delay, call, [state] { return state->work == nullptr; });
    }
    return timer;
  }
  if (delay <= Duration::zero()) {
    // Each Asio timer that becomes the next one due sets the system's timer, which costs more than
    // most work.
    boost::asio::post(asio_->context, call);
    return timer;
  }
  state->timer.expires_after(delay);
  state->timer.async_wait([call](const boost::system::error_code&) { call(); });
  return timer;
}

Task<Result<>> Loop::sleep(Duration delay, std::stop_token stop) {
  struct Awaiter {
    Loop& loop;
    Duration delay;
    std::stop_token stop;
    Timer timer = {};
    bool cancelled = false;
    DoingPtr activity = nullptr;
    std::optional<std::stop_callback<std::function<void()>>> on_stop = {};

    [[nodiscard]] bool await_ready() const noexcept { return stop.stop_requested(); }
    void await_suspend(std::coroutine_handle<> awaiting) {
      activity = loop.activity();
      timer = loop.after(delay, [awaiting] { awaiting.resume(); });
      on_stop.emplace(stop, [this, awaiting] {
        cancelled = true;
        // Posted: code that requests a stop does not expect this task to run inside the request.
        timer = loop.after(Duration::zero(), [awaiting] { awaiting.resume(); });
      });
    }
    [[nodiscard]] bool await_resume() {
      if (activity) loop.set_activity(std::move(activity));
      on_stop.reset();
      return !cancelled && !stop.stop_requested();
    }
  };
  const bool elapsed = co_await Awaiter{*this, delay, std::move(stop)};
  if (!elapsed) co_return fail(ErrorKind::Cancelled, "stopping");
  co_return Result<>();
}

std::unique_ptr<Loop::Watch> Loop::watch(int descriptor, Direction direction,
                                         std::function<void()> on_ready) {
  HANGAR_ASSERT(!turns_->simulated, "a simulation has no descriptors");
  auto watched = watched_[descriptor].lock();
  if (!watched) {
    watched = std::make_shared<Watched>(*this, descriptor);
    watched_[descriptor] = watched;
  }
  return std::make_unique<DescriptorWatch>(std::move(watched), direction, std::move(on_ready));
}

}  // namespace hangar::io
