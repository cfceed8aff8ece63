#include "io/loop.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "io/asio.h"
#include "io/task.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace hangar::io {

namespace {

// A coroutine that nobody awaits: it destroys itself at its end.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

Detached run_detached(Task<void> task, std::size_t& running) {
  ++running;
  co_await std::move(task);
  --running;
}

using Descriptor = boost::asio::posix::stream_descriptor;

}  // namespace

// A descriptor as Asio sees it. epoll takes each only once, so that the watches of both directions
// share it.
struct Loop::Watched {
  Watched(Loop& loop_in, int native) : loop(loop_in), descriptor(loop.asio().context, native) {}
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { loop.watched_.erase(descriptor.release()); }  // Its owner closes it.

  Loop& loop;
  Descriptor descriptor;
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
    // Ends the waits of both directions; the other one, if there is one, begins again.
    state_->watched->descriptor.cancel();
    state_->watched.reset();
  }

 private:
  // Outlives the watch while Asio still holds the handler.
  struct State {
    std::shared_ptr<Loop::Watched> watched;  // Null once the watch has ended.
    Loop::Direction direction;
    std::function<void()> on_ready;
  };

  static void wait(const std::shared_ptr<State>& state) {
    const auto type =
        state->direction == Loop::Direction::Read ? Descriptor::wait_read : Descriptor::wait_write;
    state->watched->descriptor.async_wait(type, [state](const boost::system::error_code& error) {
      if (!state->watched) return;
      // Copied: the callee may destroy this watch.
      const auto keep = state;
      if (error != boost::asio::error::operation_aborted) keep->on_ready();
      if (keep->watched) wait(keep);
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace

// Work from other threads. Asio would take it too, but wakes the loop while it holds the lock that
// the loop needs first: each answer of a worker would take two more switches of threads.
struct Loop::Inbox {
  explicit Inbox(boost::asio::io_context& context_in)
      : context(context_in), wake(context, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    wait();
  }

  // Any thread.
  void push(std::move_only_function<void()> work) {
    {
      const std::scoped_lock lock(mutex);
      waiting.push_back(std::move(work));
      if (waiting.size() > 1) return;  // Whoever came first has seen to it.
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
                             boost::asio::post(context,
                                               [work = std::move(work)]() mutable { work(); });
                         });
  }

  boost::asio::io_context& context;
  Descriptor wake;  // An eventfd.
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
  // The handler may be queued already: it looks whether it is still wanted.
  state->work = nullptr;
  state->timer.cancel();
}

Loop::Loop() : asio_(std::make_unique<Asio>()), inbox_(std::make_unique<Inbox>(asio_->context)) {}
Loop::~Loop() = default;

void Loop::run() {
  asio_->thread = std::this_thread::get_id();
  const auto guard = boost::asio::make_work_guard(asio_->context);
  asio_->context.restart();
  asio_->context.run();
  asio_->context.restart();
  asio_->context.poll();
}

void Loop::run_until(const std::function<bool()>& done) {
  asio_->thread = std::this_thread::get_id();
  const auto guard = boost::asio::make_work_guard(asio_->context);
  asio_->context.restart();
  while (!done() && !asio_->context.stopped())
    asio_->context.run_one();
}

void Loop::stop() {
  asio_->context.stop();
}

Instant Loop::now() {
  return std::chrono::steady_clock::now();
}
WallTime Loop::wall_now() {
  return std::chrono::system_clock::now();
}

bool Loop::is_current() const {
  return asio_->thread == std::this_thread::get_id();
}

void Loop::post(std::move_only_function<void()> work) {
  // Before the first run() nobody waits for it.
  const std::thread::id thread = asio_->thread;
  if (thread != std::thread::id() && thread != std::this_thread::get_id()) {
    inbox_->push(std::move(work));
    return;
  }
  boost::asio::post(asio_->context, [work = std::move(work)]() mutable { work(); });
}

void Loop::spawn(Task<void> task) {
  run_detached(std::move(task), spawned_count_);
}

std::size_t Loop::spawned_count() const {
  return spawned_count_;
}

Loop::Timer Loop::after(Duration delay, std::move_only_function<void()> work) {
  // Not make_shared: who keeps a timer that is over would keep its memory.
  const std::shared_ptr<Timer::State> state(new Timer::State(asio_->context));
  state->work = std::move(work);
  Timer timer;
  timer.state_ = state;
  const auto call = [state] {
    if (auto due = std::exchange(state->work, nullptr)) due();
  };
  if (delay <= Duration::zero()) {
    // Each timer that is the next one to be due sets the system's, which costs more than most work.
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
    std::optional<std::stop_callback<std::function<void()>>> on_stop = {};

    [[nodiscard]] bool await_ready() const noexcept { return stop.stop_requested(); }
    void await_suspend(std::coroutine_handle<> awaiting) {
      timer = loop.after(delay, [awaiting] { awaiting.resume(); });
      on_stop.emplace(stop, [this, awaiting] {
        cancelled = true;
        // Posted: whoever requests a stop does not expect this task to run inside of the request.
        timer = loop.after(Duration::zero(), [awaiting] { awaiting.resume(); });
      });
    }
    [[nodiscard]] bool await_resume() {
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
  auto watched = watched_[descriptor].lock();
  if (!watched) {
    watched = std::make_shared<Watched>(*this, descriptor);
    watched_[descriptor] = watched;
  }
  return std::make_unique<DescriptorWatch>(std::move(watched), direction, std::move(on_ready));
}

}  // namespace hangar::io
