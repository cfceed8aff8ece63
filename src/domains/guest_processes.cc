#include "domains/guest_processes.h"

#include "abi/flight/command.h"
#include "abi/flight/lookups.h"
#include "abi/statemachine/program.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/rates.h"
#include "budget/reservation_queue.h"
#include "budget/stepped_reservation.h"
#include "domains/guest_process.h"
#include "domains/process_table.h"
#include "domains/said.h"
#include "domains/zygote.h"
#include "guest_protocol/conversation.h"
#include "guest_protocol/messages.h"
#include "guest_protocol/zygote_messages.h"
#include "io/descriptor.h"
#include "io/event.h"
#include "io/exception.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/native_code.h"
#include "wasm/snapshot/handed_module.h"
#include "wasm/snapshot/page_range.h"
#include "wasm/snapshot/sleepable_module.h"

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
#include <set>
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
namespace statemachine = abi::statemachine;

using Work = protocol::Conversation::Work;

// A run is bounded by its processor time, which the process counts. The host sees only the elapsed
// time: it is longer when the processors are busy, and for the first question to a machine in
// a process.
constexpr int kRunTimeFactor = 16;
constexpr std::chrono::seconds kRunTimeMin{30};

// The own memory of a process is counted in steps of this size. A process with less than the second
// size keeps little of its machines.
constexpr std::uint64_t kOwnCountedStep = 64 * limits::kKiB;
constexpr std::uint64_t kOwnBytesUsual = 4 * limits::kMiB;
// The most that a process may have of it where there is no room to count it, as for the zygote
// (guest/zygote.cc). The zygote's bound has all memory that guests of the tenant may have, which
// other processes have already where there is no room. Reports that have waited for the loop arrive
// together, and may be of a guest that has ended since: so long it must have had so much.
constexpr std::uint64_t kOwnUncountedBytesMax = 256 * limits::kMiB;
constexpr std::chrono::milliseconds kOwnUncountedMin{200};

std::optional<Duration> run_time_max(std::optional<Duration> processor_time_max) {
  if (!processor_time_max) return std::nullopt;
  return std::max<Duration>(kRunTimeMin, kRunTimeFactor * *processor_time_max);
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

}  // namespace

// One run in progress. Its coroutine waits for `done`.
struct GuestProcesses::Run {
  Run(io::Loop& loop, flight::Lookups* lookups_in, std::stop_token stop_in)
      : lookups(lookups_in), stop(std::move(stop_in)), done(loop), looked_up(loop) {}

  flight::Lookups* const lookups;
  const std::stop_token stop;
  std::uint64_t number = 0;
  std::uint64_t memory_bytes_max = 0;
  std::optional<budget::Reservation> memory;  // Unset without accounts.
  bool is_looking_up = false;
  bool is_lost = false;  // Its process has exited.
  Duration used{};       // Once it has ended: processor time, or the elapsed time.
  io::OneShot<Result<flight::Output>> done;
  io::Event looked_up;
};

// A module or a machine that was handed to a process.
struct GuestProcesses::Handed {
  std::uint64_t number = 0;
  std::uint64_t used = 0;  // The number of the last run that used it.
  // The memory of its last run there, as the process reports it, and what that was granted: used
  // for runs in that process only, never for another domain.
  std::uint64_t usual_bytes = 0;
  std::size_t bundle_bytes = 0;  // Size of a machine's bundle.
};

struct GuestProcesses::Process {
  ProcessId id = 0;
  Domain domain;
  std::unique_ptr<GuestProcess> channel;
  std::map<std::uint64_t, std::shared_ptr<Run>> runs;
  std::map<std::uint64_t, Lodger*> lodger_runs;
  std::set<Lodger*> lodgers;
  std::map<ModuleRef, Handed, std::owner_less<ModuleRef>> modules;
  std::map<SleepableRef, Handed, std::owner_less<SleepableRef>> sleepables;
  std::map<ProgramRef, Handed, std::owner_less<ProgramRef>> machines;
  std::optional<Error> breach;
  // Memory that it takes besides that of its guests: as last reported, and as counted.
  std::uint64_t own_bytes = 0;
  std::uint64_t counted_bytes = 0;
  std::optional<budget::SteppedReservation> counted;  // Unset without accounts.
  std::optional<Instant> has_too_much_since;          // Of what there was no room to count.

  // False if there is no room: nothing changes.
  bool count(std::uint64_t bytes) {
    if (!counted || counted->set(bytes)) return false;
    counted_bytes = bytes;
    return true;
  }
  // Counts so many bytes less while `reserve` reserves them for a guest: they may be what the
  // process has already, such as a machine's memory between two questions. Then, a report tells.
  template <class Reserve>
  auto give_way(std::uint64_t bytes, Reserve reserve) {
    const std::uint64_t before = counted_bytes;
    count(before - std::min(before, bytes));
    auto result = reserve();
    count(before);
    return result;
  }
};

// The work of a run.
class GuestProcesses::Job {
 public:
  struct Bounds {
    budget::Consumer consumer;
    std::uint64_t memory_bytes_min = 0;
    std::uint64_t memory_bytes_max = 0;
    std::optional<Duration> timeout;
    Work work = Work::Flight;
  };
  explicit Job(Bounds bounds_in) : bounds(std::move(bounds_in)) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  // Sends the module or machine that the job needs to the process.
  [[nodiscard]] virtual io::Task<Result<Handed>> hand_over(GuestProcesses& processes,
                                                           ProcessId id) = 0;
  virtual void begin(GuestProcess& channel, const Handed& handed, const Run& run,
                     std::uint64_t memory_bytes, const protocol::Conversation::Terms& terms) = 0;
  // The record of that module or machine in the process, for the memory of the next run there.
  [[nodiscard]] virtual Handed* handed_to(Process& process) = 0;

  const Bounds bounds;
};

class GuestProcesses::CommandJob final : public Job {
 public:
  CommandJob(std::shared_ptr<const wasm::Module> module, flight::Command command)
      : Job({.consumer = command.consumer,
             .memory_bytes_min = module->memory_bytes_min(),
             .memory_bytes_max = command.memory_bytes_max,
             .timeout = run_time_max(command.timeout),
             .work = command.role == flight::Role::Flight ? Work::Flight : Work::Converter}),
        module_(std::move(module)),
        command_(std::move(command)) {}

  io::Task<Result<Handed>> hand_over(GuestProcesses& processes, ProcessId id) override {
    co_return processes.hand_over(*processes.processes_.at(id), module_);
  }
  void begin(GuestProcess& channel, const Handed& handed, const Run& run,
             std::uint64_t memory_bytes, const protocol::Conversation::Terms& terms) override {
    channel.begin(
        run.number,
        protocol::BeginRun{.run = run.number,
                           .module = handed.number,
                           .contract = command_.role == flight::Role::Flight
                                           ? protocol::Contract::Flight
                                           : protocol::Contract::Converter,
                           .tenant = cut_name(bounds.consumer.tenant.namespace_name()),
                           .consumer = cut_name(bounds.consumer.name),
                           .arguments = std::move(command_.arguments),
                           .environment = std::move(command_.environment),
                           .stdin_bytes = std::move(command_.stdin_bytes),
                           .timeout_nanoseconds = command_.timeout ? command_.timeout->count() : -1,
                           .memory_bytes_max = command_.memory_bytes_max,
                           .memory_bytes = memory_bytes},
        terms);
  }
  Handed* handed_to(Process& process) override {
    const auto found = process.modules.find(module_);
    return found == process.modules.end() ? nullptr : &found->second;
  }

 private:
  const std::shared_ptr<const wasm::Module> module_;
  flight::Command command_;
};

class GuestProcesses::QuestionJob final : public Job {
 public:
  QuestionJob(std::shared_ptr<const statemachine::Program> program, statemachine::Question question,
              budget::Consumer consumer)
      : Job({.consumer = std::move(consumer),
             .memory_bytes_min = program->shape == statemachine::Shape::Command
                                     ? program->module->memory_bytes_min()
                                     : program->sleepable->memory_bytes_min(),
             .memory_bytes_max = program->limits.memory_bytes_max,
             .timeout = run_time_max(program->limits.cpu_time_max),
             .work = Work::Machine}),
        program_(std::move(program)),
        question_(std::move(question)) {}

  io::Task<Result<Handed>> hand_over(GuestProcesses& processes, ProcessId id) override {
    return processes.hand_over(id, program_, bounds.consumer);
  }
  void begin(GuestProcess& channel, const Handed& handed, const Run& run,
             std::uint64_t memory_bytes, const protocol::Conversation::Terms& terms) override {
    channel.begin(
        run.number,
        protocol::AskMachine{.run = run.number,
                             .machine = handed.number,
                             .request = static_cast<protocol::MachineRequest>(question_.request),
                             .first = std::move(question_.first),
                             .second = std::move(question_.second),
                             .tenant = cut_name(bounds.consumer.tenant.namespace_name()),
                             .consumer = cut_name(bounds.consumer.name),
                             .memory_bytes = memory_bytes},
        terms);
  }
  Handed* handed_to(Process& process) override {
    const auto found = process.machines.find(program_);
    return found == process.machines.end() ? nullptr : &found->second;
  }

 private:
  const std::shared_ptr<const statemachine::Program> program_;
  statemachine::Question question_;
};

GuestProcesses::GuestProcesses(const Parts& parts, Options options,
                               std::optional<ZygoteProcess> zygote)
    : loop_(parts.engine.loop()),
      engine_(parts.engine),
      log_(parts.log),
      options_(std::move(options)),
      count_(parts.metrics.gauge("hangar_guest_processes", "guest processes that there are")),
      alone_count_(parts.metrics.gauge("hangar_guest_processes_alone",
                                       "guest processes of operators that share theirs with "
                                       "nobody")),
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
      slices_(loop_, engine_.rates()),
      changed_(loop_),
      slots_(loop_, {.slots = limits::kGuestRunsMax}),
      zygote_(loop_, options_.program, std::move(zygote),
              {.on_standing = [this](const protocol::Standing& standing) { on_standing(standing); },
               .on_ended = [this](ProcessId id, const Error& how) { on_ended(id, how); },
               .on_memory = [this](ProcessId id, std::uint64_t bytes) { on_memory(id, bytes); },
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

Domain GuestProcesses::domain_of(const budget::Tenant& tenant, const std::string& alone) const {
  if (options_.isolation == Isolation::Shared && alone.empty()) {
    return {.tenant = budget::Tenant::of_namespace({})};
  }
  return {.tenant = tenant, .alone = alone};
}

io::Task<Result<flight::Output>> GuestProcesses::run(std::shared_ptr<const wasm::Module> module,
                                                     flight::Command command,
                                                     flight::Lookups* lookups,
                                                     std::stop_token stop) {
  HANGAR_CO_TRY(check_size(command));
  CommandJob job(std::move(module), std::move(command));
  co_return co_await carry_out(job, std::make_shared<Run>(loop_, lookups, std::move(stop)));
}

io::Task<statemachine::Answer> GuestProcesses::ask(
    std::shared_ptr<const statemachine::Program> program, statemachine::Question question,
    budget::Consumer consumer, std::stop_token stop) {
  const std::size_t bytes = std::max(question.first.size(), question.second.size());
  if (bytes > protocol::kQuestionBytesMax) {
    co_return statemachine::Answer{
        .text = fail(ErrorKind::LimitExceeded,
                     fmt::format("a machine is to read {} bytes, the most is {}", bytes,
                                 protocol::kQuestionBytesMax))};
  }
  const auto run = std::make_shared<Run>(loop_, nullptr, std::move(stop));
  QuestionJob job(std::move(program), std::move(question), std::move(consumer));
  Result<flight::Output> output = co_await carry_out(job, run);
  statemachine::Answer answer{.text = std::string(), .cost = {.cpu = run->used}};
  if (output) {
    answer.text = std::move(output->stdout_bytes);
    answer.log = std::move(output->stderr_bytes);
    answer.cost.memory_bytes = output->memory_bytes;
  } else if (run->is_lost && output.error().kind() != ErrorKind::Cancelled) {
    // Whichever run caused the error, this question may be retried.
    answer.text = fail(ErrorKind::Unavailable, output.error().message());
  } else {
    answer.text = std::unexpected(std::move(output).error());
  }
  co_return answer;
}

io::Task<Result<flight::Output>> GuestProcesses::carry_out(Job& job, std::shared_ptr<Run> run) {
  const Job::Bounds& bounds = job.bounds;
  run->memory_bytes_max = bounds.memory_bytes_max + wasm::kInstanceBytes;
  // Reserve memory before the slot, as everywhere: a run that waits for memory then blocks
  // no other.
  run->memory = HANGAR_CO_TRY(co_await engine_.reserve(
      bounds.consumer, std::min(bounds.memory_bytes_min, bounds.memory_bytes_max), run->stop));
  const Error gone(ErrorKind::Unavailable, "its guest process has just exited");
  const ProcessId id =
      HANGAR_CO_TRY(co_await acquire(domain_of(bounds.consumer.tenant, {}), run->stop));
  if (!processes_.contains(id)) co_return std::unexpected(gone);
  // Keeps the process while the run waits for its slot and while a module is handed over. The slot
  // comes after the process, so that runs that wait for processes leave the slots to those that
  // have one.
  table_.begin_run(id);
  const Result<budget::FairSlots::Slot> slot =
      co_await slots_.acquire(bounds.consumer, {}, run->stop);
  Result<Handed> handed = std::unexpected(gone);
  if (!slot) {
    handed = fail(slot.error().kind(), "the run was stopped");
  } else if (processes_.contains(id)) {
    handed = co_await job.hand_over(*this, id);
  }
  const auto found = processes_.find(id);
  if (!handed || found == processes_.end()) {
    carry_out(table_.end_run(id, io::Loop::now()));
    co_return std::unexpected(handed ? gone : std::move(handed).error());
  }
  std::uint64_t memory_bytes = run->memory_bytes_max;  // Without accounts: its limit.
  if (run->memory) {
    // Reserve the memory that it will most likely need. It can also work with less.
    const std::uint64_t usual_bytes = std::min(handed->usual_bytes, run->memory_bytes_max);
    if (usual_bytes > run->memory->bytes()) {
      static_cast<void>(found->second->give_way(usual_bytes - run->memory->bytes(), [&] {
        return run->memory->resize(usual_bytes).has_value();
      }));
    }
    memory_bytes = run->memory->bytes();
  }
  run->number = ++last_run_;
  found->second->runs.emplace(run->number, run);
  const Instant began = io::Loop::now();
  job.begin(
      *found->second->channel, *handed, *run, memory_bytes,
      {.work = bounds.work, .memory_bytes_max = run->memory_bytes_max, .timeout = bounds.timeout});

  Result<flight::Output> output = fail(ErrorKind::Cancelled, "the run was stopped");
  {
    const std::stop_callback on_stop(run->stop, [this, id, number = run->number] {
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
  // A run that failed reports nothing; a run is on one thread at a time.
  run->used = output ? std::clamp(output->cpu_time, Duration::zero(), ended - began)
                     : Duration(ended - began);
  if (budget::Rates* const rates = engine_.rates()) {
    rates->charge(bounds.consumer.tenant, static_cast<std::uint64_t>(run->used.count()), ended);
  }
  if (output) {
    // A process may report any value; clamp it, because it is added to sums.
    const Duration most = (ended - began) * options_.thread_count;
    output->cpu_time = std::clamp(output->cpu_time, Duration::zero(), most);
    output->memory_bytes = std::min(output->memory_bytes, bounds.memory_bytes_max);
    const auto process = processes_.find(id);
    Handed* const known = process == processes_.end() ? nullptr : job.handed_to(*process->second);
    if (known != nullptr) {
      const std::uint64_t used_bytes = output->memory_bytes + wasm::kInstanceBytes;
      // What it was granted includes its tables, which no report does: with that much the next run
      // need not ask. A run that needs less again gets less.
      known->usual_bytes = std::clamp(run->memory ? run->memory->bytes() : 0, used_bytes,
                                      used_bytes + used_bytes / 2);
    }
  }
  co_return output;
}

io::Task<Result<GuestProcesses::ProcessId>> GuestProcesses::acquire(Domain domain,
                                                                    std::stop_token stop) {
  ++waiting_[domain];
  bool is_late = false;
  const io::Loop::Timer limit = loop_.after(options_.process_wait, [this, &is_late] {
    is_late = true;
    changed_.notify_all();
  });
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
    if (is_late) {
      acquired =
          fail(ErrorKind::Unavailable,
               fmt::format("no guest process has become free in {}: {}, for guests that do not "
                           "sleep or runs that take long",
                           to_go_duration(options_.process_wait),
                           domain.is_alone() ? "operators with spec.isolation: Operator, or other "
                                               "namespaces, use all processes that they may have"
                                             : "other namespaces use all processes"));
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
  while (!actions.end.empty() || !actions.start.empty() || !actions.drain.empty()) {
    ProcessTable::Actions more;
    for (const ProcessId id : actions.end)
      zygote_.end(id);
    for (const ProcessId id : actions.drain) {
      const auto process = processes_.find(id);
      if (process == processes_.end()) continue;
      for (Lodger* const lodger : process->second->lodgers)
        lodger->on_notice();
    }
    for (const ProcessTable::Start& order : actions.start) {
      const Result<> started = start(order);
      // A failed start frees its place, from which further actions may follow.
      if (!started) {
        refused_.insert_or_assign(order.domain, started.error());
        ProcessTable::Actions next = table_.ended(order.process, io::Loop::now());
        std::ranges::move(next.end, std::back_inserter(more.end));
        std::ranges::move(next.start, std::back_inserter(more.start));
        std::ranges::move(next.drain, std::back_inserter(more.drain));
      }
      changed_.notify_all();
    }
    actions = std::move(more);
  }
  look_later();
}

Result<> GuestProcesses::start(const ProcessTable::Start& order) {
  const auto failed = [&order](Error error) {
    return std::unexpected(
        std::move(error).in(fmt::format("start a guest process of {}", order.domain.to_text())));
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
      : options_.isolation == Isolation::Shared && !order.domain.is_alone()
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
      loop_, slices_, order.domain.tenant, ends[0], options_.patience,
      GuestProcess::Events{
          .on_message = [this, id = order.process](
                            protocol::FromGuest message) { return hear(id, std::move(message)); },
          .on_over = [this, id = order.process](
                         std::optional<Error> breach) { on_over(id, std::move(breach)); }});
  if (budget::ReservationQueue* const memory = engine_.memory()) {
    process->counted.emplace(memory->accounts(), consumer_of_own_memory(order.domain.tenant),
                             kOwnCountedStep);
  }
  processes_.emplace(order.process, std::move(process));
  count();
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
  drop_modules(process);
  const std::uint64_t number = ++last_module_;
  process.channel->load_module(number, descriptor);
  Handed handed{.number = number, .used = last_run_ + 1};
  process.modules.emplace(module, handed);
  return handed;
}

void GuestProcesses::count() {
  count_.set(static_cast<double>(processes_.size()));
  alone_count_.set(static_cast<double>(std::ranges::count_if(
      processes_, [](const auto& entry) { return entry.second->domain.is_alone(); })));
}

void GuestProcesses::drop_modules(Process& process) {
  const auto drop_expired = [&process](auto& modules) {
    std::erase_if(modules, [&process](const auto& entry) {
      if (!entry.first.expired()) return false;
      process.channel->drop_module(entry.second.number);
      return true;
    });
  };
  drop_expired(process.modules);
  drop_expired(process.sleepables);
  if (process.modules.size() + process.sleepables.size() < protocol::kModulesMax) return;
  const auto drop_oldest = [&process](auto& modules) {
    const auto oldest =
        std::ranges::min_element(modules, {}, [](const auto& entry) { return entry.second.used; });
    process.channel->drop_module(oldest->second.number);
    modules.erase(oldest);
  };
  // Drops a module of commands first: guests in the process keep their modules alive, so that
  // dropping one of those may free less.
  if (process.modules.empty()) {
    drop_oldest(process.sleepables);
  } else {
    drop_oldest(process.modules);
  }
}

io::Task<Result<GuestProcesses::LodgingId>> GuestProcesses::take_in(budget::Tenant tenant,
                                                                    std::string alone,
                                                                    Lodger& lodger,
                                                                    std::stop_token stop) {
  const ProcessId id = HANGAR_CO_TRY(co_await acquire(domain_of(tenant, alone), std::move(stop)));
  const auto found = processes_.find(id);
  if (found == processes_.end()) {
    co_return fail(ErrorKind::Unavailable, "its guest process has just exited");
  }
  found->second->lodgers.insert(&lodger);
  table_.begin_run(id, lodger.stay());
  co_return id;
}

void GuestProcesses::leave(LodgingId lodging, Lodger& lodger) {
  const auto found = processes_.find(lodging);
  if (found == processes_.end() || found->second->lodgers.erase(&lodger) == 0) return;
  carry_out(table_.end_run(lodging, io::Loop::now(), lodger.stay()));
}

GuestProcess& GuestProcesses::channel(LodgingId lodging) {
  return *processes_.at(lodging)->channel;
}

io::Task<Result<std::uint64_t>> GuestProcesses::hand_over(
    LodgingId lodging, std::shared_ptr<const wasm::SleepableModule> module,
    budget::Consumer whose) {
  const auto find = [&]() -> std::optional<std::uint64_t> {
    const auto process = processes_.find(lodging);
    if (process == processes_.end()) return std::nullopt;
    const auto known = process->second->sleepables.find(module);
    if (known == process->second->sleepables.end()) return std::nullopt;
    known->second.used = last_run_ + 1;
    return known->second.number;
  };
  if (const std::optional<std::uint64_t> known = find()) co_return *known;
  wasm::HandedModule handed = HANGAR_CO_TRY(co_await wasm::hand_over(*module, std::move(whose)));
  // Another task may have handed it over meanwhile.
  if (const std::optional<std::uint64_t> known = find()) co_return *known;
  const auto found = processes_.find(lodging);
  if (found == processes_.end()) {
    co_return fail(ErrorKind::Unavailable, "its guest process has just exited");
  }
  Process& process = *found->second;
  const wasm::ModuleDescription& description = handed.description;
  const std::uint64_t number = ++last_module_;
  const auto digest = description.digest.bytes();
  protocol::LoadSleepable order{
      .module = number,
      .digest = std::string(reinterpret_cast<const char*>(digest.data()), digest.size()),
      .obstacle = protocol::cut_reason(description.obstacle.value_or("")),
      .global_count = description.global_count,
      .has_start = description.has_start,
      .image_number = description.image_number};
  for (const wasm::PageRange& range : description.image_pages)
    order.image_pages.push_back({.first = range.first, .count = range.count});
  std::vector<io::Descriptor> descriptors;
  descriptors.push_back(std::move(handed.code));
  if (handed.image.is_open()) descriptors.push_back(std::move(handed.image));
  drop_modules(process);
  process.channel->load(order, std::move(descriptors));
  process.sleepables.emplace(module, Handed{.number = number, .used = last_run_ + 1});
  co_return number;
}

io::Task<Result<GuestProcesses::Handed>> GuestProcesses::hand_over(
    ProcessId id, const std::shared_ptr<const statemachine::Program>& program,
    budget::Consumer whose) {
  const auto find = [&]() -> std::optional<Handed> {
    const auto process = processes_.find(id);
    if (process == processes_.end()) return std::nullopt;
    const auto known = process->second->machines.find(program);
    if (known == process->second->machines.end()) return std::nullopt;
    known->second.used = last_run_ + 1;
    return known->second;
  };
  if (const std::optional<Handed> known = find()) co_return *known;
  std::uint64_t module = 0;
  if (program->shape == statemachine::Shape::Command) {
    module = HANGAR_CO_TRY(hand_over(*processes_.at(id), program->module)).number;
  } else {
    module = HANGAR_CO_TRY(co_await hand_over(id, program->sleepable, std::move(whose)));
  }
  // Another task may have handed it over meanwhile.
  if (const std::optional<Handed> known = find()) co_return *known;
  Process& process = *processes_.at(id);
  const Handed handed{.number = ++last_machine_,
                      .used = last_run_ + 1,
                      .bundle_bytes = program->bundle ? program->bundle->size() : 0};
  drop_machines(process, handed.bundle_bytes);
  process.channel->tell(
      protocol::LoadMachine{.machine = handed.number,
                            .module = module,
                            .shape = static_cast<protocol::MachineShape>(program->shape),
                            .bundle = program->bundle ? *program->bundle : std::string(),
                            .function = program->function,
                            .allocator = program->allocator,
                            .returns = static_cast<protocol::MachineReturns>(program->returns),
                            .has_initialize = program->has_initialize,
                            .has_initial_state = program->initial_state.has_value(),
                            .initial_state = static_cast<protocol::MachineReturns>(
                                program->initial_state.value_or(statemachine::Returns::Address)),
                            .cpu_nanoseconds_max = program->limits.cpu_time_max.count(),
                            .memory_bytes_max = program->limits.memory_bytes_max});
  process.machines.emplace(program, handed);
  co_return handed;
}

void GuestProcesses::drop_machines(Process& process, std::size_t bundle_bytes) {
  const auto drop = [&process](auto machine) {
    process.channel->tell(protocol::DropMachine{.machine = machine->second.number});
    return process.machines.erase(machine);
  };
  std::size_t all_bytes = bundle_bytes;
  for (auto machine = process.machines.begin(); machine != process.machines.end();) {
    if (machine->first.expired()) {
      machine = drop(machine);
    } else {
      all_bytes += machine->second.bundle_bytes;
      ++machine;
    }
  }
  while (!process.machines.empty() && (process.machines.size() >= protocol::kMachinesMax ||
                                       all_bytes > protocol::kBundlesBytesMax)) {
    const auto oldest = std::ranges::min_element(
        process.machines, {}, [](const auto& entry) { return entry.second.used; });
    all_bytes -= oldest->second.bundle_bytes;
    drop(oldest);
  }
}

std::uint64_t GuestProcesses::begin_run(LodgingId lodging, Lodger& lodger) {
  processes_.at(lodging)->lodger_runs.emplace(++last_run_, &lodger);
  return last_run_;
}

void GuestProcesses::end_run(LodgingId lodging, std::uint64_t run) {
  const auto found = processes_.find(lodging);
  if (found != processes_.end()) found->second->lodger_runs.erase(run);
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

Result<> GuestProcesses::hear(ProcessId id, protocol::FromGuest message) {
  Process& process = *processes_.at(id);
  return std::visit([this, &process](auto& one) { return this->hear_one(process, std::move(one)); },
                    message);
}

template <class Message>
Result<> GuestProcesses::hear_one(Process& process, Message message) {
  return process.lodger_runs.at(message.run)->hear(std::move(message));
}

Result<> GuestProcesses::hear_one(Process& process, protocol::LookUp message) {
  const std::shared_ptr<Run>& run = process.runs.at(message.run);
  loop_.spawn(answer(process.id, run,
                     run->lookups->lookup({.name = std::move(message.name),
                                           .namespace_ = std::move(message.namespace_),
                                           .kind = std::move(message.kind),
                                           .api_version = std::move(message.api_version)})));
  return {};
}

Result<> GuestProcesses::hear_one(Process& process, protocol::MapKind message) {
  const std::shared_ptr<Run>& run = process.runs.at(message.run);
  loop_.spawn(answer(process.id, run,
                     run->lookups->rest_mapping(std::move(message.group_or_api_version),
                                                std::move(message.kind))));
  return {};
}

io::Task<void> GuestProcesses::answer(ProcessId id, std::shared_ptr<Run> run,
                                      io::Task<flight::LookupAnswer> question) {
  run->is_looking_up = true;
  // The run waits for the end of this task, so no exception may escape.
  Result<flight::LookupAnswer> asked = co_await io::contained(std::move(question));
  flight::LookupAnswer answer =
      asked ? *std::move(asked)
            : flight::LookupAnswer{.state = flight::LookupState::Error,
                                   .body = std::move(asked).error().message()};
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

Result<> GuestProcesses::hear_one(Process& process, const protocol::AskMemory& message) {
  const auto found = process.runs.find(message.run);
  Lodger* const lodger =
      found == process.runs.end() ? process.lodger_runs.at(message.run) : nullptr;
  const std::uint64_t reserved_bytes = lodger != nullptr       ? lodger->reserved_bytes()
                                       : found->second->memory ? found->second->memory->bytes()
                                                               : 0;
  return process.give_way(message.bytes - std::min(message.bytes, reserved_bytes),
                          [&]() -> Result<> {
                            if (lodger != nullptr) return lodger->hear(message);
                            process.channel->answer(answer_of(message, found->second->memory));
                            return {};
                          });
}

Result<> GuestProcesses::hear_one(Process& process, protocol::EndRun message) {
  const std::shared_ptr<Run> run = process.runs.extract(message.run).mapped();
  if (message.is_error) {
    run->done.set(fail(believed(message.kind, run->stop.stop_requested()),
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
  return {};
}

Result<> GuestProcesses::hear_one(Process& /*process*/, const protocol::Pong& /*message*/) {
  return {};
}

void GuestProcesses::on_over(ProcessId id, std::optional<Error> breach) {
  // Its runs fail when the process has exited and the cause is known.
  processes_.at(id)->breach = std::move(breach);
  table_.give_up(id);
  zygote_.end(id);
}

void GuestProcesses::on_standing(const protocol::Standing& standing) {
  landlock_.set(standing.landlock_version);
  system_call_filter_.set(standing.has_system_call_filter ? 1 : 0);
  const Log::Fields walls = {{"landlock", static_cast<std::int64_t>(standing.landlock_version)},
                             {"system_call_filter", standing.has_system_call_filter}};
  if (options_.tells_of_walls == TellsOfWalls::No) {
    log_.debug("guest processes are ready", walls);
    return;
  }
  log_.info("guest processes are ready", walls);
  if (standing.landlock_version == 0) {
    log_.warning("this kernel has no Landlock: guest processes are closed off without it", {});
  }
}

void GuestProcesses::on_memory(ProcessId id, std::uint64_t bytes) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || !found->second->counted) return;
  Process& process = *found->second;
  std::uint64_t reserved_bytes = 0;
  for (const auto& [number, run] : process.runs)
    reserved_bytes += run->memory ? run->memory->bytes() : 0;
  for (const Lodger* const lodger : process.lodgers)
    reserved_bytes += lodger->reserved_bytes();
  const std::uint64_t own_bytes = bytes - std::min(bytes, reserved_bytes);
  // The lesser of two reports: a run may have ended since the process was measured.
  const std::uint64_t most_bytes = std::min(own_bytes, std::exchange(process.own_bytes, own_bytes));
  const bool has_room = process.count(most_bytes);
  const bool is_too_much = !has_room && most_bytes > kOwnUncountedBytesMax;
  const Instant now = io::Loop::now();
  const Instant since = is_too_much ? process.has_too_much_since.value_or(now) : now;
  process.has_too_much_since = is_too_much ? std::optional(since) : std::nullopt;
  if (now - since >= kOwnUncountedMin && !process.breach) {
    process.channel->close();
    return on_over(id, Error(ErrorKind::LimitExceeded,
                             fmt::format("killed for using {} of memory besides that of its "
                                         "guests, for which there is no room",
                                         budget::size_text(most_bytes))));
  }
  const bool is_short = !has_room || engine_.memory()->waiting_count() > 0;
  if (is_short && most_bytes > kOwnBytesUsual && !process.machines.empty()) {
    process.channel->remind(protocol::ForgetBeginnings{});
  }
}

std::size_t GuestProcesses::give_back() {
  ProcessTable::Actions actions = table_.end_idle(io::Loop::now());
  std::size_t concerned = actions.end.size();
  for (const auto& [id, process] : processes_) {
    if (std::ranges::find(actions.end, id) != actions.end.end() || process->machines.empty())
      continue;
    process->channel->remind(protocol::ForgetBeginnings{});
    ++concerned;
  }
  carry_out(std::move(actions));
  return concerned;
}

void GuestProcesses::on_ended(ProcessId id, const Error& how) {
  const auto node = processes_.extract(id);
  count();
  if (!node.empty()) {
    Process& process = *node.mapped();
    process.channel->close();
    const bool is_broken = process.breach || !process.runs.empty() || !process.lodgers.empty();
    Error why(process.breach ? process.breach->kind() : how.kind(),
              process.breach ? process.breach->message() : how.message());
    why = std::move(why).in(fmt::format("the guest process of {}", process.domain.to_text()));
    if (is_broken) {
      broken_.add();
      log_.warning("a guest process was lost", {{"namespace", process.domain.tenant.label()},
                                                {"runs", process.runs.size()},
                                                {"operators", process.lodgers.size()},
                                                {"error", why.message()}});
    }
    for (const auto& [number, run] : process.runs) {
      run->is_lost = true;
      run->done.set(std::unexpected(why));
    }
    process.runs.clear();
    process.lodger_runs.clear();
    for (Lodger* const lodger : std::exchange(process.lodgers, {}))
      lodger->on_lost(why);
  }
  carry_out(table_.ended(id, io::Loop::now()));
}

void GuestProcesses::on_gone(const Error& how) {
  if (!is_stopping_) log_.warning("all guest processes are lost", {{"error", how.message()}});
  // Not processes that are started meanwhile in their places.
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
