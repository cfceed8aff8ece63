// Runs commands of flights and machines of workflows in guest processes: one process for the guests
// of each trust domain.
#pragma once

#include "abi/flight/command.h"
#include "abi/flight/lookups.h"
#include "abi/statemachine/program.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/slices.h"
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
#include "wasm/module.h"
#include "wasm/snapshot/sleepable_module.h"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::domains {

enum class Isolation : std::uint8_t {
  None,       // No guest processes.
  Shared,     // One process for all.
  Namespace,  // One for each namespace, and one for cluster-scoped objects.
};

enum class TellsOfWalls : bool { No, Yes };

// Loop thread. When a process exits, each of its runs fails with a message; the next run of its
// domain starts in a new process.
class GuestProcesses final : public abi::flight::CommandRunner,
                             public abi::statemachine::ProgramRunner {
 public:
  struct Options {
    std::filesystem::path program;  // hangar-guest.
    Isolation isolation = Isolation::Namespace;
    std::uint32_t thread_count = 1;  // Threads of each process for guests.
    ProcessTable::Options table = {};
    // How long a run waits for a process while other domains have all of them. Guests that never
    // sleep may keep them for ever.
    Duration process_wait = std::chrono::seconds(60);
    guest_protocol::Conversation::Patience patience = {};
    // Whether the log says which walls the kernel has; No: at level debug only.
    TellsOfWalls tells_of_walls = TellsOfWalls::Yes;
  };
  // All parts outlive this object. `engine` runs none of these guests, but its accounts bound
  // them too.
  struct Parts {
    wasm::Engine& engine;
    Metrics& metrics;
    Log log;
  };

  // `zygote`: an already running one; std::nullopt: it is started on demand.
  GuestProcesses(const Parts& parts, Options options, std::optional<ZygoteProcess> zygote);
  ~GuestProcesses() override;  // After stop(), or when no run is in progress.

  [[nodiscard]] io::Task<Result<abi::flight::Output>> run(
      std::shared_ptr<const wasm::Module> module, abi::flight::Command command,
      abi::flight::Lookups* lookups, std::stop_token stop) override;

  [[nodiscard]] io::Task<abi::statemachine::Answer> ask(
      std::shared_ptr<const abi::statemachine::Program> program,
      abi::statemachine::Question question, budget::Consumer consumer,
      std::stop_token stop) override;

  // A guest that stays in a process from one run to the next. Its process is not stopped as
  // idle meanwhile.
  class Lodger {
   public:
    // Receives a message about one of its runs. GuestFault: the process breaks a rule, and
    // is killed.
    [[nodiscard]] virtual Result<> hear(guest_protocol::FromGuest message) = 0;
    // Its process has exited, so the lodger no longer lodges there. May destroy the lodger.
    virtual void on_lost(const Error& why) = 0;
    // Other domains wait for the place of its process. Must not destroy the lodger.
    virtual void on_notice() = 0;
    // Whether it leaves soon after on_notice().
    [[nodiscard]] virtual ProcessTable::Stay stay() const = 0;
    // The memory that is reserved for it there.
    [[nodiscard]] virtual std::uint64_t reserved_bytes() const = 0;

   protected:
    ~Lodger() = default;
  };
  using LodgingId = ProcessTable::Id;  // The id of the process.
  // Gives the lodger a place in the process of `tenant`'s domain or, if `alone` is not empty, in a
  // separate process under that name. Starts the process if it does not run.
  // Unavailable, Cancelled.
  [[nodiscard]] io::Task<Result<LodgingId>> take_in(budget::Tenant tenant, std::string alone,
                                                    Lodger& lodger, std::stop_token stop);
  void leave(LodgingId lodging, Lodger& lodger);
  // The lodger's process, until it leaves or is lost.
  [[nodiscard]] GuestProcess& channel(LodgingId lodging);
  // Sends the module to the process and returns its number there; `whose`: the consumer that waits
  // for it. Unavailable.
  [[nodiscard]] io::Task<Result<std::uint64_t>> hand_over(
      LodgingId lodging, std::shared_ptr<const wasm::SleepableModule> module,
      budget::Consumer whose);
  // A number for a run of the lodger. The lodger receives messages about this run until end_run().
  [[nodiscard]] std::uint64_t begin_run(LodgingId lodging, Lodger& lodger);
  void end_run(LodgingId lodging, std::uint64_t run);
  // A new number for a guest.
  [[nodiscard]] std::uint64_t next_guest() { return ++last_guest_; }
  [[nodiscard]] std::uint32_t thread_count() const { return options_.thread_count; }
  [[nodiscard]] wasm::Engine& engine() const { return engine_; }

  // Has the memory that processes of a tenant take besides the memory of their guests.
  [[nodiscard]] static budget::Consumer consumer_of_own_memory(budget::Tenant tenant) {
    return {.tenant = std::move(tenant), .name = "guest processes"};
  }

  // Frees what the processes keep only for later: idle ones are killed, and busy ones free the
  // instances and beginnings of machines. Returns how many processes that concerns.
  std::size_t give_back();

  // Kills all processes. Runs in progress fail, and no further run starts.
  void stop();

  // For tests.
  [[nodiscard]] std::size_t process_count() const { return processes_.size(); }
  [[nodiscard]] std::optional<pid_t> zygote_pid() const { return zygote_.pid(); }

 private:
  using ProcessId = ProcessTable::Id;
  using ModuleRef = std::weak_ptr<const wasm::Module>;
  using SleepableRef = std::weak_ptr<const wasm::SleepableModule>;
  using ProgramRef = std::weak_ptr<const abi::statemachine::Program>;
  struct Run;
  class Job;
  class CommandJob;
  class QuestionJob;
  struct Handed;
  struct Process;

  [[nodiscard]] Domain domain_of(const budget::Tenant& tenant, const std::string& alone) const;
  // Runs `job` in the process of its domain, from the wait for memory to the result.
  [[nodiscard]] io::Task<Result<abi::flight::Output>> carry_out(Job& job, std::shared_ptr<Run> run);
  // The domain's process, which is started if it does not run. Unavailable, Cancelled.
  [[nodiscard]] io::Task<Result<ProcessId>> acquire(Domain domain, std::stop_token stop);
  void carry_out(ProcessTable::Actions actions);
  [[nodiscard]] Result<> start(const ProcessTable::Start& order);
  [[nodiscard]] Result<Handed> hand_over(Process& process,
                                         const std::shared_ptr<const wasm::Module>& module);
  [[nodiscard]] io::Task<Result<Handed>> hand_over(
      ProcessId id, const std::shared_ptr<const abi::statemachine::Program>& program,
      budget::Consumer whose);
  // Make room for one more module, or for a machine with a bundle of that size.
  static void drop_modules(Process& process);
  static void drop_machines(Process& process, std::size_t bundle_bytes);
  void look_later();
  void count();

  [[nodiscard]] Result<> hear(ProcessId id, guest_protocol::FromGuest message);
  [[nodiscard]] Result<> hear_one(Process& process, guest_protocol::LookUp message);
  [[nodiscard]] Result<> hear_one(Process& process, guest_protocol::MapKind message);
  [[nodiscard]] Result<> hear_one(Process& process, const guest_protocol::AskMemory& message);
  [[nodiscard]] Result<> hear_one(Process& process, guest_protocol::EndRun message);
  [[nodiscard]] Result<> hear_one(Process& process, const guest_protocol::Pong& message);
  // For all other messages, which are about runs of lodgers.
  template <class Message>
  [[nodiscard]] static Result<> hear_one(Process& process, Message message);
  [[nodiscard]] io::Task<void> answer(ProcessId id, std::shared_ptr<Run> run,
                                      io::Task<abi::flight::LookupAnswer> question);

  void on_over(ProcessId id, std::optional<Error> breach);
  void on_standing(const guest_protocol::Standing& standing);
  void on_memory(ProcessId id, std::uint64_t bytes);
  void on_ended(ProcessId id, const Error& how);
  void on_gone(const Error& how);

  io::Loop& loop_;
  wasm::Engine& engine_;
  const Log log_;
  const Options options_;
  Gauge& count_;
  Gauge& alone_count_;
  Counter& started_;
  Counter& broken_;
  Gauge& landlock_;
  Gauge& system_call_filter_;

  ProcessTable table_;
  budget::Slices slices_;  // For messages of processes. Destroyed after these.
  std::map<ProcessId, std::unique_ptr<Process>> processes_;
  std::map<Domain, Error> refused_;        // Why a waiting domain got no process.
  std::map<Domain, std::size_t> waiting_;  // How many of its runs wait.
  io::Event changed_;                      // Notified when a process was started, or could not be.
  budget::FairSlots slots_;
  std::uint64_t last_run_ = 0;
  std::uint64_t last_module_ = 0;
  std::uint64_t last_machine_ = 0;
  std::uint64_t last_guest_ = 0;
  bool is_stopping_ = false;
  io::Loop::Timer look_timer_;
  std::optional<Instant> look_at_;
  Zygote zygote_;  // Destroyed first.
};

}  // namespace hangar::domains
