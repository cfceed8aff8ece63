#include "abi/kube_runtime/local_guest.h"

#include "abi/kube_runtime/guest.h"
#include "abi/kube_runtime/last_words.h"
#include "abi/kube_runtime/limits.h"
#include "abi/kube_runtime/messages.h"
#include "abi/kube_runtime/output_lines.h"
#include "abi/kube_runtime/pending_calls.h"
#include "abi/module_kind/module_kind.h"
#include "base/assert.h"
#include "base/packing.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/instance.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/page_layer.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/snapshot/sleeping_instance.h"
#include "wasm/snapshot/snapshots.h"
#include "wasm/wasi/c_strings.h"
#include "wasm/wasi/files.h"
#include "wasm/wasi/preview1.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::abi::kube_runtime {

namespace {

using wasm::GuestMemory;
using wasm::HostCall;
using wasm::Invocation;

constexpr std::string_view kHttpModule = "http-proxy-abi";
constexpr std::string_view kDelayModule = "delay-abi";
constexpr std::string_view kTurnModule = "turn-abi";
constexpr std::string_view kInboundModule = "inbound-abi";
constexpr std::string_view kIdleDescriptor = "idle_descriptor";
constexpr std::string_view kInitialize = "_initialize";
constexpr std::string_view kStart = "_start";
constexpr std::string_view kAllocate = "allocate";
constexpr std::string_view kWakeup = "wakeup";
constexpr std::string_view kRunUntilIdle = "run_until_idle";
constexpr std::string_view kMemory = "memory";

// The shortest timer of a guest: a shorter one would take up all turns.
constexpr std::chrono::milliseconds kTimerResolution{1};

// Such a program is stopped in its scheduler or in any of its tasks: the backtrace need not show
// the one that spins.
constexpr std::string_view kLikelyToSpin =
    " (likely a task that never waits, such as a goroutine in a loop without a pause)";

class State final : public wasm::wasi::Process {
 public:
  State(wasm::wasi::ProcessState process, PendingCalls& pending_in, std::uint64_t output_bytes_max)
      : Process(std::move(process)), pending(pending_in), output(output_bytes_max) {}

  Result<> print(OutputStream stream, std::string_view bytes) override {
    output.print(stream, bytes);
    return {};
  }

  void on_idle(Instant due) override { idle_until = due; }

  PendingCalls& pending;
  OutputLines output;
  std::optional<Instant> idle_until;  // When the turn's last blocking poll would have returned.
};

Result<std::uint64_t> request(HostCall call, std::uint32_t address, std::uint32_t size,
                              std::uint32_t stream) {
  if (size > limits::kGuestRequestBytesMax) {
    return fail(ErrorKind::LimitExceeded, fmt::format("a request of {} bytes, the most is {}", size,
                                                      limits::kGuestRequestBytesMax));
  }
  const GuestMemory memory = HANGAR_TRY(call.memory());
  const std::span<std::byte> bytes = HANGAR_TRY(memory.range(address, size));
  HttpRequest asked =
      HANGAR_TRY(decode_request({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  HANGAR_TRY(GuestMemory::readable());
  return call.state<State>().pending.add_request(std::move(asked), stream != 0);
}

Result<std::uint64_t> delay(HostCall call, std::uint64_t milliseconds) {
  return call.state<State>().pending.add_delay(milliseconds);
}

Result<std::uint32_t> idle_descriptor(HostCall call) {
  const std::optional<std::uint32_t> number = call.state<State>().idle_descriptor();
  if (!number) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("the guest has {} open files, which is the limit",
                            limits::kGuestDescriptorsMax));
  }
  return *number;
}

Result<> cancel(HostCall call, std::uint64_t id) {
  call.state<State>().pending.cancel(id);
  return {};
}

// The result for an unknown kind of requests: no id.
constexpr std::uint64_t kNotServed = ~std::uint64_t{0};

Result<std::uint64_t> serve(HostCall call, std::uint32_t kind) {
  for (const Listener listener : {Listener::Metrics, Listener::Webhooks}) {
    if (kind == static_cast<std::uint32_t>(listener)) {
      return call.state<State>().pending.listen(listener);
    }
  }
  return kNotServed;
}

Result<> respond(HostCall call, std::uint64_t id, std::uint32_t address, std::uint32_t size) {
  if (size > limits::kGuestRequestBytesMax) {
    return fail(ErrorKind::LimitExceeded, fmt::format("an answer of {} bytes, the most is {}", size,
                                                      limits::kGuestRequestBytesMax));
  }
  const GuestMemory memory = HANGAR_TRY(call.memory());
  const std::span<std::byte> bytes = HANGAR_TRY(memory.range(address, size));
  InboundAnswer answer = HANGAR_TRY(
      decode_inbound_answer({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  HANGAR_TRY(GuestMemory::readable());
  answer.id = id;
  call.state<State>().pending.answer_inbound(std::move(answer));
  return {};
}

bool has_function(const wasm::Module& module, std::string_view name, std::string_view signature) {
  const wasm::Export* const found = module.find_export(name);
  return found != nullptr && found->kind == wasm::ExternKind::Function &&
         found->signature == signature;
}

bool runs_until_idle(const wasm::Module& module) {
  return has_function(module, kRunUntilIdle, "() -> ()");
}

void add_surroundings(GuestOptions& options) {
  for (std::string& variable : options.in_pod.environment) {
    const std::string_view assigned = std::string_view(variable).substr(0, variable.find('=') + 1);
    const bool is_given = std::ranges::any_of(
        options.environment, [&](const std::string& one) { return one.starts_with(assigned); });
    if (!is_given) options.environment.push_back(std::move(variable));
  }
  options.files.merge(std::move(options.in_pod.files));
}

bool can_be_woken(const wasm::Module& module) {
  return module.find_export(kWakeup) != nullptr;
}

// Calls functions without arguments in order.
class StartTurn final : public wasm::Turn {
 public:
  explicit StartTurn(std::vector<std::string_view> functions) : functions_(std::move(functions)) {}

  Result<std::optional<Invocation>> next(GuestMemory /*memory*/,
                                         std::uint64_t /*result*/) override {
    if (at_ == functions_.size()) return std::nullopt;
    return Invocation{.function = std::string(functions_[at_++])};
  }

 private:
  const std::vector<std::string_view> functions_;
  std::size_t at_ = 0;
};

// Delivers answers. For each one with bytes the guest first allocates memory. A guest that runs
// until it is idle does so after the last answer. It takes events first and deals with them before
// it gets anything else: a task that an answer wakes would otherwise look at a cache that does not
// have them yet.
class WakeTurn final : public wasm::Turn {
 public:
  WakeTurn(std::vector<Wakeup> wakeups, PendingCalls& pending, bool runs_until_idle)
      : wakeups_(std::move(wakeups)), pending_(pending), is_to_run_(runs_until_idle) {
    if (!runs_until_idle) return;
    // The parts of one call stay in their order: the head of a watch may be no event.
    std::set<std::uint64_t> later;
    std::vector<Wakeup> ordered;
    std::vector<Wakeup> others;
    for (Wakeup& wakeup : wakeups_) {
      const bool is_first = wakeup.is_event && !later.contains(wakeup.id);
      if (!is_first) later.insert(wakeup.id);
      (is_first ? ordered : others).push_back(std::move(wakeup));
    }
    pause_at_ = ordered.size();
    std::ranges::move(others, std::back_inserter(ordered));
    wakeups_ = std::move(ordered);
  }

  Result<std::optional<Invocation>> next(GuestMemory memory, std::uint64_t result) override {
    if (is_allocating_) {
      is_allocating_ = false;
      return wake(HANGAR_TRY(hand_over(memory, static_cast<std::uint32_t>(result))));
    }
    // The guest may have cancelled some in this turn.
    while (at_ < wakeups_.size() && !pending_.has(wakeups_[at_].id))
      ++at_;
    const bool is_to_pause = pause_at_ > 0 && at_ >= pause_at_ && at_ < wakeups_.size();
    if (is_to_pause) {
      pause_at_ = 0;
      return Invocation{.function = std::string(kRunUntilIdle)};
    }
    if (at_ == wakeups_.size()) {
      if (!std::exchange(is_to_run_, false)) return std::nullopt;
      return Invocation{.function = std::string(kRunUntilIdle)};
    }
    if (wakeups_[at_].is_null) return wake(0);
    is_allocating_ = true;
    return Invocation{.function = std::string(kAllocate),
                      .arguments = {wakeups_[at_].bytes.size()}};
  }

 private:
  // Copies the bytes and returns their address; from then on the guest owns them and must free
  // them.
  Result<std::uint32_t> hand_over(GuestMemory memory, std::uint32_t address) {
    const std::string& bytes = wakeups_[at_].bytes;
    if (address == 0 && !bytes.empty()) {
      return fail(ErrorKind::GuestFault,
                  fmt::format("allocate has no memory for {} bytes", bytes.size()));
    }
    if (Result<> written = memory.write(address, bytes); !written) {
      return std::unexpected(std::move(written).error().in("allocate's answer"));
    }
    return address;
  }

  Result<std::optional<Invocation>> wake(std::uint32_t address) {
    // The guest has a copy of the bytes, so ours are released.
    const Wakeup wakeup = std::move(wakeups_[at_++]);
    if (wakeup.finished) pending_.finish(wakeup.id);
    const std::uint64_t size = wakeup.is_null ? 0 : wakeup.bytes.size();
    return Invocation{.function = std::string(kWakeup),
                      .arguments = {wakeup.id, wakeup.finished ? 1U : 0U, address, size}};
  }

  std::vector<Wakeup> wakeups_;
  PendingCalls& pending_;
  std::size_t at_ = 0;
  std::size_t pause_at_ = 0;  // Before this one the guest runs until it is idle; zero: it does not.
  bool is_allocating_ = false;
  bool is_to_run_;
};

// Calls nothing: a turn of a sleeping instance starts with its resume.
class LoadTurn final : public wasm::Turn {
 public:
  Result<std::optional<Invocation>> next(GuestMemory /*memory*/,
                                         std::uint64_t /*result*/) override {
    return std::nullopt;
  }
};

// Guests read these as C strings, which end at a null byte.
Result<> check_strings(const GuestOptions& options) {
  const auto has_null = [](const std::string& text) {
    return text.find('\0') != std::string::npos;
  };
  if (std::ranges::any_of(options.args, has_null)) {
    return fail(ErrorKind::InvalidInput, "an argument contains a null byte");
  }
  if (std::ranges::any_of(options.environment, has_null)) {
    return fail(ErrorKind::InvalidInput, "a variable of the environment contains a null byte");
  }
  return {};
}

Result<wasm::wasi::ProcessState> process_of(GuestOptions options) {
  HANGAR_TRY(check_strings(options));
  // Most guests have no files, and share this tree.
  static const auto no_files = std::make_shared<const wasm::wasi::FileTree>();
  std::shared_ptr<const wasm::wasi::FileTree> files = no_files;
  if (!options.files.empty()) {
    files = std::make_shared<const wasm::wasi::FileTree>(
        HANGAR_TRY(wasm::wasi::FileTree::of(std::move(options.files))));
  }
  return wasm::wasi::ProcessState{.arguments = wasm::wasi::CStrings(options.args),
                                  .environment = wasm::wasi::CStrings(options.environment),
                                  .files = std::move(files)};
}

// Of a packed guest: the digest of its state, and the state's size.
constexpr std::size_t kPackedHeaderBytes = 32 + sizeof(std::uint64_t);

void pack_process(Packer& into, const wasm::wasi::ProcessState& process) {
  into(process.arguments.bytes(), process.environment.bytes());
  into.each(process.files->files(), [&into](const auto& file) { into(file.first, file.second); });
  into.each(process.descriptors, [&into](const wasm::wasi::Descriptor& one) {
    into(one.kind, one.node, one.offset, one.is_presented);
  });
}

Result<wasm::wasi::ProcessState> unpack_process(Unpacker& from) {
  std::string_view arguments;
  std::string_view environment;
  std::vector<std::pair<std::string, std::string>> files;
  wasm::wasi::Descriptors descriptors;
  from(arguments, environment);
  from.each(files, [&from](auto& file) { from(file.first, file.second); });
  from.each(descriptors, [&from](wasm::wasi::Descriptor& one) {
    from(one.kind, one.node, one.offset, one.is_presented);
  });
  // The same paths make the same tree, so that open files keep their node numbers.
  return wasm::wasi::ProcessState{.arguments = wasm::wasi::CStrings::of_bytes(arguments),
                                  .environment = wasm::wasi::CStrings::of_bytes(environment),
                                  .files = std::make_shared<const wasm::wasi::FileTree>(HANGAR_TRY(
                                      wasm::wasi::FileTree::of({files.begin(), files.end()}))),
                                  .descriptors = std::move(descriptors)};
}

}  // namespace

Runtime::Runtime(wasm::Engine& engine) : Runtime(engine, make_functions(engine.parts())) {}

Runtime::Runtime(wasm::Engine& engine, std::shared_ptr<const wasm::HostFunctions> functions)
    : engine_(engine), functions_(std::move(functions)) {}

std::shared_ptr<const wasm::HostFunctions> Runtime::make_functions(const wasm::EngineParts& parts) {
  auto functions = std::make_shared<wasm::HostFunctions>(parts);
  wasm::wasi::add_preview1(*functions);
  functions->add<&request>(kHttpModule, "request");
  functions->add<&request>(kHttpModule, "request_stream");
  functions->add<&delay>(kDelayModule, "delay");
  functions->add<&idle_descriptor>(kTurnModule, kIdleDescriptor);
  functions->add<&cancel>(kTurnModule, "cancel");
  functions->add<&serve>(kInboundModule, "serve");
  functions->add<&respond>(kInboundModule, "respond");
  return functions;
}

Result<> Runtime::check(const wasm::Module& module) const {
  const std::vector<wasm::Import> missing = functions_->missing(module);
  if (!missing.empty()) {
    return refuse(
        fmt::format("module imports {}, which an operator does not get; operators get {}, "
                    "{}.{{request,request_stream}}, {}.delay, {}.{{idle_descriptor,cancel}} and "
                    "{}.{{serve,respond}}",
                    wasm::names_of(missing), wasm::wasi::kModule, kHttpModule, kDelayModule,
                    kTurnModule, kInboundModule),
        ModuleKind::Operator, module.imports(), module.exports());
  }
  const bool is_woken = can_be_woken(module);
  if (is_woken != (module.find_export(kAllocate) != nullptr)) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("module exports {} and not {}: an operator that waits for answers "
                            "exports both",
                            is_woken ? kWakeup : kAllocate, is_woken ? kAllocate : kWakeup));
  }
  if (is_woken) {
    if (!has_function(module, kAllocate, "(i32) -> (i32)") ||
        !has_function(module, kWakeup, "(i64, i32, i32, i32) -> ()")) {
      return fail(ErrorKind::InvalidInput,
                  "module's allocate is to be a function (i32) -> (i32), its wakeup "
                  "(i64, i32, i32, i32) -> ()");
    }
    const wasm::Export* const memory = module.find_export(kMemory);
    if (memory == nullptr || memory->kind != wasm::ExternKind::Memory) {
      return fail(ErrorKind::InvalidInput, "module exports no memory");
    }
  }
  const bool has_run = module.find_export(kRunUntilIdle) != nullptr;
  const bool polls_for_idleness = std::ranges::any_of(module.imports(), [](const auto& import) {
    return import.module == kTurnModule && import.name == kIdleDescriptor;
  });
  if (has_run != polls_for_idleness || (has_run && (!is_woken || !runs_until_idle(module)))) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("module is to import {}.{} and export {}() -> (), {} and {}, or neither "
                    "of the first two",
                    kTurnModule, kIdleDescriptor, kRunUntilIdle, kAllocate, kWakeup));
  }
  const bool is_reactor = is_woken && has_function(module, kInitialize, "() -> ()");
  if (!has_function(module, kStart, "() -> ()") &&
      (!is_reactor || module.find_export(kStart) != nullptr)) {
    return refuse(
        "module exports no function _start: build it as a WASI command (a program with a main "
        "function)",
        ModuleKind::Operator, module.imports(), module.exports());
  }
  return {};
}

Result<> Runtime::check_can_live_on(const wasm::Module& module) {
  const std::vector<wasm::Import> imports = module.imports();
  if (kind_of(imports, module.exports()) == ModuleKind::Operator) return {};
  return refuse(fmt::format("module imports nothing of {} or {} and exports no {}: it could ask "
                            "the API server for nothing",
                            kHttpModule, kDelayModule, kWakeup),
                ModuleKind::Operator, imports, module.exports());
}

std::unique_ptr<Guest> LocalGuests::make(std::shared_ptr<const wasm::SleepableModule> module,
                                         GuestOptions options, Events /*events*/) {
  return std::make_unique<LocalGuest>(*this, std::move(module), std::move(options));
}

Result<std::unique_ptr<Guest>> LocalGuests::take_over(
    std::shared_ptr<const wasm::SleepableModule> /*module*/, GuestOptions /*options*/,
    Events /*events*/, budget::Tenant /*tenant*/, CarriedGuest /*carried*/) {
  return fail(ErrorKind::Unavailable, "guests of the host's own process cannot be continued");
}

struct LocalGuest::New {
  std::shared_ptr<const wasm::SleepableModule> module;
  GuestOptions options;
  std::optional<budget::Reservation> memory = std::nullopt;
};

// The state of a guest that is in memory.
struct LocalGuest::Awake {
  // For its first turn.
  Awake(LocalGuest& guest, std::shared_ptr<const wasm::SleepableModule> module,
        wasm::wasi::ProcessState process, std::uint64_t memory_bytes_max)
      : state(std::move(process), guest.pending_, guest.output_bytes_max_),
        instance(guest.home_.runtime().engine(), std::move(module),
                 guest.home_.runtime().functions(), state, memory_bytes_max) {
    instance.ask_for_memory(guest.home_.ask_memory());
  }
  // For a later turn.
  Awake(LocalGuest& guest, Asleep asleep)
      : state(std::move(asleep.process), guest.pending_, guest.output_bytes_max_),
        instance(guest.home_.runtime().engine(), std::move(asleep.instance),
                 guest.home_.runtime().functions(), state) {
    instance.ask_for_memory(guest.home_.ask_memory());
  }

  State state;
  wasm::Instance instance;
  // According to its module. A guest that cannot be woken has only one turn.
  bool is_woken = true;
};

LocalGuest::LocalGuest(const LocalGuests& home, std::shared_ptr<const wasm::SleepableModule> module,
                       GuestOptions options)
    : home_(home),
      cpu_time_max_(options.cpu_time_max),
      output_bytes_max_(options.output_bytes_max),
      state_(std::make_unique<New>(std::move(module), std::move(options))) {
  static_assert(sizeof(LocalGuest) <= 320, "steps between slots are small up to here");
}

LocalGuest::LocalGuest(const LocalGuests& home, const GuestOptions& bounds)
    : home_(home),
      cpu_time_max_(bounds.cpu_time_max),
      output_bytes_max_(bounds.output_bytes_max),
      state_(Gone{}) {}

LocalGuest::~LocalGuest() = default;

// The digest of the state, its size, the state, the snapshot. The snapshot has a checksum itself.
Result<std::string> LocalGuest::pack() const {
  const auto* const asleep = std::get_if<Asleep>(&state_);
  HANGAR_ASSERT(asleep != nullptr, "a guest that travels is asleep");
  Packer state;
  const Timer timer = timer_.value_or(Timer());
  state(runs_until_idle_, timer_.has_value(), timer.id, Duration(timer.due.time_since_epoch()));
  pending_.pack(state);
  pack_process(state, asleep->process);
  state(asleep->instance.memory_bytes());
  const PackedBytes packed = state.bytes();

  const wasm::Digest digest = wasm::Digest::of(std::string_view(packed));
  const std::uint64_t size = packed.size();
  std::string bytes(kPackedHeaderBytes + size + asleep->instance.extent().size_bytes, '\0');
  std::memcpy(bytes.data(), digest.bytes().data(), digest.bytes().size());
  std::memcpy(bytes.data() + digest.bytes().size(), &size, sizeof size);
  std::memcpy(bytes.data() + kPackedHeaderBytes, packed.data(), size);
  HANGAR_TRY(home_.snapshots().read(
      asleep->instance.extent(),
      std::as_writable_bytes(std::span(bytes).subspan(kPackedHeaderBytes + size))));
  return bytes;
}

const wasm::PageLayer* LocalGuest::layer() const {
  const auto* const asleep = std::get_if<Asleep>(&state_);
  return asleep == nullptr ? nullptr : asleep->instance.layer();
}

Result<std::unique_ptr<LocalGuest>> LocalGuest::unpack(
    const LocalGuests& home, std::shared_ptr<const wasm::SleepableModule> module,
    const GuestOptions& options, std::string_view bytes, Beside beside) {
  const auto broken = [] {
    return fail(ErrorKind::Unavailable, "the snapshot is broken: the guest's state is damaged");
  };
  if (bytes.size() < kPackedHeaderBytes) return broken();
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data() + kPackedHeaderBytes - sizeof size, sizeof size);
  if (size > bytes.size() - kPackedHeaderBytes) return broken();
  const std::string_view packed = bytes.substr(kPackedHeaderBytes, size);
  const wasm::Digest digest = wasm::Digest::of(packed);
  if (std::memcmp(bytes.data(), digest.bytes().data(), digest.bytes().size()) != 0) return broken();

  std::unique_ptr<LocalGuest> guest(new LocalGuest(home, options));
  Unpacker state(packed);
  bool has_timer = false;
  Timer timer;
  Duration due{};
  state(guest->runs_until_idle_, has_timer, timer.id, due);
  timer.due = Instant(due);
  if (has_timer) guest->timer_ = timer;
  guest->pending_.unpack(state);
  wasm::wasi::ProcessState process = HANGAR_TRY(unpack_process(state));
  std::uint64_t memory_bytes = 0;
  state(memory_bytes);
  const wasm::Snapshots::Extent extent = HANGAR_TRY(
      home.snapshots().write(std::as_bytes(std::span(bytes.substr(kPackedHeaderBytes + size))),
                             budget::unnamed_consumer().tenant));
  Asleep asleep{
      .instance = wasm::SleepingInstance::arrived(
          std::move(module), options.memory_bytes_max, home.snapshots(), extent,
          {.memory_bytes = memory_bytes, .layer = std::move(beside.layer), .since = beside.since}),
      .process = std::move(process)};
  guest->state_.emplace<Asleep>(std::move(asleep));
  return guest;
}

io::Task<TurnOutcome> LocalGuest::start(std::stop_token stop, budget::Consumer consumer) {
  auto* const unstarted = std::get_if<std::unique_ptr<New>>(&state_);
  HANGAR_ASSERT(unstarted != nullptr && *unstarted != nullptr, "a guest is started once");
  const std::unique_ptr<New> begun = std::move(*unstarted);
  const Result<std::shared_ptr<const wasm::Module>> code = co_await begun->module->code(consumer);
  const std::uint64_t memory_bytes_max = begun->options.memory_bytes_max;
  if (code && runs_until_idle(**code)) add_surroundings(begun->options);
  Result<wasm::wasi::ProcessState> process = process_of(std::move(begun->options));
  Result<> fine = !process ? std::unexpected(process.error())
                  : !code  ? std::unexpected(code.error())
                           : home_.runtime().check(**code);
  if (!fine) {
    end();
    co_return TurnOutcome{.ended = std::move(fine)};
  }
  auto awake = std::make_unique<Awake>(*this, begun->module, *std::move(process), memory_bytes_max);
  awake->is_woken = can_be_woken(**code);
  awake->instance.provide(std::move(begun->memory));
  state_ = std::move(awake);
  std::vector<std::string_view> functions;
  runs_until_idle_ = runs_until_idle(**code);
  for (const std::string_view name : {kInitialize, kStart, kRunUntilIdle}) {
    if (has_function(**code, name, "() -> ()")) functions.push_back(name);
  }
  StartTurn turn(std::move(functions));
  co_return co_await run(turn, std::move(stop), std::move(consumer));
}

io::Task<TurnOutcome> LocalGuest::wake(std::vector<Wakeup> wakeups, std::stop_token stop,
                                       budget::Consumer consumer) {
  HANGAR_ASSERT(!std::holds_alternative<std::unique_ptr<New>>(state_),
                "a guest is started before it is woken");
  if (std::holds_alternative<Gone>(state_)) {
    co_return TurnOutcome{.ended = fail(ErrorKind::InvalidInput, "the guest no longer exists")};
  }
  std::vector<Wakeup> deliverable;
  bool is_timer_due = false;
  for (Wakeup& wakeup : wakeups) {
    if (!pending_.has(wakeup.id)) continue;
    if (timer_ && wakeup.id == timer_->id) {
      pending_.finish(wakeup.id);
      timer_.reset();
      is_timer_due = true;
    } else {
      if (wakeup.finished) pending_.expect_finish(wakeup.id);
      deliverable.push_back(std::move(wakeup));
    }
  }
  if (deliverable.empty() && !is_timer_due) co_return TurnOutcome{};
  if (auto* const asleep = std::get_if<Asleep>(&state_)) {
    state_ = std::make_unique<Awake>(*this, std::move(*asleep));
  }
  WakeTurn turn(std::move(deliverable), pending_, runs_until_idle_);
  co_return co_await run(turn, std::move(stop), std::move(consumer));
}

io::Task<Result<Guest::Loaded>> LocalGuest::load(std::stop_token stop, budget::Consumer consumer) {
  if (auto* const asleep = std::get_if<Asleep>(&state_)) {
    state_ = std::make_unique<Awake>(*this, std::move(*asleep));
  }
  auto* const awake = std::get_if<std::unique_ptr<Awake>>(&state_);
  if (awake == nullptr || !(*awake)->instance.is_asleep()) co_return Loaded{};
  LoadTurn turn;
  wasm::TurnReport report = co_await (*awake)->instance.run(
      turn, {.cpu_time_max = cpu_time_max_, .consumer = std::move(consumer)}, std::move(stop));
  if (!report.ended) {
    end();
    co_return std::unexpected(std::move(report.ended).error());
  }
  co_return Loaded{.resume_time = report.resume_time, .cpu_time = report.cpu_time};
}

std::uint64_t LocalGuest::memory_bytes_needed() const {
  if (const auto* const unstarted = std::get_if<std::unique_ptr<New>>(&state_)) {
    return (*unstarted)->module->memory_bytes_min();
  }
  if (const auto* const asleep = std::get_if<Asleep>(&state_)) {
    return asleep->instance.memory_bytes();
  }
  const auto* const awake = std::get_if<std::unique_ptr<Awake>>(&state_);
  return awake == nullptr ? 0 : (*awake)->instance.memory_bytes_needed();
}

void LocalGuest::provide(std::optional<budget::Reservation> memory) {
  if (auto* const unstarted = std::get_if<std::unique_ptr<New>>(&state_)) {
    (*unstarted)->memory = std::move(memory);
  } else if (auto* const asleep = std::get_if<Asleep>(&state_)) {
    auto awake = std::make_unique<Awake>(*this, std::move(*asleep));
    awake->instance.provide(std::move(memory));
    state_ = std::move(awake);
  }
}

bool LocalGuest::waits_for(std::uint64_t id) const {
  return pending_.has(id);
}

bool LocalGuest::listens(Listener listener) const {
  return pending_.find(listener).has_value();
}

Result<LocalGuest::Inbound> LocalGuest::hand_in(Listener listener, const HttpRequest& request) {
  const std::optional<std::uint64_t> found = pending_.find(listener);
  if (!found) return fail(ErrorKind::NotFound, "the guest has no listener for these requests");
  const std::uint64_t id = HANGAR_TRY(pending_.add_inbound());
  return Inbound{.id = id, .wakeup = {.id = *found, .bytes = encode_inbound_request(id, request)}};
}

io::Task<Result<Duration>> LocalGuest::sleep(budget::Tenant tenant) {
  auto* const awake = std::get_if<std::unique_ptr<Awake>>(&state_);
  if (awake == nullptr) co_return Duration::zero();
  const std::unique_ptr<Awake>& guest = *awake;
  const Duration cpu_time =
      HANGAR_CO_TRY(co_await guest->instance.sleep(home_.snapshots(), std::move(tenant)));
  std::optional<wasm::SleepingInstance> instance = guest->instance.take_asleep();
  HANGAR_ASSERT(instance.has_value(),
                "a guest that has had a turn and has not ended has memory to save");
  Asleep asleep{.instance = *std::move(instance), .process = guest->state.take_state()};
  state_.emplace<Asleep>(std::move(asleep));
  pending_.shrink();
  co_return cpu_time;
}

bool LocalGuest::is_asleep() const {
  return std::holds_alternative<Asleep>(state_);
}

Result<CarriedGuest> LocalGuest::carry() {
  return fail(ErrorKind::Unavailable,
              "it sleeps on images of the host's own process, which end with it "
              "(--guest-isolation=none)");
}

std::uint64_t LocalGuest::resident_bytes() const {
  const auto* const awake = std::get_if<std::unique_ptr<Awake>>(&state_);
  return awake == nullptr ? 0 : (*awake)->instance.resident_bytes();
}

std::uint64_t LocalGuest::disk_bytes() const {
  if (const auto* const awake = std::get_if<std::unique_ptr<Awake>>(&state_)) {
    return (*awake)->instance.disk_bytes();
  }
  const auto* const asleep = std::get_if<Asleep>(&state_);
  return asleep == nullptr ? 0 : asleep->instance.disk_bytes();
}

io::Task<TurnOutcome> LocalGuest::run(wasm::Turn& turn, std::stop_token stop,
                                      budget::Consumer consumer) {
  if (stop.stop_requested()) {
    end();
    co_return TurnOutcome{.ended = fail(ErrorKind::Cancelled, "the turn was stopped")};
  }
  Awake& awake = *std::get<std::unique_ptr<Awake>>(state_);
  wasm::TurnReport report = co_await awake.instance.run(
      turn, {.cpu_time_max = cpu_time_max_, .consumer = std::move(consumer)}, std::move(stop));
  OutputLines::Taken output = awake.state.output.take();
  TurnOutcome outcome{.ended = std::move(report.ended),
                      .output = std::move(output.lines),
                      .output_dropped_bytes = output.dropped_bytes,
                      .was_asleep = report.was_asleep,
                      .resume_time = report.resume_time,
                      .resume_cpu_time = report.resume_cpu_time,
                      .cpu_time = report.cpu_time};
  if (!outcome.ended) {
    if (report.has_timed_out && runs_until_idle_) {
      outcome.ended = fail(outcome.ended.error().kind(),
                           outcome.ended.error().message() + std::string(kLikelyToSpin));
    }
    if (outcome.ended.error().kind() == ErrorKind::GuestFault) {
      if (const std::string said = last_words(outcome.output); !said.empty()) {
        outcome.ended = fail(ErrorKind::GuestFault,
                             outcome.ended.error().message() + "; the guest printed: " + said);
      }
    }
    end();
    co_return outcome;
  }
  const std::optional<Instant> idle_until = std::exchange(awake.state.idle_until, std::nullopt);
  if (!report.has_left) outcome.ended = set_timer(idle_until);
  if (outcome.ended && !report.has_left && runs_until_idle_ && pending_.is_empty()) {
    outcome.ended = fail(ErrorKind::GuestFault,
                         "the guest is idle and nothing can wake it: it has no request under way "
                         "and no timer (a deadlock)");
  }
  if (!outcome.ended) {
    end();
    co_return outcome;
  }
  const bool is_waiting = awake.is_woken && !pending_.is_empty();
  if (report.has_left || !is_waiting) {
    outcome.exit_code = awake.state.exit_code.value_or(0);
    end();
    co_return outcome;
  }
  outcome.calls = pending_.take_calls();
  outcome.delays = pending_.take_delays();
  outcome.answers = pending_.take_answers();
  outcome.cancelled = pending_.take_cancelled();
  co_return outcome;
}

Result<> LocalGuest::set_timer(std::optional<Instant> due) {
  if (!runs_until_idle_) return {};
  if (due == Instant::max()) due.reset();
  // The guest requested the same time again; only the clock has moved on.
  if (timer_ && due && std::chrono::abs(*due - timer_->due) < kTimerResolution) return {};
  if (timer_) pending_.cancel(timer_->id);
  timer_.reset();
  if (!due) return {};
  const auto wait = std::max(kTimerResolution,
                             std::chrono::ceil<std::chrono::milliseconds>(*due - io::Loop::now()));
  const std::uint64_t id = HANGAR_TRY(pending_.add_delay(static_cast<std::uint64_t>(wait.count())));
  timer_ = {.id = id, .due = *due};
  return {};
}

void LocalGuest::end() {
  state_ = Gone{};
  timer_.reset();
  pending_ = {};
}

}  // namespace hangar::abi::kube_runtime
