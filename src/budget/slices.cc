#include "budget/slices.h"

#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/cpu_time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace hangar::budget {

namespace {

// What jobs of this thread have charged. The work of one may begin another, which pays for itself:
// a message of a guest process asks for a list.
thread_local Duration charged{};

Duration uncharged_time() {
  return io::thread_cpu_time() - charged;
}

// Whether the loop reports the time of the present activity.
bool is_paid_for(const io::Loop& loop) {
  const io::Loop::DoingPtr& doing = loop.activity();
  return doing && !doing->payer.is_host();
}

}  // namespace

Slices::Slices(io::Loop& loop, Rates* rates) : state_(std::make_shared<State>(loop, rates)) {}

Slices::~Slices() {
  HANGAR_ASSERT(state_->waiting.is_empty(), "a task would wait for ever");
}

Slices::Job Slices::begin(Tenant tenant) {
  return {state_, {.tenant = std::move(tenant), .name = "slices"}};
}

Slices::Job::Job(Job&& other) noexcept
    : state_(std::move(other.state_)),
      consumer_(std::move(other.consumer_)),
      has_begun_(other.has_begun_),
      works_since_(std::exchange(other.works_since_, std::nullopt)) {}

Slices::Job::~Job() {
  charge();
}

io::Task<Result<>> Slices::Job::turn(std::stop_token stop) {
  charge();
  HANGAR_CO_TRY(co_await wait(state_, consumer_, std::exchange(has_begun_, true), std::move(stop)));
  if (state_->rates != nullptr && !is_paid_for(state_->loop)) works_since_ = uncharged_time();
  co_return Result<>();
}

void Slices::Job::charge() {
  if (!works_since_) return;
  const Duration took = uncharged_time() - *std::exchange(works_since_, std::nullopt);
  if (took <= Duration::zero()) return;
  charged += took;
  state_->rates->charge(consumer_.tenant, static_cast<std::uint64_t>(took.count()),
                        io::Loop::now());
}

void Slices::Job::add(std::size_t bytes) {
  state_->used_bytes += bytes;
  state_->schedule();
}

bool Slices::Job::is_over() const {
  return state_->used_bytes >= kSliceBytes;
}

io::Task<Result<>> Slices::wait(std::shared_ptr<State> state, Consumer consumer, bool has_begun,
                                std::stop_token stop) {
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
  if (state->waiting.is_empty() && state->used_bytes < kSliceBytes) co_return Result<>();

  // A job that has begun ranks before the tenant's other jobs, so that few jobs hold collected
  // objects.
  const io::OneShot<bool> waiter(state->loop);
  const auto ticket =
      state->waiting.push(consumer, waiter, {.cost = kSliceBytes, .rank = has_begun ? 0U : 1U});
  if (!ticket) co_return std::unexpected(ticket.error());
  state->schedule();
  const std::stop_callback on_stop(stop, [&] {
    if (state->waiting.remove(consumer, *ticket)) waiter.set(false);
  });
  if (!co_await waiter.wait()) co_return fail(ErrorKind::Cancelled, "stopping");
  co_return Result<>();
}

void Slices::State::schedule() {
  if (std::exchange(is_scheduled, true)) return;
  loop.post([self = shared_from_this()] { self->on_round(); });
}

void Slices::State::on_round() {
  is_scheduled = false;
  used_bytes = 0;
  if (served) waiting.done(*std::exchange(served, std::nullopt));
  auto next = waiting.pop();
  if (!next) return;
  served = std::move(next->consumer);
  next->item.set(true);
  // The loop runs posted work in order, so the next round comes after the job that was
  // just resumed.
  schedule();
}

}  // namespace hangar::budget
