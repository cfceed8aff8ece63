#include "kube/watch/watcher.h"

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/part.h"
#include "io/task.h"
#include "kube/client.h"
#include "kube/internal/documents.h"
#include "kube/internal/percent.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "kube/watch/event_reading.h"
#include "kube/watch/watch_event.h"
#include "kube/watch/watch_machine.h"

#include <array>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar::kube {

namespace {

// How often an open stream is checked. A stream that has been open for this long works.
constexpr std::chrono::seconds kStreamCare{5};

void add_selector(std::string& query, std::string_view name, std::string_view selector) {
  if (selector.empty()) return;
  query.append("&").append(name).append("=").append(internal::percent_encode(selector));
}

}  // namespace

Watcher::Watcher(io::Loop& loop, const Client& client, Scope scope, ServerTraits& traits,
                 Sink& sink)
    : loop_(loop),
      client_(client),
      scope_(std::move(scope)),
      sink_(sink),
      machine_(traits, random_number(),
               WatchMachine::Listing{
                   .on_listed = [&sink](ObjectPtr object) { sink.on_listed(std::move(object)); },
                   .on_unlisted = [&sink](const ObjectKey& key) { sink.on_unlisted(key); }}) {}

io::Task<void> Watcher::run(std::stop_token stop) {
  WatchMachine::Next next = machine_.start(io::Loop::now());
  while (!stop.stop_requested()) {
    Result<WatchMachine::Next> done = co_await io::contained(perform(std::move(next), stop));
    next = done ? *std::move(done) : machine_.on_broken(std::move(done).error(), io::Loop::now());
  }
}

io::Task<WatchMachine::Next> Watcher::perform(WatchMachine::Next next, std::stop_token stop) {
  if (std::holds_alternative<WatchMachine::List>(next)) return list(std::move(stop));
  if (auto* stream = std::get_if<WatchMachine::Watch>(&next)) {
    return watch(std::move(*stream), std::move(stop));
  }
  return wait(std::get<WatchMachine::Wait>(std::move(next)), std::move(stop));
}

void Watcher::kick() {
  machine_.expect_resource(io::Loop::now());
  waiting_.request_stop();
}

io::Task<WatchMachine::Next> Watcher::list(std::stop_token stop) {
  ListOptions options{.namespace_ = scope_.namespace_,
                      .label_selector = scope_.label_selector,
                      .field_selector = scope_.field_selector,
                      .detail = scope_.detail};
  const io::Part part(loop_, "list");
  options.holds = [this, doing = loop_.activity()](ObjectPtr object) -> Result<ObjectPtr> {
    const io::Resumed resumed(loop_, doing);
    sink_.on_listed(std::move(object));
    return nullptr;  // The sink has it.
  };
  options.on_begin = [this] { sink_.on_list_begin(); };
  Result<List> listed = co_await client_.list(scope_.resource, std::move(options), stop);
  if (!listed) co_return machine_.on_list_failed(std::move(listed).error(), io::Loop::now());
  WatchMachine::Next next =
      machine_.on_listed(std::move(listed->resource_version), io::Loop::now());
  const bool is_whole = std::holds_alternative<WatchMachine::Watch>(next);
  if (is_whole && !stop.stop_requested()) {
    sink_.on_health(std::nullopt);
    sink_.on_replace(machine_.resource_version());
  }
  co_return next;
}

io::Task<WatchMachine::Next> Watcher::watch(WatchMachine::Watch watch, std::stop_token stop) {
  if (machine_.resource_version().empty()) sink_.on_list_begin();
  std::string query = std::move(watch.query);
  add_selector(query, "labelSelector", scope_.label_selector);
  add_selector(query, "fieldSelector", scope_.field_selector);

  const io::Part part(loop_, "events");
  std::stop_source stream;
  const std::stop_callback on_stop(stop, [&stream] { stream.request_stop(); });
  const io::Loop::Timer lifetime =
      loop_.after(watch.lifetime_max, [stream]() mutable { stream.request_stop(); });
  look_after_stream(stream);
  EventReading reading(loop_, client_.readers(), internal::reader_of({}, scope_.namespace_),
                       {.on_event =
                            [this, stream](Result<WatchEvent> event) {
                              if (stream.stop_requested()) {
                                return Result<>(fail(ErrorKind::Cancelled, "stopping"));
                              }
                              return take_event(std::move(event));
                            },
                        .on_late_failure = [stream]() mutable { stream.request_stop(); }});
  Result<> ended = co_await client_.watch(
      scope_.resource, scope_.namespace_, std::move(query),
      [this, &reading, doing = loop_.activity()](std::string_view line) {
        const io::Resumed resumed(loop_, doing);
        return reading.take(line);
      },
      stream.get_token(), scope_.detail);
  care_.cancel();
  const Result<> read = co_await reading.finish();
  if (!read && read.error().kind() != ErrorKind::Cancelled) ended = read;
  if (ended || ended.error().kind() == ErrorKind::Cancelled) {
    co_return machine_.on_ended(std::nullopt, io::Loop::now());
  }
  co_return machine_.on_ended(ended.error(), io::Loop::now());
}

io::Task<WatchMachine::Next> Watcher::wait(WatchMachine::Wait wait, std::stop_token stop) {
  if (wait.cause && !stop.stop_requested()) sink_.on_health(std::move(wait.cause));
  if (wait.is_gone && !stop.stop_requested()) sink_.on_gone();

  waiting_ = std::stop_source();
  const std::stop_callback on_stop(stop, [this] { waiting_.request_stop(); });
  const Result<> elapsed = co_await loop_.sleep(wait.delay, waiting_.get_token());
  (void)elapsed;  // If it has not elapsed, the wait was kicked, or run() sees that it must stop.
  waiting_ = std::stop_source(std::nostopstate);
  co_return machine_.on_due(io::Loop::now());
}

Result<> Watcher::take_event(Result<WatchEvent> event) {
  auto effect = machine_.on_event(std::move(event), io::Loop::now());
  if (std::holds_alternative<WatchMachine::Close>(effect)) {
    return fail(ErrorKind::Cancelled, "watch is closed");
  }
  sink_.on_health(std::nullopt);
  if (auto* change = std::get_if<Change>(&effect)) {
    sink_.on_change(std::move(*change));
  } else if (std::holds_alternative<WatchMachine::Replace>(effect)) {
    sink_.on_replace(machine_.resource_version());
  } else if (!machine_.resource_version().empty()) {
    sink_.on_bookmark(machine_.resource_version());
  }
  return {};
}

void Watcher::look_after_stream(std::stop_source stream) {
  care_ = loop_.after(kStreamCare, [this, stream]() mutable {
    if (machine_.is_stalled(io::Loop::now())) {
      stream.request_stop();
      return;
    }
    sink_.on_health(std::nullopt);
    look_after_stream(std::move(stream));
  });
}

}  // namespace hangar::kube
