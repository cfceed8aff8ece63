#include "host/supervisor.h"

#include "base/log.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/auth/credentials.h"
#include "reconcile/leader_elector.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace hangar::host {

namespace {

constexpr int kFailed = 1;

// Time to release the Lease when the main loop is dead; the exit of the process is more urgent.
constexpr std::chrono::seconds kGiveUpMax{5};

}  // namespace

Supervisor::Supervisor(Parts parts)
    : parts_(std::move(parts)),
      log_(parts_.log.named("lease")),
      http_(loop_),
      credentials_(
          std::make_shared<kube::Credentials>(loop_, parts_.login, parts_.log.named("kube"))),
      client_(loop_, http_, credentials_, metrics_, parts_.log.named("kube")),
      endpoints_(loop_, parts_.main, parts_.metrics, parts_.log.named("ops")),
      watch_(parts_.main, parts_.metrics, parts_.log.named("loop")) {
  loop_.observe({.on_exception = [this](const Error& error, std::string_view) {
    log_.error("a task failed with an exception", {{"error", error.message()}});
  }});
  endpoints_.add_liveness_check("main-loop", [this] { return watch_.check(); });
  if (!parts_.lease) return;
  elector_ = std::make_unique<reconcile::LeaderElector>(
      loop_, client_, parts_.fence, parts_.metrics, log_, *parts_.lease,
      reconcile::LeaderElector::Handlers{.on_started = [this] { parts_.main.post(on_leading_); },
                                         .on_stopped = [this] { on_stopped(); }});
}

Supervisor::~Supervisor() {
  loop_.stop();
}

void Supervisor::add_check(std::string name, std::function<Result<>()> check) {
  endpoints_.add_check(std::move(name), std::move(check));
}

void Supervisor::set_operators(ops::Endpoints::ScrapeOperator scrape) {
  endpoints_.set_operators(std::move(scrape));
}

Result<> Supervisor::listen(std::string_view address) {
  return endpoints_.listen(address);
}

void Supervisor::start(std::function<void()> on_leading) {
  on_leading_ = std::move(on_leading);
  watch_.start(loop_, parts_.dead_after, [this](const std::string& why) { on_dead(why); });
  if (elector_) {
    elector_->start();
  } else {
    parts_.main.post(on_leading_);
  }
  thread_ = std::jthread([this] { loop_.run(); });
}

io::Task<void> Supervisor::stop(Leaving leaving) {
  const io::OneShot<bool> ended(parts_.main);
  loop_.post([this, leaving, given = io::OneShot<bool>(ended)]() mutable {
    is_ending_ = true;
    loop_.spawn(end(leaving, std::move(given)));
  });
  co_await ended.wait();
}

io::Task<void> Supervisor::end(Leaving leaving, io::OneShot<bool> ended) {
  if (elector_ && leaving == Leaving::Release) co_await elector_->stop();
  co_await endpoints_.stop();
  // The last reference moves to the main loop, since only one thread may use a OneShot.
  parts_.main.post([done = std::move(ended)] { done.set(true); });
  loop_.stop();
}

void Supervisor::on_stopped() {
  if (!is_ending_) end_process("the Lease was lost");
}

void Supervisor::on_dead(const std::string& why) {
  log_.error("the main loop is as good as dead", {{"error", why}});
  if (!elector_) end_process(why);
  parts_.fence->shut();
  is_ending_ = true;
  loop_.spawn(give_up());
}

io::Task<void> Supervisor::give_up() {
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the frame keeps it while it waits.
  const io::Loop::Timer limit =
      loop_.after(kGiveUpMax, [this] { end_process("the main loop is dead"); });
  co_await elector_->stop();
  end_process("the main loop is dead");
}

// Exits at once, without destructors: these would need the main loop, which has failed. All state
// that must survive is in the API server.
void Supervisor::end_process(std::string_view why) {
  log_.error("the process exits", {{"error", why}});
  std::_Exit(kFailed);
}

}  // namespace hangar::host
