#include "reconcile/event_recorder.h"

#include "base/log.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "reconcile/event_log.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::reconcile {

namespace {

// A part of limits::kShutdownMax: Events are the least important work of a stopping process.
constexpr std::chrono::seconds kFlushMax{2};

// The pause between two attempts while the server does not answer; by then the client has retried
// several times.
constexpr std::chrono::seconds kRetryPause{5};

// Concurrent writes. Written one after the other, the last Event would be a minute late when many
// objects change at once and the server is slow.
constexpr std::size_t kWritesMax = 4;

}  // namespace

struct EventRecorder::State : std::enable_shared_from_this<State> {
  State(io::Loop& loop_in, const kube::Client& client_in, Log log_in, const std::string& component,
        std::string instance)
      : loop(loop_in),
        client(client_in),
        log(std::move(log_in)),
        events(component, instance.empty() ? component : instance),
        idle(loop) {}

  // Runs as long as an Event waits to be written.
  static io::Task<void> write_all(std::shared_ptr<State> self) {
    const std::stop_token stop = self->stop.get_token();
    while (!stop.stop_requested()) {
      std::optional<EventLog::Write> write = self->events.next();
      if (!write) break;
      const std::uint64_t id = write->id;
      const Result<> written = co_await self->write_one(*std::move(write), stop);
      if (self->events.on_written(id, written)) {
        if (!written && written.error().kind() != ErrorKind::Cancelled) {
          self->log.debug("event was not written", {{"error", written.error().message()}});
        }
        continue;
      }
      const Result<> elapsed = co_await self->loop.sleep(kRetryPause, stop);
      (void)elapsed;  // Not elapsed: stopping, which the loop's condition sees.
    }
    --self->writer_count;
    self->idle.notify_all();
  }

  io::Task<Result<>> write_one(EventLog::Write write, std::stop_token stop_in) {
    if (write.is_new) {
      HANGAR_CO_TRY(
          co_await client.create(kube::event_resource(), std::move(write.document), {}, stop_in));
    } else {
      HANGAR_CO_TRY(co_await client.patch(kube::event_resource(), std::move(write.key),
                                          kube::PatchType::Merge, std::move(write.document), {},
                                          stop_in));
    }
    co_return Result<>();
  }

  static io::Task<void> flush(std::shared_ptr<State> self) {
    self->is_closed = true;
    const io::Loop::Timer limit =
        self->loop.after(kFlushMax, [stop = self->stop]() mutable { stop.request_stop(); });
    while (self->writer_count > 0) {
      const Result<> notified = co_await self->idle.wait(std::stop_token());
      (void)notified;  // Without a stop it always is.
    }
  }

  io::Loop& loop;
  const kube::Client& client;
  const Log log;
  EventLog events;
  io::Event idle;
  std::stop_source stop;
  std::size_t writer_count = 0;
  bool is_closed = false;
};

EventRecorder::EventRecorder(io::Loop& loop, const kube::Client& client, Log log,
                             std::string component, std::string instance)
    : state_(
          std::make_shared<State>(loop, client, std::move(log), component, std::move(instance))) {}

EventRecorder::~EventRecorder() {
  state_->is_closed = true;
  state_->stop.request_stop();
}

void EventRecorder::record(const json::Value& object, EventText text) {
  if (state_->is_closed) return;
  const bool is_said = state_->events.say(reference_to(object), std::move(text), io::Loop::now(),
                                          io::Loop::wall_now());
  if (!is_said || state_->events.waiting_count() == 0 || state_->writer_count >= kWritesMax) return;
  ++state_->writer_count;
  // Posted: the caller does not wait for the request to be built.
  state_->loop.post([state = state_] { state->loop.spawn(State::write_all(state)); });
}

io::Task<void> EventRecorder::stop() {
  return State::flush(state_);
}

}  // namespace hangar::reconcile
