#include "guest/live_guests.h"

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/local_guest.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/output_lines.h"
#include "abi/kube_runtime/pending_calls.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "guest/carried_snapshots.h"
#include "guest/memory_grant.h"
#include "guest_protocol/messages.h"
#include "io/descriptor.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/snapshot/handed_module.h"
#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::guest {

namespace {

namespace kube_runtime = abi::kube_runtime;
namespace protocol = guest_protocol;

static_assert(protocol::kRequestBytesMax >= limits::kGuestRequestBytesMax);
static_assert(protocol::kTurnCallsMax >= limits::kGuestRequestsMax);
static_assert(protocol::kTurnCallBytesMax >= 2 * limits::kGuestRequestsWaitingBytesMax);
static_assert(protocol::kTurnOutputBytesMax >= limits::kOperatorOutputBytesMax);
static_assert(protocol::kLineBytesMax >= limits::kOperatorLineBytesMax);
static_assert(protocol::kTurnAnswersMax >= limits::kGuestInboundMax);
static_assert(protocol::kTurnDelaysMax >= limits::kGuestDelaysMax);
static_assert(protocol::kLayerPiecesMax == wasm::PageLayer::kPiecesMax);
static_assert(protocol::kLayerPageBytes == wasm::kPageBytes);

kube_runtime::GuestOptions options_of(const protocol::Bounds& bounds) {
  return {.memory_bytes_max = bounds.memory_bytes_max,
          .cpu_time_max = std::chrono::nanoseconds(bounds.cpu_nanoseconds_max),
          .output_bytes_max = bounds.output_bytes_max};
}

std::map<std::string, std::string> files_of(std::vector<protocol::File> files) {
  std::map<std::string, std::string> by_path;
  for (protocol::File& file : files)
    by_path.emplace(std::move(file.path), std::move(file.content));
  return by_path;
}

budget::Consumer consumer_of(std::string tenant, std::string name) {
  return {.tenant = budget::Tenant::of_namespace(std::move(tenant)), .name = std::move(name)};
}

}  // namespace

struct LiveGuests::Live {
  Live(LiveGuests& guests, std::uint64_t number_in, budget::Consumer consumer_in,
       kube_runtime::GuestOptions options_in)
      : number(number_in),
        consumer(std::move(consumer_in)),
        options(std::move(options_in)),
        memory(0, options.memory_bytes_max + wasm::kInstanceBytes,
               [&guests, this](std::uint64_t bytes) {
                 // A guest has a run while it asks for memory, and the run keeps it alive.
                 guests.loop_.post([&guests, asking = run, bytes] {
                   guests.send_(protocol::AskMemory{.run = asking, .bytes = bytes});
                 });
               }),
        home(guests.runtime_, snapshots,
             [this](std::uint64_t bytes) { return memory.reserve(bytes); }) {}

  const std::uint64_t number;
  const budget::Consumer consumer;
  Result<std::shared_ptr<const wasm::SleepableModule>> module = nullptr;
  kube_runtime::GuestOptions options;
  std::uint32_t snapshot_bytes = 0;  // Size of the snapshot to fetch; zero: it is a new guest.
  kube_runtime::LocalGuest::Beside beside;  // What it has besides the snapshot.
  MemoryGrant memory;
  CarriedSnapshots snapshots;
  const kube_runtime::LocalGuests home;
  std::unique_ptr<kube_runtime::LocalGuest> guest;  // Null: before its first turn here.
  std::vector<kube_runtime::Wakeup> wakeups;

  std::uint64_t run = 0;  // The run in progress; zero: none.
  std::stop_source stop;
  std::optional<io::OneShot<std::string>> question;  // Not answered yet.
};

LiveGuests::LiveGuests(const kube_runtime::Runtime& runtime,
                       std::function<void(const protocol::FromGuest&)> send)
    : runtime_(runtime), loop_(runtime.engine().loop()), send_(std::move(send)) {}

LiveGuests::~LiveGuests() = default;

void LiveGuests::load(const protocol::LoadSleepable& order, io::Descriptor code,
                      io::Descriptor image) {
  wasm::HandedModule handed{.code = std::move(code), .image = std::move(image)};
  wasm::ModuleDescription& description = handed.description;
  description.digest = wasm::Digest::of_bytes(order.digest);
  if (!order.obstacle.empty()) description.obstacle = order.obstacle;
  description.global_count = order.global_count;
  description.has_start = order.has_start;
  description.image_number = order.image_number;
  for (const protocol::Pages& pages : order.image_pages)
    description.image_pages.push_back({.first = pages.first, .count = pages.count});
  modules_.insert_or_assign(order.module, wasm::receive(runtime_.engine(), std::move(handed)));
}

bool LiveGuests::add(std::shared_ptr<Live> live) {
  const std::uint64_t number = live->number;
  return guests_.emplace(number, std::move(live)).second;
}

bool LiveGuests::obey(protocol::MakeGuest order) {
  kube_runtime::GuestOptions options = options_of(order.bounds);
  options.args = std::move(order.arguments);
  options.environment = std::move(order.environment);
  options.files = files_of(std::move(order.files));
  options.in_pod = {.environment = std::move(order.pod_environment),
                    .files = files_of(std::move(order.pod_files))};
  const auto live = std::make_shared<Live>(
      *this, order.guest, consumer_of(std::move(order.tenant), std::move(order.consumer)),
      std::move(options));
  const auto module = modules_.find(order.module);
  if (module == modules_.end()) return false;
  live->module = module->second;
  return add(live);
}

bool LiveGuests::obey(protocol::ResumeGuest order, io::Descriptor layer) {
  const auto live = std::make_shared<Live>(
      *this, order.guest, consumer_of(std::move(order.tenant), std::move(order.consumer)),
      options_of(order.bounds));
  const auto module = modules_.find(order.module);
  if (module == modules_.end() || order.snapshot_bytes == 0) return false;
  live->module = module->second;
  live->snapshot_bytes = order.snapshot_bytes;
  if (order.slept_nanoseconds >= 0) {
    live->beside.since = io::Loop::now() - std::chrono::nanoseconds(order.slept_nanoseconds);
  }
  if (layer.is_open()) {
    wasm::PageRanges pieces;
    for (const protocol::Pages& piece : order.layer)
      pieces.push_back({.first = piece.first, .count = piece.count});
    live->beside.layer = std::make_unique<CarriedLayer>(pieces, std::move(layer));
  }
  return add(live);
}

bool LiveGuests::obey(protocol::HandWakeup order) {
  const auto found = guests_.find(order.guest);
  if (found == guests_.end()) return false;
  found->second->wakeups.push_back({.id = order.id,
                                    .finished = order.finished,
                                    .is_null = order.is_null,
                                    .is_event = order.is_event,
                                    .bytes = std::move(order.bytes)});
  return true;
}

bool LiveGuests::obey(const protocol::BeginTurn& order) {
  const auto found = guests_.find(order.guest);
  if (found == guests_.end() || found->second->run != 0) return false;
  found->second->run = order.run;
  found->second->stop = {};
  runs_.emplace(order.run, found->second);
  loop_.spawn(take_turn(found->second, order));
  return true;
}

bool LiveGuests::obey(const protocol::SleepGuest& order) {
  const auto found = guests_.find(order.guest);
  if (found == guests_.end() || found->second->run != 0 || !found->second->guest) return false;
  found->second->run = order.run;
  found->second->snapshots.set_layer_pages_max(order.layer_pages_max);
  runs_.emplace(order.run, found->second);
  loop_.spawn(put_to_sleep(found->second, order.run));
  return true;
}

bool LiveGuests::obey(const protocol::DropGuest& order) {
  const auto found = guests_.find(order.guest);
  if (found == guests_.end()) return true;  // The guest has exited.
  if (found->second->run != 0) return false;
  guests_.erase(found);
  return true;
}

bool LiveGuests::obey(protocol::Piece answer) {
  const std::shared_ptr<Live> live = with_run(answer.run);
  if (!live || !live->question) return false;
  std::exchange(live->question, std::nullopt)->set(std::move(answer.bytes));
  return true;
}

bool LiveGuests::obey(protocol::Kept answer) {
  const std::shared_ptr<Live> live = with_run(answer.run);
  if (!live || !live->question) return false;
  std::exchange(live->question, std::nullopt)->set(std::move(answer.refusal));
  return true;
}

void LiveGuests::answer(const protocol::MemoryAnswer& answer) {
  if (const std::shared_ptr<Live> live = with_run(answer.run)) live->memory.answer(answer.refusal);
}

void LiveGuests::cancel(std::uint64_t run) {
  if (const std::shared_ptr<Live> live = with_run(run)) live->stop.request_stop();
}

std::shared_ptr<LiveGuests::Live> LiveGuests::with_run(std::uint64_t run) const {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second;
}

io::Task<void> LiveGuests::take_turn(std::shared_ptr<Live> live, protocol::BeginTurn order) {
  live->memory.grant(order.memory_bytes);
  kube_runtime::TurnOutcome outcome = co_await turn_of(*live, order);
  if (!outcome.ended || outcome.exit_code) guests_.erase(live->number);
  runs_.erase(order.run);
  report(*live, std::move(outcome));
  live->run = 0;
}

io::Task<kube_runtime::TurnOutcome> LiveGuests::turn_of(Live& live,
                                                        const protocol::BeginTurn& order) {
  const bool is_new = !live.guest && live.snapshot_bytes == 0;
  if (Result<> brought = co_await bring_in(live); !brought) {
    co_return kube_runtime::TurnOutcome{.ended = std::move(brought)};
  }
  if (is_new) co_return co_await live.guest->start(live.stop.get_token(), live.consumer);
  // The host has given them the same ids.
  for (const std::uint64_t id : order.forgotten)
    live.guest->forget(id);
  for (std::uint32_t count = 0; count < order.inbound_count; ++count)
    std::ignore = live.guest->pending().add_inbound();
  co_return co_await live.guest->wake(std::exchange(live.wakeups, {}), live.stop.get_token(),
                                      live.consumer);
}

io::Task<Result<>> LiveGuests::bring_in(Live& live) {
  if (live.guest) co_return Result<>();
  if (!live.module) co_return std::unexpected(live.module.error());
  if (live.snapshot_bytes == 0) {
    live.guest = std::make_unique<kube_runtime::LocalGuest>(live.home, *live.module,
                                                            std::move(live.options));
    co_return Result<>();
  }
  const std::string bytes = co_await fetch(live, live.snapshot_bytes);
  live.guest = HANGAR_CO_TRY(kube_runtime::LocalGuest::unpack(live.home, *live.module, live.options,
                                                              bytes, std::move(live.beside)));
  co_return Result<>();
}

io::Task<std::string> LiveGuests::fetch(Live& live, std::uint32_t size_bytes) {
  std::string bytes;
  bytes.reserve(size_bytes);
  while (bytes.size() < size_bytes) {
    const io::OneShot<std::string> answer(loop_);
    live.question = answer;
    send_(protocol::AskPiece{.run = live.run});
    bytes += co_await answer.wait();
  }
  co_return bytes;
}

io::Task<void> LiveGuests::put_to_sleep(std::shared_ptr<Live> live, std::uint64_t run) {
  const Result<Duration> slept = co_await hand_over(*live);
  runs_.erase(run);
  live->run = 0;
  protocol::EndSleep end{.run = run};
  if (slept) {
    end.memory_bytes = live->guest->memory_bytes_needed();
    end.is_on_layer = live->guest->layer() != nullptr;
    end.cpu_nanoseconds = static_cast<std::uint64_t>(slept->count());
  } else {
    end.is_error = true;
    end.reason = protocol::cut_reason(slept.error().message());
  }
  send_(end);
}

io::Task<Result<Duration>> LiveGuests::hand_over(Live& live) {
  const Duration cpu_time = HANGAR_CO_TRY(co_await live.guest->sleep());
  const std::string bytes = HANGAR_CO_TRY(live.guest->pack());
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    co_return fail(ErrorKind::LimitExceeded, "it would take more than 4 GiB on disk");
  }
  if (const wasm::PageLayer* const layer = live.guest->layer()) {
    // This process makes no others.
    HANGAR_CO_TRY(co_await hand_over(live, static_cast<const CarriedLayer&>(*layer)));
  }
  for (std::size_t at = 0; at < bytes.size(); at += protocol::kPieceBytes) {
    HANGAR_CO_TRY(co_await ask_to_keep(
        live, protocol::KeepPiece{.run = live.run,
                                  .total_bytes = static_cast<std::uint32_t>(bytes.size()),
                                  .bytes = bytes.substr(at, protocol::kPieceBytes)}));
  }
  co_return cpu_time;
}

io::Task<Result<>> LiveGuests::hand_over(Live& live, const CarriedLayer& layer) {
  if (layer.is_new()) {
    // A sleep before this one may have failed while the host had more room.
    if (!live.snapshots.has_room_for(layer)) {
      co_return fail(ErrorKind::Unavailable, "the host has no room for its layer");
    }
    protocol::MakeLayer order{.run = live.run};
    for (const wasm::PageRange& piece : layer.pages())
      order.pieces.push_back({.first = piece.first, .count = piece.count});
    HANGAR_CO_TRY(co_await ask_to_keep(live, std::move(order)));
  }
  protocol::KeepPages message{.run = live.run};
  std::string_view rest = layer.written_bytes();
  for (wasm::PageRange range : layer.written()) {
    while (range.count > 0) {
      const auto room = static_cast<std::uint32_t>(
          (protocol::kLayerBytesMax - message.bytes.size()) / protocol::kLayerPageBytes);
      const std::uint32_t count = std::min(range.count, room);
      message.pages.push_back({.first = range.first, .count = count});
      message.bytes += rest.substr(0, count * protocol::kLayerPageBytes);
      rest.remove_prefix(count * protocol::kLayerPageBytes);
      range = {.first = range.first + count, .count = range.count - count};
      if (count < room) continue;
      HANGAR_CO_TRY(
          co_await ask_to_keep(live, std::exchange(message, protocol::KeepPages{.run = live.run})));
    }
  }
  if (!message.pages.empty()) HANGAR_CO_TRY(co_await ask_to_keep(live, std::move(message)));
  co_return Result<>();
}

io::Task<Result<>> LiveGuests::ask_to_keep(Live& live, protocol::FromGuest question) {
  const io::OneShot<std::string> answer(loop_);
  live.question = answer;
  send_(question);
  std::string refusal = co_await answer.wait();
  if (!refusal.empty()) co_return fail(ErrorKind::Unavailable, std::move(refusal));
  co_return Result<>();
}

void LiveGuests::report(const Live& live, kube_runtime::TurnOutcome outcome) {
  protocol::EndTurn end{.run = live.run};
  if (!outcome.ended) {
    end.is_error = true;
    end.kind = outcome.ended.error().kind();
    end.reason = protocol::cut_reason(outcome.ended.error().message());
  }
  end.has_exited = outcome.exit_code.has_value();
  end.exit_code = outcome.exit_code.value_or(0);
  for (const kube_runtime::HttpCall& call : outcome.calls) {
    send_(protocol::TurnCall{.run = live.run,
                             .id = call.id,
                             .is_stream = call.is_stream,
                             .request = kube_runtime::to_bytes(call.request)});
  }
  for (const kube_runtime::InboundAnswer& answer : outcome.answers) {
    send_(protocol::TurnAnswer{
        .run = live.run, .id = answer.id, .answer = kube_runtime::to_bytes(answer)});
  }
  for (const kube_runtime::Delay& delay : outcome.delays) {
    end.delays.push_back(
        {.id = delay.id, .milliseconds = static_cast<std::uint64_t>(delay.duration.count())});
  }
  end.cancelled = std::move(outcome.cancelled);
  if (live.guest) {
    const kube_runtime::PendingCalls& pending = live.guest->pending();
    const std::optional<std::uint64_t> metrics = pending.find(kube_runtime::Listener::Metrics);
    end.serves_metrics = metrics.has_value();
    end.metrics_id = metrics.value_or(0);
    const std::optional<std::uint64_t> webhooks = pending.find(kube_runtime::Listener::Webhooks);
    end.serves_webhooks = webhooks.has_value();
    end.webhooks_id = webhooks.value_or(0);
    end.next_id = pending.next_id();
    end.resident_bytes = live.guest->resident_bytes();
  }
  end.output_dropped_bytes = outcome.output_dropped_bytes;
  for (kube_runtime::OutputLine& line : outcome.output) {
    if (end.output.size() >= protocol::kTurnLinesMax) {
      end.output_dropped_bytes += line.text.size() + 1;
      continue;
    }
    end.output.push_back({.is_stderr = line.stream == kube_runtime::OutputStream::Stderr,
                          .text = std::move(line.text)});
  }
  end.resume_nanoseconds = static_cast<std::uint64_t>(outcome.resume_time.count());
  end.resume_cpu_nanoseconds = static_cast<std::uint64_t>(outcome.resume_cpu_time.count());
  end.cpu_nanoseconds = static_cast<std::uint64_t>(outcome.cpu_time.count());
  send_(end);
}

}  // namespace hangar::guest
