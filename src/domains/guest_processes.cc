#include "domains/guest_processes.h"

#include "abi/flight/command.h"
#include "abi/flight/lookups.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "base/utf8.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/rates.h"
#include "domains/guest_process.h"
#include "domains/process_table.h"
#include "domains/zygote.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/messages.h"
#include "guest_protocol/zygote_messages.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/native_code.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::domains {

namespace {

namespace flight = abi::flight;
namespace protocol = guest_protocol;

// Text of a process that may belong to an attacker, as one line for a status and a log.
std::string one_line(std::string text) {
  text.resize(valid_utf8_prefix(text));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::size_t bytes_of(const std::vector<std::string>& texts) {
  std::size_t bytes = 0;
  for (const std::string& text : texts)
    bytes += text.size();
  return bytes;
}

// Checks the bounds of a message.
Result<> check_size(const flight::Command& command) {
  if (command.stdin_bytes.size() > protocol::kStdinBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("a guest is to read {} bytes, the most is {}",
                            command.stdin_bytes.size(), protocol::kStdinBytesMax));
  }
  for (const auto* const texts : {&command.arguments, &command.environment}) {
    if (texts->size() > protocol::kTextsMax || bytes_of(*texts) > protocol::kTextBytesMax) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("a guest gets at most {} arguments, and as many variables, of {} "
                              "bytes together",
                              protocol::kTextsMax, protocol::kTextBytesMax));
    }
  }
  return {};
}

// The kinds that a run in the host could end with. Any other would tell the host what to do: retry
// at once, or discard something.
ErrorKind kind_of(ErrorKind said, bool is_stopped) {
  switch (said) {
    case ErrorKind::LimitExceeded:
    case ErrorKind::Unavailable:
      return said;
    case ErrorKind::Cancelled:
      return is_stopped ? said : ErrorKind::GuestFault;
    default:
      return ErrorKind::GuestFault;
  }
}

std::string cut_name(std::string name) {
  name.resize(std::min(name.size(), protocol::kNameBytesMax));
  return name;
}

}  // namespace

// One command under way. Its coroutine waits for `done`.
struct GuestProcesses::Run {
  Run(io::Loop& loop, flight::Lookups* lookups_in, std::stop_token stop_in)
      : lookups(lookups_in), stop(std::move(stop_in)), done(loop), looked_up(loop) {}

  flight::Lookups* const lookups;
  const std::stop_token stop;
  std::uint64_t number = 0;
  std::uint64_t memory_bytes_max = 0;
  std::optional<budget::Reservation> memory;  // None without accounts.
  bool is_looking_up = false;
  io::OneShot<Result<flight::Output>> done;
  io::Event looked_up;
};

// A module that was handed to a process.
struct GuestProcesses::Handed {
  std::uint64_t number = 0;
  std::uint64_t used = 0;  // The number of the last run that used it.
  // The memory that its last run there had at its end, as the process reports it: used for that
  // process only, and for no other domain.
  std::uint64_t usual_bytes = 0;
};

struct GuestProcesses::Process {
  ProcessId id = 0;
  Domain domain;
  std::unique_ptr<GuestProcess> channel;
  std::map<std::uint64_t, std::shared_ptr<Run>> runs;
  std::map<ModuleRef, Handed, std::owner_less<ModuleRef>> modules;
  std::optional<Error> breach;
};

GuestProcesses::GuestProcesses(const Parts& parts, Options options,
                               std::optional<ZygoteProcess> zygote)
    : loop_(parts.engine.loop()),
      engine_(parts.engine),
      log_(parts.log),
      options_(std::move(options)),
      count_(parts.metrics.gauge("hangar_guest_processes", "guest processes that there are")),
      started_(parts.metrics.counter("hangar_guest_processes_started_total",
                                     "guest processes that were forked")),
      broken_(parts.metrics.counter(
          "hangar_guest_processes_broken_total",
          "guest processes that crashed, broke a rule of their protocol or were silent")),
      landlock_(parts.metrics.gauge(
          "hangar_guest_landlock_version",
          "version of Landlock that guest processes are closed off with, 0 without it")),
      system_call_filter_(parts.metrics.gauge("hangar_guest_system_call_filter",
                                              "1 when guest processes have a system call filter")),
      table_(options_.table),
      changed_(loop_),
      slots_(loop_, {.slots = limits::kGuestRunsMax}),
      zygote_(loop_, options_.program, std::move(zygote),
              {.on_standing = [this](const protocol::Standing& standing) { on_standing(standing); },
               .on_ended = [this](ProcessId id, const Error& how) { on_ended(id, how); },
               .on_gone = [this](const Error& how) { on_gone(how); }}) {
  if (budget::Rates* const rates = engine_.rates()) slots_.brake(*rates);
}

GuestProcesses::~GuestProcesses() {
  for (const auto& [id, process] : processes_)
    HANGAR_ASSERT(process->runs.empty(), "runs end before their processes");
}

void GuestProcesses::stop() {
  if (std::exchange(is_stopping_, true)) return;
  look_timer_.cancel();
  zygote_.stop();
  on_gone(Error(ErrorKind::Cancelled, "ended: the host is stopping"));
}

Domain GuestProcesses::domain_of(const flight::Command& command) const {
  if (options_.isolation == Isolation::Shared) return budget::Tenant::of_namespace({});
  return command.consumer.tenant;
}

io::Task<Result<flight::Output>> GuestProcesses::run(std::shared_ptr<const wasm::Module> module,
                                                     flight::Command command,
                                                     flight::Lookups* lookups,
                                                     std::stop_token stop) {
  HANGAR_CO_TRY(check_size(command));
  const auto run = std::make_shared<Run>(loop_, lookups, stop);
  run->memory_bytes_max = command.memory_bytes_max + wasm::kInstanceBytes;
  // Before the slot, as everywhere: a run that waits for memory blocks no other.
  run->memory = HANGAR_CO_TRY(co_await engine_.reserve(
      command.consumer, std::min(module->memory_bytes_min(), command.memory_bytes_max), stop));
  const Result<budget::FairSlots::Slot> slot = co_await slots_.acquire(command.consumer, {}, stop);
  if (!slot) co_return fail(slot.error().kind(), "the run was stopped");

  const ProcessId id = HANGAR_CO_TRY(co_await acquire(domain_of(command), stop));
  const auto found = processes_.find(id);
  if (found == processes_.end()) {
    co_return fail(ErrorKind::Unavailable, "its guest process has just ended");
  }
  Process& process = *found->second;
  const Handed handed = HANGAR_CO_TRY(hand_over(process, module));
  std::uint64_t memory_bytes = run->memory_bytes_max;  // Without accounts: all.
  if (run->memory) {
    // The memory that it will most likely need. It can work with less.
    const std::uint64_t usual_bytes = std::min(handed.usual_bytes, run->memory_bytes_max);
    if (usual_bytes > run->memory->bytes()) {
      static_cast<void>(run->memory->resize(usual_bytes).has_value());
    }
    memory_bytes = run->memory->bytes();
  }
  const protocol::Contract contract = command.role == flight::Role::Flight
                                          ? protocol::Contract::Flight
                                          : protocol::Contract::Converter;
  run->number = ++last_run_;
  process.runs.emplace(run->number, run);
  table_.begin_run(id);
  const Instant began = io::Loop::now();
  process.channel->begin({.run = run->number,
                          .module = handed.number,
                          .contract = contract,
                          .tenant = cut_name(command.consumer.tenant.namespace_name()),
                          .consumer = cut_name(command.consumer.name),
                          .arguments = std::move(command.arguments),
                          .environment = std::move(command.environment),
                          .stdin_bytes = std::move(command.stdin_bytes),
                          .timeout_nanoseconds = command.timeout ? command.timeout->count() : -1,
                          .memory_bytes_max = command.memory_bytes_max,
                          .memory_bytes = memory_bytes},
                         {.contract = contract,
                          .memory_bytes_max = run->memory_bytes_max,
                          .timeout = command.timeout});

  Result<flight::Output> output = fail(ErrorKind::Cancelled, "the run was stopped");
  {
    const std::stop_callback on_stop(stop, [this, id, number = run->number] {
      const auto at = processes_.find(id);
      if (at != processes_.end()) at->second->channel->cancel(number);
    });
    output = co_await run->done.wait();
  }
  // Its lookups refer to objects that the caller keeps alive.
  while (run->is_looking_up) {
    const Result<> ended = co_await run->looked_up.wait({});
    HANGAR_ASSERT(ended.has_value(), "nobody can stop this wait");
  }
  const Instant ended = io::Loop::now();
  if (budget::Rates* const rates = engine_.rates()) {
    // A run that failed reports nothing; a run is on one thread at a time.
    const Duration used = output ? std::clamp(output->cpu_time, Duration::zero(), ended - began)
                                 : Duration(ended - began);
    rates->charge(command.consumer.tenant, static_cast<std::uint64_t>(used.count()), ended);
  }
  if (output) {
    // A process may report any value; these are added to sums.
    const Duration most = (ended - began) * options_.thread_count;
    output->cpu_time = std::clamp(output->cpu_time, Duration::zero(), most);
    output->memory_bytes = std::min(output->memory_bytes, command.memory_bytes_max);
    learn_memory(id, module, output->memory_bytes + wasm::kInstanceBytes);
  }
  co_return output;
}

io::Task<Result<GuestProcesses::ProcessId>> GuestProcesses::acquire(Domain domain,
                                                                    std::stop_token stop) {
  ++waiting_[domain];
  Result<ProcessId> acquired = fail(ErrorKind::Cancelled, "the run was stopped");
  carry_out(table_.want(domain, io::Loop::now()));
  while (!stop.stop_requested() && !is_stopping_) {
    if (const auto found = table_.find(domain)) {
      acquired = *found;
      break;
    }
    if (const auto refused = refused_.find(domain); refused != refused_.end()) {
      acquired = std::unexpected(refused->second);
      break;
    }
    if (!co_await changed_.wait(stop)) break;
  }
  if (--waiting_[domain] == 0) {
    waiting_.erase(domain);
    refused_.erase(domain);
    if (!acquired) table_.forget(domain);
  }
  co_return acquired;
}

void GuestProcesses::carry_out(ProcessTable::Actions actions) {
  while (!actions.end.empty() || !actions.start.empty()) {
    ProcessTable::Actions more;
    for (const ProcessId id : actions.end)
      zygote_.end(id);
    for (const ProcessTable::Start& order : actions.start) {
      const Result<> started = start(order);
      if (!started) {
        refused_.insert_or_assign(order.domain, started.error());
        ProcessTable::Actions next = table_.ended(order.process, io::Loop::now());
        std::ranges::move(next.end, std::back_inserter(more.end));
        std::ranges::move(next.start, std::back_inserter(more.start));
      }
      changed_.notify_all();
    }
    actions = std::move(more);
  }
  look_later();
}

Result<> GuestProcesses::start(const ProcessTable::Start& order) {
  const auto failed = [&order](Error error) {
    return std::unexpected(std::move(error).in(
        fmt::format("start a guest process of namespace {}", order.domain.label())));
  };
  if (is_stopping_) return failed(Error(ErrorKind::Cancelled, "the host is stopping"));
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return failed(
        Error(ErrorKind::Unavailable, "make a socket: " + std::generic_category().message(errno)));
  }
  const budget::Accounts* const accounts = engine_.accounts();
  const std::uint64_t memory_bytes_max =
      accounts == nullptr ? limits::kGuestRunsMax * limits::kGuestMemoryBytesMax
      : options_.isolation == Isolation::Shared
          ? accounts->limits().host_bytes_max
          : std::min(accounts->limits().host_bytes_max, accounts->limits().tenant_bytes_max);
  Result<> forked = zygote_.fork({.process = order.process,
                                  .thread_count = options_.thread_count,
                                  .memory_bytes_max = memory_bytes_max},
                                 ends[1], io::Loop::now());
  if (!forked) {
    ::close(ends[0]);
    return failed(std::move(forked).error());
  }
  auto process = std::make_unique<Process>(Process{.id = order.process, .domain = order.domain});
  process->channel = std::make_unique<GuestProcess>(
      loop_, ends[0], options_.patience,
      GuestProcess::Events{
          .on_message = [this, id = order.process](
                            protocol::FromGuest message) { hear(id, std::move(message)); },
          .on_over = [this, id = order.process](
                         std::optional<Error> breach) { on_over(id, std::move(breach)); }});
  processes_.emplace(order.process, std::move(process));
  count_.set(static_cast<double>(processes_.size()));
  started_.add();
  return {};
}

Result<GuestProcesses::Handed> GuestProcesses::hand_over(
    Process& process, const std::shared_ptr<const wasm::Module>& module) {
  const auto known = process.modules.find(module);
  if (known != process.modules.end()) {
    known->second.used = last_run_ + 1;
    return known->second;
  }
  const int descriptor = HANGAR_TRY(wasm::open_native_code(*module));
  std::erase_if(process.modules, [&process](const auto& entry) {
    if (!entry.first.expired()) return false;
    process.channel->drop_module(entry.second.number);
    return true;
  });
  if (process.modules.size() >= protocol::kModulesMax) {
    const auto oldest = std::ranges::min_element(
        process.modules, {}, [](const auto& entry) { return entry.second.used; });
    process.channel->drop_module(oldest->second.number);
    process.modules.erase(oldest);
  }
  const std::uint64_t number = ++last_module_;
  process.channel->load_module(number, descriptor);
  const Handed handed{.number = number, .used = last_run_ + 1};
  process.modules.emplace(module, handed);
  return handed;
}

void GuestProcesses::learn_memory(ProcessId id, const ModuleRef& module, std::uint64_t bytes) {
  const auto process = processes_.find(id);
  if (process == processes_.end()) return;
  const auto handed = process->second->modules.find(module);
  if (handed != process->second->modules.end()) handed->second.usual_bytes = bytes;
}

void GuestProcesses::look_later() {
  const std::optional<Instant> at = table_.look_at();
  if (!at || is_stopping_ || (look_at_ && *look_at_ <= *at)) return;
  look_at_ = at;
  look_timer_ = loop_.after(std::max(Duration::zero(), Duration(*at - io::Loop::now())), [this] {
    look_at_.reset();
    carry_out(table_.look(io::Loop::now()));
  });
}

void GuestProcesses::hear(ProcessId id, protocol::FromGuest message) {
  Process& process = *processes_.at(id);
  std::visit([this, &process](auto& one) { hear_one(process, std::move(one)); }, message);
}

void GuestProcesses::hear_one(Process& process, protocol::LookUp message) {
  const std::shared_ptr<Run>& run = process.runs.at(message.run);
  loop_.spawn(answer(process.id, run,
                     run->lookups->lookup({.name = std::move(message.name),
                                           .namespace_ = std::move(message.namespace_),
                                           .kind = std::move(message.kind),
                                           .api_version = std::move(message.api_version)})));
}

void GuestProcesses::hear_one(Process& process, protocol::MapKind message) {
  const std::shared_ptr<Run>& run = process.runs.at(message.run);
  loop_.spawn(answer(process.id, run,
                     run->lookups->rest_mapping(std::move(message.group_or_api_version),
                                                std::move(message.kind))));
}

io::Task<void> GuestProcesses::answer(ProcessId id, std::shared_ptr<Run> run,
                                      io::Task<flight::LookupAnswer> question) {
  run->is_looking_up = true;
  flight::LookupAnswer answer = co_await std::move(question);
  run->is_looking_up = false;
  run->looked_up.notify_all();
  const auto process = processes_.find(id);
  if (process == processes_.end()) co_return;
  if (answer.body.size() > protocol::kAnswerBytesMax) {
    answer = {.state = flight::LookupState::Error, .body = "the answer is too large"};
  }
  process->second->channel->answer(
      protocol::Found{.run = run->number,
                      .state = static_cast<std::uint32_t>(answer.state),
                      .body = std::move(answer.body)});
}

void GuestProcesses::hear_one(Process& process, const protocol::AskMemory& message) {
  Run& run = *process.runs.at(message.run);
  protocol::MemoryAnswer answer{.run = message.run};
  if (run.memory && message.bytes > run.memory->bytes()) {
    const auto resized = run.memory->resize(message.bytes);
    if (!resized) answer.refusal = budget::to_text(resized.error());
  }
  process.channel->answer(answer);
}

void GuestProcesses::hear_one(Process& process, protocol::EndRun message) {
  const std::shared_ptr<Run> run = process.runs.extract(message.run).mapped();
  if (message.is_error) {
    run->done.set(fail(kind_of(message.kind, run->stop.stop_requested()),
                       one_line(std::move(message.reason))));
  } else {
    constexpr auto kMost = static_cast<std::uint64_t>(Duration::max().count());
    run->done.set(flight::Output{
        .exit_code = message.exit_code,
        .stdout_bytes = std::move(message.stdout_bytes),
        .stderr_bytes = std::move(message.stderr_bytes),
        .cpu_time = Duration(static_cast<Duration::rep>(std::min(message.cpu_nanoseconds, kMost))),
        .memory_bytes = message.memory_bytes});
  }
  carry_out(table_.end_run(process.id, io::Loop::now()));
}

void GuestProcesses::hear_one(Process& /*process*/, const protocol::Pong& /*message*/) {}

void GuestProcesses::on_over(ProcessId id, std::optional<Error> breach) {
  // Its runs fail when the process is gone and the cause is known.
  processes_.at(id)->breach = std::move(breach);
  table_.give_up(id);
  zygote_.end(id);
}

void GuestProcesses::on_standing(const protocol::Standing& standing) {
  landlock_.set(standing.landlock_version);
  system_call_filter_.set(standing.has_system_call_filter ? 1 : 0);
  log_.info("guest processes are ready",
            {{"landlock", static_cast<std::int64_t>(standing.landlock_version)},
             {"system_call_filter", standing.has_system_call_filter}});
  if (standing.landlock_version == 0) {
    log_.warning("this kernel has no Landlock: guest processes are closed off without it", {});
  }
}

void GuestProcesses::on_ended(ProcessId id, const Error& how) {
  const auto node = processes_.extract(id);
  count_.set(static_cast<double>(processes_.size()));
  if (!node.empty()) {
    Process& process = *node.mapped();
    process.channel->close();
    const bool is_broken = process.breach || !process.runs.empty();
    Error why(process.breach ? process.breach->kind() : how.kind(),
              process.breach ? process.breach->message() : how.message());
    why =
        std::move(why).in(fmt::format("the guest process of namespace {}", process.domain.label()));
    if (is_broken) {
      broken_.add();
      log_.warning("a guest process was lost", {{"namespace", process.domain.label()},
                                                {"runs", process.runs.size()},
                                                {"error", why.message()}});
    }
    for (const auto& [number, run] : process.runs)
      run->done.set(std::unexpected(why));
    process.runs.clear();
  }
  carry_out(table_.ended(id, io::Loop::now()));
}

void GuestProcesses::on_gone(const Error& how) {
  if (!is_stopping_) log_.warning("all guest processes are lost", {{"error", how.message()}});
  // Not those that are started meanwhile in their places.
  std::vector<ProcessId> lost;
  for (const auto& [id, process] : processes_)
    lost.push_back(id);
  for (const ProcessId id : lost)
    table_.give_up(id);
  for (const ProcessId id : lost)
    on_ended(id, how);
  changed_.notify_all();
}

}  // namespace hangar::domains
