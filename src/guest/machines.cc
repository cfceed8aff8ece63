#include "guest/machines.h"

#include "abi/statemachine/limits.h"
#include "abi/statemachine/machine.h"
#include "abi/statemachine/program.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "guest_protocol/messages.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/module.h"
#include "wasm/snapshot/sleepable_module.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

namespace hangar::guest {

namespace {

namespace statemachine = abi::statemachine;
namespace protocol = guest_protocol;

using protocol::MachineRequest;
using protocol::MachineReturns;
using protocol::MachineShape;
using statemachine::Request;
using statemachine::Returns;
using statemachine::Shape;

static_assert(protocol::kBundleBytesMax >= limits::kMachineBundleBytesMax);
static_assert(protocol::kMachineAnswerBytesMax >= limits::kMachineAnswerBytesMax);
static_assert(protocol::kMachineLogBytesMax > limits::kMachineLogBytesMax,
              "what is kept of the output, with its note, fits");
static_assert(static_cast<int>(MachineShape::HandleEvent) == static_cast<int>(Shape::HandleEvent));
static_assert(static_cast<int>(MachineShape::Command) == static_cast<int>(Shape::Command));
static_assert(static_cast<int>(MachineShape::Bundle) == static_cast<int>(Shape::Bundle));
static_assert(static_cast<int>(MachineReturns::Nothing) == static_cast<int>(Returns::Nothing));
static_assert(static_cast<int>(MachineReturns::AddressAndSize) ==
              static_cast<int>(Returns::AddressAndSize));
static_assert(static_cast<int>(MachineRequest::Start) == static_cast<int>(Request::Start));
static_assert(static_cast<int>(MachineRequest::Begin) == static_cast<int>(Request::Begin));

// Bound of the memory that all machines of a process keep between questions. An evaluated bundle
// has some MiB, and the process may have 256 MiB in addition to the memory of its
// guests (zygote.cc).
constexpr std::uint64_t kBeginningsBytesMax = 64 * limits::kMiB;

std::uint64_t bytes_of(const statemachine::Beginning& beginning) {
  return beginning.checkpoint == nullptr ? 0 : beginning.checkpoint->memory_bytes();
}

}  // namespace

void Machines::load(protocol::LoadMachine order,
                    Result<std::shared_ptr<const wasm::SleepableModule>> sleepable,
                    Result<std::shared_ptr<const wasm::Module>> module) {
  Machine machine{.beginning = std::make_shared<statemachine::Beginning>(loop_)};
  if (!sleepable) {
    machine.loaded = std::unexpected(sleepable.error());
  } else if (!module) {
    machine.loaded = std::unexpected(module.error());
  }
  statemachine::Program program{
      .shape = static_cast<Shape>(order.shape),
      .sleepable = sleepable ? *std::move(sleepable) : nullptr,
      .module = module ? *std::move(module) : nullptr,
      .bundle = std::make_shared<const std::string>(std::move(order.bundle)),
      .function = std::move(order.function),
      .allocator = std::move(order.allocator),
      .returns = static_cast<Returns>(order.returns),
      .has_initialize = order.has_initialize,
      .limits = {.cpu_time_max = std::chrono::nanoseconds(order.cpu_nanoseconds_max),
                 .memory_bytes_max = order.memory_bytes_max}};
  if (order.has_initial_state) program.initial_state = static_cast<Returns>(order.initial_state);
  machine.program = std::make_shared<const statemachine::Program>(std::move(program));
  machines_.insert_or_assign(order.machine, std::move(machine));
}

std::optional<std::uint64_t> Machines::memory_bytes_max(std::uint64_t machine) const {
  const auto found = machines_.find(machine);
  if (found == machines_.end()) return std::nullopt;
  return found->second.program->limits.memory_bytes_max;
}

io::Task<statemachine::Answer> Machines::ask(protocol::AskMachine order, wasm::AskMemory ask_memory,
                                             std::stop_token stop) {
  Machine& machine = machines_.at(order.machine);
  machine.used = ++last_question_;
  if (!machine.loaded) {
    co_return statemachine::Answer{.text = std::unexpected(machine.loaded.error())};
  }
  statemachine::Answer answer = co_await programs_.ask(
      machine.program, machine.beginning,
      {.request = static_cast<Request>(order.request),
       .first = std::move(order.first),
       .second = std::move(order.second)},
      {.consumer = {.tenant = budget::Tenant::of_namespace(std::move(order.tenant)),
                    .name = std::move(order.consumer)},
       .ask_memory = std::move(ask_memory)},
      std::move(stop));
  forget_beginnings(kBeginningsBytesMax);
  co_return answer;
}

void Machines::forget_beginnings(std::uint64_t bytes_max) {
  while (true) {
    std::uint64_t bytes = 0;
    Machine* oldest = nullptr;
    for (auto& [number, machine] : machines_) {
      const std::uint64_t own = bytes_of(*machine.beginning);
      bytes += own;
      if (own > 0 && (oldest == nullptr || machine.used < oldest->used)) oldest = &machine;
    }
    if (bytes <= bytes_max || oldest == nullptr) return;
    oldest->beginning = std::make_shared<statemachine::Beginning>(loop_);
    std::ignore =
        programs_.free_instances();  // They start from beginnings, whose pages they would keep.
  }
}

}  // namespace hangar::guest
