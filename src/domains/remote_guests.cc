#include "domains/remote_guests.h"

#include "abi/kube_runtime/carried_guest.h"
#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/known_calls.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/output_lines.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/rates.h"
#include "budget/reservation_queue.h"
#include "budget/stepped_reservation.h"
#include "domains/guest_process.h"
#include "domains/guest_processes.h"
#include "domains/process_table.h"
#include "domains/said.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/messages.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/engine.h"
#include "wasm/snapshot/layer_file.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/snapshot_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::domains {

namespace {

namespace kube_runtime = abi::kube_runtime;
namespace protocol = guest_protocol;

using kube_runtime::TurnOutcome;
using kube_runtime::Wakeup;
using Work = protocol::Conversation::Work;

// A turn is bounded by its processor time, which the process counts. The host sees only the elapsed
// time: it is longer when the processors are busy.
constexpr int kTurnTimeFactor = 16;
constexpr std::chrono::seconds kTurnTimeMin{30};

// Compressing and handing over a guest's memory, on processors that may be busy.
constexpr std::chrono::seconds kSleepTimeMin{60};
constexpr std::uint64_t kSleepBytesPerSecond = 10 * limits::kMiB;

Duration sleep_time_max(std::uint64_t bytes) {
  return std::max(kSleepTimeMin,
                  std::chrono::seconds(static_cast<std::int64_t>(bytes / kSleepBytesPerSecond)));
}

// What a process has said in a turn that has not ended counts as memory of its tenant beyond the
// first of these, which one large request takes; in steps of the second. Otherwise processes that
// do not end their turns would fill the host's memory with requests.
constexpr std::uint64_t kSaidFreeBytes = protocol::kRequestBytesMax;
constexpr std::uint64_t kSaidCountedStep = limits::kMiB;

// The bytes of a sleeping guest besides its memory, if they cannot be compressed: its files and
// variables, and requests that have not started.
constexpr std::uint64_t kSleepOverheadBytes =
    protocol::kStdinBytesMax + protocol::kTurnCallBytesMax;

std::vector<protocol::File> files_of(std::map<std::string, std::string> by_path) {
  std::vector<protocol::File> files;
  for (auto& [path, content] : by_path)
    files.push_back({.path = path, .content = std::move(content)});
  return files;
}

// Checks the bounds of MakeGuest.
Result<> check_options(const kube_runtime::GuestOptions& options) {
  std::size_t all = 0;
  for (const auto* const texts :
       {&options.args, &options.environment, &options.in_pod.environment}) {
    std::size_t bytes = 0;
    for (const std::string& text : *texts)
      bytes += text.size();
    if (texts->size() > protocol::kTextsMax || bytes > protocol::kTextBytesMax) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("a guest gets at most {} arguments, and as many variables, of {} "
                              "bytes together",
                              protocol::kTextsMax, protocol::kTextBytesMax));
    }
    all += bytes;
  }
  for (const auto* const files : {&options.files, &options.in_pod.files}) {
    bool fits = files->size() <= protocol::kFilesMax;
    for (const auto& [path, content] : *files) {
      fits = fits && path.size() <= protocol::kPathBytesMax &&
             content.size() <= protocol::kFileBytesMax;
      all += path.size() + content.size();
    }
    if (!fits || all > protocol::kStdinBytesMax) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("a guest gets at most {} files, of {} bytes each",
                              protocol::kFilesMax, protocol::kFileBytesMax));
    }
  }
  return {};
}

Duration duration_of(std::uint64_t nanoseconds, Duration most) {
  const auto bound = static_cast<std::uint64_t>(most.count());
  return Duration(static_cast<Duration::rep>(std::min(nanoseconds, bound)));
}

// The consumer that reads and writes the snapshots of a tenant's guests.
budget::Consumer snapshots_of(const budget::Tenant& tenant) {
  return {.tenant = tenant, .name = "sleep"};
}

}  // namespace

class RemoteGuests::RemoteGuest final : public kube_runtime::Guest, private GuestProcesses::Lodger {
 public:
  RemoteGuest(RemoteGuests& home, std::shared_ptr<const wasm::SleepableModule> module,
              kube_runtime::GuestOptions options, Events events)
      : home_(home),
        module_(std::move(module)),
        bounds_({.memory_bytes_max = options.memory_bytes_max,
                 .cpu_nanoseconds_max = options.cpu_time_max.count(),
                 .output_bytes_max = std::min<std::uint64_t>(options.output_bytes_max,
                                                             protocol::kTurnOutputBytesMax)}),
        stay_(options.may_sleep && module_->obstacle() == nullptr ? ProcessTable::Stay::Passes
                                                                  : ProcessTable::Stay::Remains),
        alone_(options.alone),
        events_(std::move(events)),
        place_(std::make_unique<kube_runtime::GuestOptions>(std::move(options))) {}
  // One that slept in the host before this one. Errors as Guests::take_over.
  [[nodiscard]] static Result<std::unique_ptr<kube_runtime::Guest>> continued(
      RemoteGuests& home, std::shared_ptr<const wasm::SleepableModule> module,
      kube_runtime::GuestOptions options, Events events, const budget::Tenant& tenant,
      kube_runtime::CarriedGuest carried);
  RemoteGuest(const RemoteGuest&) = delete;
  RemoteGuest& operator=(const RemoteGuest&) = delete;
  ~RemoteGuest() override {
    HANGAR_ASSERT(run_ == nullptr, "a turn ends before its guest does");
    move_out();
  }

  [[nodiscard]] io::Task<TurnOutcome> start(std::stop_token stop,
                                            budget::Consumer consumer) override {
    HANGAR_ASSERT(std::holds_alternative<New>(place_) && std::get<New>(place_) != nullptr,
                  "a guest is started once");
    const New options = std::move(std::get<New>(place_));
    Result<> moved = check_options(*options);
    if (moved) moved = co_await move_in(consumer, stop);
    if (!moved) co_return gone(std::move(moved));
    const Lodging& lodging = std::get<Lodging>(place_);
    channel().tell(protocol::MakeGuest{.guest = lodging.guest,
                                       .module = lodging.module,
                                       .tenant = cut_name(consumer.tenant.namespace_name()),
                                       .consumer = cut_name(consumer.name),
                                       .bounds = bounds_,
                                       .arguments = std::move(options->args),
                                       .environment = std::move(options->environment),
                                       .files = files_of(std::move(options->files)),
                                       .pod_environment = std::move(options->in_pod.environment),
                                       .pod_files = files_of(std::move(options->in_pod.files))});
    co_return co_await turn({}, 0, std::move(stop), std::move(consumer));
  }

  [[nodiscard]] io::Task<TurnOutcome> wake(std::vector<Wakeup> wakeups, std::stop_token stop,
                                           budget::Consumer consumer) override {
    HANGAR_ASSERT(!std::holds_alternative<New>(place_), "a guest is started before it is woken");
    if (std::holds_alternative<Gone>(place_)) {
      co_return TurnOutcome{.ended = fail(ErrorKind::InvalidInput, "the guest no longer exists")};
    }
    std::vector<Wakeup> deliverable;
    for (Wakeup& wakeup : wakeups) {
      if (!calls_.has(wakeup.id)) continue;
      if (wakeup.finished) calls_.finish(wakeup.id);
      deliverable.push_back(std::move(wakeup));
    }
    if (deliverable.empty()) {
      if (std::holds_alternative<Asleep>(place_)) memory_.reset();
      co_return TurnOutcome{};
    }
    for (const Wakeup& wakeup : deliverable) {
      if (wakeup.bytes.size() <= protocol::kWakeupBytesMax) continue;
      move_out();
      co_return gone(fail(ErrorKind::LimitExceeded,
                          fmt::format("an answer of {} bytes, the most is {}", wakeup.bytes.size(),
                                      protocol::kWakeupBytesMax)));
    }
    const auto* const asleep = std::get_if<Asleep>(&place_);
    if (asleep == nullptr) {
      co_return co_await turn(std::move(deliverable), 0, std::move(stop), std::move(consumer));
    }
    // Freed when the turn has ended: until then the process fetches it.
    const Extent extent = asleep->extent;
    const Duration slept = io::Loop::now() - asleep->since;
    TurnOutcome outcome;
    Result<std::vector<io::Descriptor>> layer = open_layer();
    Result<> moved = layer ? Result<>() : std::unexpected(layer.error());
    if (moved) moved = co_await move_in(consumer, stop);
    if (!moved) {
      outcome = gone(std::move(moved));
    } else {
      const Lodging& lodging = std::get<Lodging>(place_);
      channel().tell(
          protocol::ResumeGuest{.guest = lodging.guest,
                                .module = lodging.module,
                                .tenant = cut_name(consumer.tenant.namespace_name()),
                                .consumer = cut_name(consumer.name),
                                .bounds = bounds_,
                                .snapshot_bytes = extent.size_bytes,
                                .slept_nanoseconds = slept.count(),
                                .layer = layer_ ? layer_->pieces : std::vector<protocol::Pages>()},
          *std::move(layer));
      carried_ = extent;
      outcome = co_await turn(std::move(deliverable), extent.size_bytes, std::move(stop),
                              std::move(consumer));
      carried_.reset();
      outcome.was_asleep = true;
    }
    home_.snapshots_.free(extent);
    co_return outcome;
  }

  [[nodiscard]] io::Task<Result<Loaded>> load(std::stop_token /*stop*/,
                                              budget::Consumer /*consumer*/) override {
    co_return fail(ErrorKind::Unavailable, "guests of guest processes are not loaded ahead");
  }
  [[nodiscard]] bool listens(kube_runtime::Listener listener) const override {
    return calls_.listens(listener);
  }
  [[nodiscard]] Result<Inbound> hand_in(kube_runtime::Listener listener,
                                        const kube_runtime::HttpRequest& request) override {
    return calls_.hand_in(listener, request);
  }
  void forget(std::uint64_t id) override { calls_.forget(id); }

  [[nodiscard]] std::uint64_t memory_bytes_needed() const override {
    if (std::holds_alternative<New>(place_)) {
      return std::min(module_->memory_bytes_min(), bounds_.memory_bytes_max);
    }
    const auto* const asleep = std::get_if<Asleep>(&place_);
    return asleep == nullptr ? 0 : asleep->memory_bytes;
  }
  void provide(std::optional<budget::Reservation> memory) override { memory_ = std::move(memory); }
  [[nodiscard]] std::uint64_t reserved_bytes() const override {
    return memory_ ? memory_->bytes() : 0;
  }

  [[nodiscard]] io::Task<Result<Duration>> sleep(budget::Tenant tenant) override;

  [[nodiscard]] Result<kube_runtime::CarriedGuest> carry() override;

  [[nodiscard]] std::uint64_t resident_bytes() const override {
    const auto* const lodging = std::get_if<Lodging>(&place_);
    return lodging == nullptr ? 0 : lodging->resident_bytes;
  }
  [[nodiscard]] std::uint64_t disk_bytes() const override {
    const auto* const asleep = std::get_if<Asleep>(&place_);
    if (asleep == nullptr) return 0;
    return asleep->extent.size_bytes + (layer_ ? layer_->file->disk_bytes() : 0);
  }

 private:
  using Extent = wasm::SnapshotStore::Extent;
  using New = std::unique_ptr<kube_runtime::GuestOptions>;
  struct Lodging {
    GuestProcesses::LodgingId process = 0;
    std::uint64_t guest = 0;   // The number of the guest there,
    std::uint64_t module = 0;  // and of its module.
    std::uint64_t resident_bytes = 0;
  };
  struct Asleep {
    Extent extent;
    std::uint64_t memory_bytes = 0;
    Instant since;
  };
  struct Layer {
    std::vector<protocol::Pages> pieces;
    std::unique_ptr<wasm::LayerFile> file;
  };
  struct Gone {};

  // A turn or a sleep in progress. Its coroutine waits for `changed`.
  struct Run {
    Run(io::Loop& loop, budget::Consumer consumer_in)
        : consumer(std::move(consumer_in)), changed(loop) {}

    const budget::Consumer consumer;
    std::uint64_t number = 0;
    std::stop_token stop;
    io::Event changed;
    bool wants_piece = false;
    std::optional<protocol::KeepPiece> kept_piece;
    std::optional<protocol::MakeLayer> asked_layer;
    std::optional<protocol::KeepPages> kept_pages;
    std::optional<Layer> new_layer;  // In place of the one that the guest has, once it sleeps.
    bool is_refused = false;         // Not all of the guest is stored, whatever the process says.
    TurnOutcome outcome;             // The part that has arrived.
    std::uint64_t said_bytes = 0;    // Of its calls and answers.
    std::optional<budget::SteppedReservation> said;  // Of those bytes that count.
    std::optional<budget::Shortage> shortage;        // There was no memory for them: none is kept.
    bool has_ended = false;
    std::optional<protocol::EndSleep> end_of_sleep;
    std::optional<Error> lost;  // The process has exited.
  };

  [[nodiscard]] io::Loop& loop() const { return home_.processes_.engine().loop(); }
  [[nodiscard]] GuestProcess& channel() const {
    return home_.processes_.channel(std::get<Lodging>(place_).process);
  }

  // Enters a process of the consumer's domain. On an error its state is as before.
  [[nodiscard]] io::Task<Result<>> move_in(const budget::Consumer& consumer, std::stop_token stop);
  // Leaves its process, or frees its snapshot: the guest no longer exists.
  void move_out();
  // Destroys the guest; afterwards it holds no resources.
  void end();
  [[nodiscard]] TurnOutcome gone(Result<> ended);

  [[nodiscard]] io::Task<TurnOutcome> turn(std::vector<Wakeup> wakeups,
                                           std::uint32_t snapshot_bytes, std::stop_token stop,
                                           budget::Consumer consumer);
  // Serves the run until it ends or its process exits.
  [[nodiscard]] io::Task<void> serve(Run& run, const budget::Tenant& tenant);
  [[nodiscard]] io::Task<std::string> read_piece(const budget::Tenant& tenant);
  [[nodiscard]] io::Task<Result<>> write_piece(const protocol::KeepPiece& piece,
                                               const budget::Tenant& tenant);
  // A descriptor of the layer, if it has one.
  [[nodiscard]] Result<std::vector<io::Descriptor>> open_layer() const;
  [[nodiscard]] io::Task<Result<>> make_layer(Run& run, protocol::MakeLayer asked,
                                              const budget::Tenant& tenant);
  [[nodiscard]] io::Task<Result<>> write_pages(const Run& run, const protocol::KeepPages& kept,
                                               const budget::Tenant& tenant);
  void keep(Run& run, const Result<>& stored);

  // False when there is no memory for so much more of what the turn says.
  [[nodiscard]] bool count_said(std::uint64_t bytes);

  [[nodiscard]] Result<> hear(protocol::FromGuest message) override;
  void on_lost(const Error& why) override;
  void on_notice() override { events_.on_notice(); }
  [[nodiscard]] ProcessTable::Stay stay() const override { return stay_; }
  [[nodiscard]] Result<> hear_one(const protocol::AskMemory& message);
  [[nodiscard]] Result<> hear_one(const protocol::TurnCall& message);
  [[nodiscard]] Result<> hear_one(const protocol::TurnAnswer& message);
  [[nodiscard]] Result<> hear_one(protocol::EndTurn message);
  [[nodiscard]] Result<> hear_one(const protocol::AskPiece& message);
  [[nodiscard]] Result<> hear_one(protocol::KeepPiece message);
  [[nodiscard]] Result<> hear_one(const protocol::EndSleep& message);
  [[nodiscard]] Result<> hear_one(protocol::MakeLayer message);
  [[nodiscard]] Result<> hear_one(protocol::KeepPages message);
  template <class Message>
  [[nodiscard]] Result<> hear_one(const Message& /*message*/) {
    return fail(ErrorKind::GuestFault, "a message is not about the run that it names");
  }

  RemoteGuests& home_;
  const std::shared_ptr<const wasm::SleepableModule> module_;
  const protocol::Bounds bounds_;
  const ProcessTable::Stay stay_;
  const std::string alone_;
  const Events events_;
  kube_runtime::KnownCalls calls_;
  std::variant<New, Lodging, Asleep, Gone> place_;
  std::optional<budget::Reservation> memory_;  // Unset while it sleeps, and without accounts.
  Run* run_ = nullptr;                         // The run in progress; null: none.
  bool is_moving_ = false;
  std::optional<Error> lost_while_moving_;  // The process has exited meanwhile.
  // While it resumes: its old snapshot. While it falls asleep: the new one, from the first
  // piece on.
  std::optional<Extent> carried_;
  std::uint64_t piece_at_ = 0;  // Where its next piece begins.
  // While it sleeps: what it needs besides its snapshot. While it is awake: what it was resumed
  // from.
  std::optional<Layer> layer_;
  bool had_no_room_ = false;  // For a new layer, when it fell asleep last.
};

io::Task<Result<>> RemoteGuests::RemoteGuest::move_in(const budget::Consumer& consumer,
                                                      std::stop_token stop) {
  GuestProcesses& processes = home_.processes_;
  const GuestProcesses::LodgingId id =
      HANGAR_CO_TRY(co_await processes.take_in(consumer.tenant, alone_, *this, stop));
  is_moving_ = true;
  const Result<std::uint64_t> module = co_await processes.hand_over(id, module_, consumer);
  is_moving_ = false;
  if (const auto lost = std::exchange(lost_while_moving_, std::nullopt)) {
    co_return std::unexpected(*lost);
  }
  if (!module) {
    processes.leave(id, *this);
    co_return std::unexpected(module.error());
  }
  place_ = Lodging{.process = id, .guest = processes.next_guest(), .module = *module};
  co_return Result<>();
}

void RemoteGuests::RemoteGuest::move_out() {
  if (const auto* const asleep = std::get_if<Asleep>(&place_)) {
    home_.snapshots_.free(asleep->extent);
  } else if (const auto* const lodging = std::get_if<Lodging>(&place_)) {
    channel().tell(protocol::DropGuest{.guest = lodging->guest});
    home_.processes_.leave(lodging->process, *this);
  }
  place_ = Gone{};
  memory_.reset();
}

void RemoteGuests::RemoteGuest::end() {
  place_ = Gone{};
  memory_.reset();
  layer_.reset();
  calls_ = {};
}

TurnOutcome RemoteGuests::RemoteGuest::gone(Result<> ended) {
  end();
  return TurnOutcome{.ended = std::move(ended)};
}

io::Task<TurnOutcome> RemoteGuests::RemoteGuest::turn(std::vector<Wakeup> wakeups,
                                                      std::uint32_t snapshot_bytes,
                                                      std::stop_token stop,
                                                      budget::Consumer consumer) {
  const Lodging lodging = std::get<Lodging>(place_);
  for (Wakeup& wakeup : wakeups) {
    channel().tell(protocol::HandWakeup{.guest = lodging.guest,
                                        .id = wakeup.id,
                                        .finished = wakeup.finished,
                                        .is_null = wakeup.is_null,
                                        .is_event = wakeup.is_event,
                                        .bytes = std::move(wakeup.bytes)});
  }
  Run run(loop(), consumer);
  run.stop = stop;
  run.number = home_.processes_.begin_run(lodging.process, *this);
  const std::uint64_t memory_max = bounds_.memory_bytes_max + wasm::kInstanceBytes;
  const Duration cpu_max = std::chrono::nanoseconds(bounds_.cpu_nanoseconds_max);
  const Instant began = io::Loop::now();
  channel().begin(run.number,
                  protocol::BeginTurn{.run = run.number,
                                      .guest = lodging.guest,
                                      .forgotten = calls_.take_forgotten(),
                                      .inbound_count = calls_.take_inbound_count(),
                                      .memory_bytes = memory_ ? memory_->bytes() : memory_max},
                  {.work = Work::Turn,
                   .memory_bytes_max = memory_max,
                   .timeout = std::max<Duration>(kTurnTimeMin, kTurnTimeFactor * cpu_max),
                   .snapshot_bytes = snapshot_bytes});
  co_await serve(run, consumer.tenant);
  const Duration took = io::Loop::now() - began;
  const Duration most = took * home_.processes_.thread_count();
  TurnOutcome outcome = std::move(run.outcome);
  // A turn runs on one thread at a time, which bounds its processor time. A turn that failed with
  // its process reports none.
  outcome.cpu_time = run.lost ? took : std::min(outcome.cpu_time, most);
  outcome.resume_time = std::min(outcome.resume_time, took);
  outcome.resume_cpu_time = std::min(outcome.resume_cpu_time, outcome.resume_time);
  if (budget::Rates* const rates = home_.processes_.engine().rates()) {
    rates->charge(consumer.tenant,
                  static_cast<std::uint64_t>(std::min(outcome.cpu_time, took).count()),
                  io::Loop::now());
  }
  if (run.lost) {
    outcome = TurnOutcome{.ended = std::unexpected(*run.lost), .cpu_time = outcome.cpu_time};
  }
  if (!outcome.ended || outcome.exit_code) {
    if (!run.lost) move_out();
    end();
  }
  co_return outcome;
}

io::Task<Result<Duration>> RemoteGuests::RemoteGuest::sleep(budget::Tenant tenant) {
  const auto* const lodging = std::get_if<Lodging>(&place_);
  if (lodging == nullptr) {
    memory_.reset();
    co_return Duration::zero();
  }
  if (const std::string* const obstacle = module_->obstacle()) {
    co_return fail(ErrorKind::InvalidInput, "the module cannot sleep: it " + *obstacle);
  }
  const Instant began = io::Loop::now();
  Run run(loop(), snapshots_of(tenant));
  run.number = home_.processes_.begin_run(lodging->process, *this);
  const std::uint32_t layer_pages_max =
      std::exchange(had_no_room_, false) ? 0 : home_.snapshots_.layer_file_pages_max(tenant);
  channel().begin(
      run.number,
      protocol::SleepGuest{
          .run = run.number, .guest = lodging->guest, .layer_pages_max = layer_pages_max},
      {.work = Work::Sleep,
       .timeout = sleep_time_max(bounds_.memory_bytes_max),
       .snapshot_bytes = std::min<std::uint64_t>(
           bounds_.memory_bytes_max + bounds_.memory_bytes_max / 64 + kSleepOverheadBytes,
           std::numeric_limits<std::uint32_t>::max()),
       .layer_pages = layer_ ? layer_->file->pages() : 0,
       .layer_pages_max = layer_pages_max,
       .layer_end_max = static_cast<std::uint32_t>(
           std::min<std::uint64_t>(bounds_.memory_bytes_max / wasm::kPageBytes,
                                   std::numeric_limits<std::uint32_t>::max()))});
  co_await serve(run, tenant);
  const std::optional<Extent> extent = std::exchange(carried_, std::nullopt);
  const bool is_stored = extent && !run.is_refused;
  if (!run.lost && !run.end_of_sleep->is_error && !is_stored) {
    run.lost = Error(ErrorKind::GuestFault,
                     "its process reported it as suspended, but its snapshot was not stored");
    move_out();
  }
  if (run.lost || run.end_of_sleep->is_error) {
    if (extent) home_.snapshots_.free(*extent);
    // A turn reports a lost guest in its outcome; a guest lost while it falls asleep needs on_lost.
    if (run.lost) {
      end();
      events_.on_lost(*run.lost);
      co_return std::unexpected(*run.lost);
    }
    co_return fail(ErrorKind::Unavailable, one_line(std::move(run.end_of_sleep->reason)));
  }
  move_out();
  if (!run.end_of_sleep->is_on_layer) {
    layer_.reset();
  } else if (run.new_layer) {
    layer_ = std::move(run.new_layer);
  }
  const std::uint64_t memory_min = std::min(module_->memory_bytes_min(), bounds_.memory_bytes_max);
  place_ = Asleep{.extent = *extent,
                  .memory_bytes = std::clamp(run.end_of_sleep->memory_bytes, memory_min,
                                             bounds_.memory_bytes_max),
                  .since = io::Loop::now()};
  calls_.shrink();
  // On one thread, which bounds it.
  co_return duration_of(run.end_of_sleep->cpu_nanoseconds, io::Loop::now() - began);
}

Result<kube_runtime::CarriedGuest> RemoteGuests::RemoteGuest::carry() {
  const auto* const asleep = std::get_if<Asleep>(&place_);
  if (asleep == nullptr || run_ != nullptr) {
    return fail(ErrorKind::Unavailable, "it does not sleep");
  }
  kube_runtime::CarriedGuest carried{.snapshot_offset = asleep->extent.offset,
                                     .snapshot_bytes = asleep->extent.size_bytes,
                                     .memory_bytes = asleep->memory_bytes,
                                     .asleep_since = asleep->since,
                                     .layer = {},
                                     .calls = calls_.carry()};
  if (layer_) {
    kube_runtime::CarriedGuest::Layer& layer = carried.layer.emplace();
    for (const protocol::Pages& piece : layer_->pieces)
      layer.pieces.push_back({.first = piece.first, .count = piece.count});
    layer.file = std::move(*layer_->file).leave();
  }
  home_.snapshots_.leave(asleep->extent);
  end();
  return carried;
}

Result<std::unique_ptr<kube_runtime::Guest>> RemoteGuests::RemoteGuest::continued(
    RemoteGuests& home, std::shared_ptr<const wasm::SleepableModule> module,
    kube_runtime::GuestOptions options, Events events, const budget::Tenant& tenant,
    kube_runtime::CarriedGuest carried) {
  const Extent extent = HANGAR_TRY(home.snapshots_.adopt(
      {.offset = carried.snapshot_offset, .size_bytes = carried.snapshot_bytes}, tenant));
  std::optional<Layer> layer;
  if (carried.layer) {
    std::uint32_t pages = 0;
    layer.emplace();
    for (const kube_runtime::CarriedGuest::Layer::Piece& piece : carried.layer->pieces) {
      layer->pieces.push_back({.first = piece.first, .count = piece.count});
      pages += piece.count;
    }
    auto file = home.snapshots_.adopt_layer_file(std::move(carried.layer->file), pages, tenant);
    if (!file) {
      home.snapshots_.free(extent);
      return std::unexpected(std::move(file).error());
    }
    layer->file = *std::move(file);
  }
  auto guest =
      std::make_unique<RemoteGuest>(home, std::move(module), std::move(options), std::move(events));
  const std::uint64_t memory_min =
      std::min(guest->module_->memory_bytes_min(), guest->bounds_.memory_bytes_max);
  guest->place_ = Asleep{
      .extent = extent,
      .memory_bytes = std::clamp(carried.memory_bytes, memory_min, guest->bounds_.memory_bytes_max),
      .since = carried.asleep_since};
  guest->layer_ = std::move(layer);
  guest->calls_ = kube_runtime::KnownCalls::restored(std::move(carried.calls));
  return guest;
}

io::Task<void> RemoteGuests::RemoteGuest::serve(Run& run, const budget::Tenant& tenant) {
  run_ = &run;
  piece_at_ = 0;
  {
    const std::stop_callback on_stop(run.stop, [this, &run] {
      if (!run.lost && !run.has_ended) channel().cancel(run.number);
    });
    while (!run.has_ended && !run.lost) {
      if (std::exchange(run.wants_piece, false)) {
        std::string piece = co_await read_piece(tenant);
        if (run.lost) break;
        channel().answer(protocol::Piece{.run = run.number, .bytes = std::move(piece)});
      } else if (run.kept_piece) {
        const protocol::KeepPiece piece = *std::exchange(run.kept_piece, std::nullopt);
        keep(run, co_await write_piece(piece, tenant));
      } else if (run.asked_layer) {
        const Result<> made =
            co_await make_layer(run, *std::exchange(run.asked_layer, std::nullopt), tenant);
        had_no_room_ = !made;
        keep(run, made);
      } else if (run.kept_pages) {
        const protocol::KeepPages pages = *std::exchange(run.kept_pages, std::nullopt);
        const Result<> written = co_await write_pages(run, pages, tenant);
        if (!written) had_no_room_ = true;
        keep(run, written);
      } else {
        const Result<> changed = co_await run.changed.wait({});
        HANGAR_ASSERT(changed.has_value(), "nobody can stop this wait");
      }
    }
  }
  if (!run.lost) home_.processes_.end_run(std::get<Lodging>(place_).process, run.number);
  run_ = nullptr;
}

void RemoteGuests::RemoteGuest::keep(Run& run, const Result<>& stored) {
  if (!stored) run.is_refused = true;
  if (run.lost) return;
  channel().answer(protocol::Kept{
      .run = run.number, .refusal = stored ? "" : protocol::cut_reason(stored.error().message())});
}

Result<std::vector<io::Descriptor>> RemoteGuests::RemoteGuest::open_layer() const {
  std::vector<io::Descriptor> descriptors;
  if (layer_) descriptors.push_back(HANGAR_TRY(layer_->file->open_for_reading()));
  return descriptors;
}

// The conversation has checked the pieces.
io::Task<Result<>> RemoteGuests::RemoteGuest::make_layer(Run& run, protocol::MakeLayer asked,
                                                         const budget::Tenant& tenant) {
  std::uint32_t pages = 0;
  for (const protocol::Pages& piece : asked.pieces)
    pages += piece.count;
  std::unique_ptr<wasm::LayerFile> file =
      HANGAR_CO_TRY(co_await home_.processes_.engine().workers().run(
          snapshots_of(tenant), [&] { return home_.snapshots_.make_layer_file(pages, tenant); }));
  run.new_layer = Layer{.pieces = std::move(asked.pieces), .file = std::move(file)};
  co_return Result<>();
}

// The conversation has checked that there is a layer with these pages. What the file had there is
// not needed any more, whatever becomes of this sleep: the guest has its own copy in its process.
io::Task<Result<>> RemoteGuests::RemoteGuest::write_pages(const Run& run,
                                                          const protocol::KeepPages& kept,
                                                          const budget::Tenant& tenant) {
  const wasm::LayerFile& file = run.new_layer ? *run.new_layer->file : *layer_->file;
  co_return co_await home_.processes_.engine().workers().run(snapshots_of(tenant), [&] {
    std::span<const std::byte> rest = std::as_bytes(std::span(kept.bytes));
    for (const protocol::Pages& pages : kept.pages) {
      const std::size_t bytes = std::size_t{pages.count} * wasm::kPageBytes;
      if (Result<> written = file.write_pages(pages.first, rest.first(bytes)); !written) {
        return written;
      }
      rest = rest.subspan(bytes);
    }
    return Result<>();
  });
}

io::Task<std::string> RemoteGuests::RemoteGuest::read_piece(const budget::Tenant& tenant) {
  const Extent extent = *carried_;
  const std::uint64_t at = piece_at_;
  std::string bytes(std::min<std::uint64_t>(extent.size_bytes - at, protocol::kPieceBytes), '\0');
  piece_at_ += bytes.size();
  const Result<> read = co_await home_.processes_.engine().workers().run(snapshots_of(tenant), [&] {
    return home_.snapshots_.read_piece(extent, at, std::as_writable_bytes(std::span(bytes)));
  });
  // The process then detects that the guest is damaged.
  if (!read) std::ranges::fill(bytes, '\0');
  co_return bytes;
}

io::Task<Result<>> RemoteGuests::RemoteGuest::write_piece(const protocol::KeepPiece& piece,
                                                          const budget::Tenant& tenant) {
  if (!carried_) carried_ = HANGAR_CO_TRY(home_.snapshots_.reserve(piece.total_bytes, tenant));
  const std::uint64_t at = std::exchange(piece_at_, piece_at_ + piece.bytes.size());
  co_return co_await home_.processes_.engine().workers().run(snapshots_of(tenant), [&] {
    return home_.snapshots_.write_piece(*carried_, at, std::as_bytes(std::span(piece.bytes)));
  });
}

Result<> RemoteGuests::RemoteGuest::hear(protocol::FromGuest message) {
  HANGAR_ASSERT(run_ != nullptr, "messages are about runs in progress");
  return std::visit([this](auto& one) { return hear_one(std::move(one)); }, message);
}

void RemoteGuests::RemoteGuest::on_lost(const Error& why) {
  if (run_ != nullptr) {
    run_->lost = why;
    run_->changed.notify_all();
    return;
  }
  if (is_moving_) {
    lost_while_moving_ = why;
    return;
  }
  end();
  const auto tell = events_.on_lost;  // The call may destroy this.
  tell(why);
}

Result<> RemoteGuests::RemoteGuest::hear_one(const protocol::AskMemory& message) {
  channel().answer(answer_of(message, memory_));
  return {};
}

// The guest starts anew if its turn says more than there is memory for, as one does whose requests
// have none once the turn has ended.
bool RemoteGuests::RemoteGuest::count_said(std::uint64_t bytes) {
  Run& run = *run_;
  if (run.shortage) return false;
  run.said_bytes += bytes;
  budget::ReservationQueue* const memory = home_.processes_.engine().memory();
  if (memory == nullptr || run.said_bytes <= kSaidFreeBytes) return true;
  if (!run.said) run.said.emplace(memory->accounts(), run.consumer, kSaidCountedStep);
  run.shortage = run.said->set(run.said_bytes - kSaidFreeBytes);
  if (!run.shortage) return true;
  run.outcome.calls.clear();
  run.outcome.answers.clear();
  run.said.reset();
  return false;
}

Result<> RemoteGuests::RemoteGuest::hear_one(const protocol::TurnCall& message) {
  kube_runtime::HttpRequest request = HANGAR_TRY(kube_runtime::decode_request(message.request));
  if (!count_said(kube_runtime::memory_bytes_of(request))) return {};
  run_->outcome.calls.push_back(
      {.id = message.id, .is_stream = message.is_stream, .request = std::move(request)});
  return {};
}

Result<> RemoteGuests::RemoteGuest::hear_one(const protocol::TurnAnswer& message) {
  kube_runtime::InboundAnswer answer =
      HANGAR_TRY(kube_runtime::decode_inbound_answer(message.answer));
  answer.id = message.id;
  if (!count_said(kube_runtime::memory_bytes_of(answer))) return {};
  run_->outcome.answers.push_back(std::move(answer));
  return {};
}

Result<> RemoteGuests::RemoteGuest::hear_one(protocol::EndTurn message) {
  TurnOutcome& outcome = run_->outcome;
  std::size_t printed_bytes = 0;
  for (protocol::EndTurn::Line& line : message.output) {
    printed_bytes += line.text.size() + 1;
    outcome.output.push_back({.stream = line.is_stderr ? kube_runtime::OutputStream::Stderr
                                                       : kube_runtime::OutputStream::Stdout,
                              .text = std::move(line.text)});
  }
  // The last line of each stream need not end with a newline, nor do those that were cut.
  const std::uint64_t unended_lines_max =
      2 + bounds_.output_bytes_max / limits::kOperatorLineBytesMax;
  if (printed_bytes > bounds_.output_bytes_max + unended_lines_max) {
    return fail(ErrorKind::GuestFault, "its turn has more output than a guest may print");
  }
  outcome.output_dropped_bytes = message.output_dropped_bytes;
  outcome.resume_time = duration_of(message.resume_nanoseconds, Duration::max());
  outcome.resume_cpu_time = duration_of(message.resume_cpu_nanoseconds, Duration::max());
  outcome.cpu_time = duration_of(message.cpu_nanoseconds, Duration::max());
  if (message.is_error) {
    outcome.ended = fail(believed(message.kind, run_->stop.stop_requested()),
                         one_line(std::move(message.reason)));
  } else if (run_->shortage) {
    outcome.ended = fail(ErrorKind::LimitExceeded,
                         fmt::format("there is no memory for the requests and answers of the "
                                     "guest's turn: {}",
                                     budget::to_text(*run_->shortage)));
  } else if (message.has_exited) {
    outcome.exit_code = message.exit_code;
  } else {
    for (const protocol::EndTurn::Delay& delay : message.delays) {
      outcome.delays.push_back({.id = delay.id,
                                .duration = std::chrono::milliseconds(std::min<std::uint64_t>(
                                    delay.milliseconds, limits::kGuestDelayMax.count()))});
    }
    outcome.cancelled = std::move(message.cancelled);
    HANGAR_TRY(calls_.take(
        outcome,
        {.metrics = message.serves_metrics ? std::optional(message.metrics_id) : std::nullopt,
         .webhooks = message.serves_webhooks ? std::optional(message.webhooks_id) : std::nullopt,
         .next = message.next_id}));
    std::get<Lodging>(place_).resident_bytes =
        std::min(message.resident_bytes, bounds_.memory_bytes_max);
  }
  if (!outcome.ended || outcome.exit_code) {
    outcome.calls.clear();
    outcome.answers.clear();
  }
  run_->has_ended = true;
  run_->changed.notify_all();
  return {};
}

Result<> RemoteGuests::RemoteGuest::hear_one(const protocol::AskPiece& /*message*/) {
  run_->wants_piece = true;
  run_->changed.notify_all();
  return {};
}

Result<> RemoteGuests::RemoteGuest::hear_one(protocol::KeepPiece message) {
  run_->kept_piece = std::move(message);
  run_->changed.notify_all();
  return {};
}

Result<> RemoteGuests::RemoteGuest::hear_one(protocol::MakeLayer message) {
  run_->asked_layer = std::move(message);
  run_->changed.notify_all();
  return {};
}

Result<> RemoteGuests::RemoteGuest::hear_one(protocol::KeepPages message) {
  run_->kept_pages = std::move(message);
  run_->changed.notify_all();
  return {};
}

Result<> RemoteGuests::RemoteGuest::hear_one(const protocol::EndSleep& message) {
  run_->end_of_sleep = message;
  run_->has_ended = true;
  run_->changed.notify_all();
  return {};
}

std::unique_ptr<kube_runtime::Guest> RemoteGuests::make(
    std::shared_ptr<const wasm::SleepableModule> module, kube_runtime::GuestOptions options,
    Events events) {
  return std::make_unique<RemoteGuest>(*this, std::move(module), std::move(options),
                                       std::move(events));
}

Result<std::unique_ptr<kube_runtime::Guest>> RemoteGuests::take_over(
    std::shared_ptr<const wasm::SleepableModule> module, kube_runtime::GuestOptions options,
    Events events, budget::Tenant tenant, kube_runtime::CarriedGuest carried) {
  return RemoteGuest::continued(*this, std::move(module), std::move(options), std::move(events),
                                tenant, std::move(carried));
}

void RemoteGuests::discard(kube_runtime::CarriedGuest carried) {
  snapshots_.discard({.offset = carried.snapshot_offset, .size_bytes = carried.snapshot_bytes});
}

}  // namespace hangar::domains
