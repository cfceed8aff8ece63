// The machines of a guest process: the host hands each over once, and sends it any number
// of questions.
#pragma once

#include "abi/statemachine/program.h"
#include "base/result.h"
#include "guest_protocol/messages.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/module.h"
#include "wasm/snapshot/sleepable_module.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>

namespace hangar::guest {

// Loop thread. It lives as long as the process.
class Machines {
 public:
  // Both outlive this object.
  Machines(io::Loop& loop, abi::statemachine::Programs& programs)
      : loop_(loop), programs_(programs) {}

  // The machine's shape determines which of the two modules is set; the other is null.
  void load(guest_protocol::LoadMachine order,
            Result<std::shared_ptr<const wasm::SleepableModule>> sleepable,
            Result<std::shared_ptr<const wasm::Module>> module);
  void drop(std::uint64_t machine) { machines_.erase(machine); }
  // Evicts all instances and the least recently used beginnings until the others have at most so
  // many bytes. A machine without one begins again with its next question.
  void forget_beginnings(std::uint64_t bytes_max = 0);

  // std::nullopt: the machine is unknown.
  [[nodiscard]] std::optional<std::uint64_t> memory_bytes_max(std::uint64_t machine) const;
  // The machine must be known.
  [[nodiscard]] io::Task<abi::statemachine::Answer> ask(guest_protocol::AskMachine order,
                                                        wasm::AskMemory ask_memory,
                                                        std::stop_token stop);

 private:
  struct Machine {
    Result<> loaded;  // An error if its module could not be loaded.
    std::shared_ptr<const abi::statemachine::Program> program;
    std::shared_ptr<abi::statemachine::Beginning> beginning;
    std::uint64_t used = 0;  // The number of the last question to it.
  };

  io::Loop& loop_;
  abi::statemachine::Programs& programs_;
  std::map<std::uint64_t, Machine> machines_;
  std::uint64_t last_question_ = 0;
};

}  // namespace hangar::guest
