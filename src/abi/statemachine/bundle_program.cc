// A JavaScript bundle: evaluated once in the state machine runtime. An image of the memory after
// the evaluation is kept, and every question starts from the image.
#include "abi/statemachine/answer.h"
#include "abi/statemachine/internal/programs_native.h"
#include "abi/statemachine/program.h"
#include "base/result.h"
#include "budget/fair_slots.h"
#include "io/task.h"
#include "wasm/guest_memory.h"
#include "wasm/instance.h"
#include "wasm/snapshot/checkpoint.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::abi::statemachine {

namespace {

class ScriptTurn final : public CallTurn {
 public:
  explicit ScriptTurn(Call call) : CallTurn("alloc", one(std::move(call))) {}

 private:
  static std::vector<Call> one(Call call) {
    std::vector<Call> calls;
    calls.push_back(std::move(call));
    return calls;
  }
  Result<std::string> read_result(wasm::GuestMemory memory, std::uint64_t result) override {
    return read_packed(memory, result);
  }
};

}  // namespace

io::Task<Begun> begin_bundle(Programs::Native& programs, const Program& program,
                             const Programs::Terms& terms, std::stop_token stop) {
  const std::shared_ptr<const wasm::Checkpoint> script =
      HANGAR_CO_TRY(co_await programs.script_beginning(program.sleepable, terms, stop));
  CallState state;
  wasm::Instance instance(programs.engine, script, programs.functions, state,
                          program.limits.memory_bytes_max);
  instance.ask_for_memory(terms.ask_memory);
  ScriptTurn turn({.function = "load_bundle", .texts = {*program.bundle}});
  const wasm::TurnReport report = co_await instance.run(
      turn, {.cpu_time_max = program.limits.cpu_time_max, .consumer = terms.consumer},
      std::move(stop));
  if (!report.ended) co_return std::unexpected(report.ended.error());
  // An empty object, or the error with which evaluating the bundle failed.
  const Result<std::string> loaded = read_definition(turn.text());
  if (!loaded) co_return std::unexpected(loaded.error());
  co_return co_await instance.checkpoint(terms.consumer);
}

io::Task<Answer> ask_bundle(Programs::Native& programs, const Program& program,
                            const Beginning& beginning, Question question,
                            const Programs::Terms& terms, std::stop_token stop) {
  const std::uint64_t first_bytes = question.first.size();
  const std::uint64_t second_bytes = question.second.size();
  question.first += question.second;
  ScriptTurn turn({.function = "run",
                   .texts = {std::move(question.first)},
                   .more_arguments = {static_cast<std::uint64_t>(question.request), first_bytes,
                                      second_bytes}});
  CallState state;
  const wasm::TurnReport report =
      co_await programs.run(program, beginning.checkpoint, turn, state, terms, std::move(stop));
  co_return answer_of(turn, state, report);
}

}  // namespace hangar::abi::statemachine
