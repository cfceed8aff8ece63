// Runs commands of flights in guest processes: one process for the guests of each trust domain.
#pragma once

#include "abi/flight/command.h"
#include "abi/flight/lookups.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/fair_slots.h"
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

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>

namespace hangar::domains {

enum class Isolation : std::uint8_t {
  None,       // No guest processes.
  Shared,     // One for all.
  Namespace,  // One for each, and one for cluster-scoped objects.
};

// Loop thread. When a process ends, each of its runs fails with a message; the next run of its
// domain begins in a new process.
class GuestProcesses final : public abi::flight::CommandRunner {
 public:
  struct Options {
    std::filesystem::path program;  // hangar-guest.
    Isolation isolation = Isolation::Namespace;
    std::uint32_t thread_count = 1;  // Of each process, for guests.
    ProcessTable::Options table = {};
    guest_protocol::Conversation::Patience patience = {};
  };
  // All outlive it. `engine` runs none of these guests, but its accounts bound them too.
  struct Parts {
    wasm::Engine& engine;
    Metrics& metrics;
    Log log;
  };

  // `zygote`: started before; none: started on demand.
  GuestProcesses(const Parts& parts, Options options, std::optional<ZygoteProcess> zygote);
  ~GuestProcesses() override;  // After stop(), or when no run is under way.

  [[nodiscard]] io::Task<Result<abi::flight::Output>> run(
      std::shared_ptr<const wasm::Module> module, abi::flight::Command command,
      abi::flight::Lookups* lookups, std::stop_token stop) override;

  // Ends all processes. Runs under way fail; no further one begins.
  void stop();

  // For tests.
  [[nodiscard]] std::size_t process_count() const { return processes_.size(); }
  [[nodiscard]] std::optional<pid_t> zygote_pid() const { return zygote_.pid(); }

 private:
  using ProcessId = ProcessTable::Id;
  using ModuleRef = std::weak_ptr<const wasm::Module>;
  struct Run;
  struct Handed;
  struct Process;

  [[nodiscard]] Domain domain_of(const abi::flight::Command& command) const;
  // The domain's process, started if there is none. Unavailable, Cancelled.
  [[nodiscard]] io::Task<Result<ProcessId>> acquire(Domain domain, std::stop_token stop);
  void carry_out(ProcessTable::Actions actions);
  [[nodiscard]] Result<> start(const ProcessTable::Start& order);
  [[nodiscard]] Result<Handed> hand_over(Process& process,
                                         const std::shared_ptr<const wasm::Module>& module);
  void learn_memory(ProcessId id, const ModuleRef& module, std::uint64_t bytes);
  void look_later();

  void hear(ProcessId id, guest_protocol::FromGuest message);
  void hear_one(Process& process, guest_protocol::LookUp message);
  void hear_one(Process& process, guest_protocol::MapKind message);
  void hear_one(Process& process, const guest_protocol::AskMemory& message);
  void hear_one(Process& process, guest_protocol::EndRun message);
  void hear_one(Process& process, const guest_protocol::Pong& message);
  [[nodiscard]] io::Task<void> answer(ProcessId id, std::shared_ptr<Run> run,
                                      io::Task<abi::flight::LookupAnswer> question);

  void on_over(ProcessId id, std::optional<Error> breach);
  void on_standing(const guest_protocol::Standing& standing);
  void on_ended(ProcessId id, const Error& how);
  void on_gone(const Error& how);

  io::Loop& loop_;
  wasm::Engine& engine_;
  const Log log_;
  const Options options_;
  Gauge& count_;
  Counter& started_;
  Counter& broken_;
  Gauge& landlock_;
  Gauge& system_call_filter_;

  ProcessTable table_;
  std::map<ProcessId, std::unique_ptr<Process>> processes_;
  std::map<Domain, Error> refused_;        // Why a waiting domain got no process.
  std::map<Domain, std::size_t> waiting_;  // How many of its runs wait.
  io::Event changed_;                      // A process was started, or could not be.
  budget::FairSlots slots_;
  std::uint64_t last_run_ = 0;
  std::uint64_t last_module_ = 0;
  bool is_stopping_ = false;
  io::Loop::Timer look_timer_;
  std::optional<Instant> look_at_;
  Zygote zygote_;  // Destroyed first.
};

}  // namespace hangar::domains
