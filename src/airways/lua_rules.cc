#include "airways/lua_rules.h"

#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "airways/limits.h"
#include "airways/readiness.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "reconcile/readiness.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

// Defined by cmake/Lua.cmake: the interpreter as a zlib stream.
extern "C" {
extern const char hangar_lua_begin[];
extern const char hangar_lua_end[];
}

namespace hangar::airways {

Result<std::string> lua_interpreter() {
  std::string bytes;
  int status = Z_OK;
  bytes.resize_and_overwrite(
      limits::kLuaInterpreterBytesMax, [&status](char* begin, std::size_t capacity) {
        uLongf size = capacity;
        status = uncompress(reinterpret_cast<Bytef*>(begin), &size,
                            reinterpret_cast<const Bytef*>(hangar_lua_begin),
                            static_cast<uLong>(hangar_lua_end - hangar_lua_begin));
        return status == Z_OK ? size : 0;
      });
  if (status != Z_OK) {
    return fail(ErrorKind::Corrupt, "the Lua interpreter in this program is damaged");
  }
  return bytes;
}

namespace {

// What Go prints when memory.grow fails, before it exits.
constexpr std::string_view kOutOfMemory = "out of memory";

// The state of the machine that the interpreter is.
std::string state_of(const LuaScript& script) {
  return fmt::format(R"({{"name":{},"script":{}}})",
                     json::dump(json::Value(std::string_view(script.name))),
                     json::dump(json::Value(std::string_view(script.text))));
}

Readiness failed_rule(const LuaScript& script, std::string_view why) {
  // Only the first line: a trap has a backtrace, and Go prints the stacks of goroutines.
  return {.state = Readiness::State::Failed,
          .why = fmt::format("readiness rule {} of ConfigMap {}: {}", script.name, script.source,
                             why.substr(0, why.find('\n')))};
}

LuaVerdict cut_rule(const LuaScript& script, std::string_view why) {
  return {.readiness = failed_rule(script, why), .is_cut = true};
}

LuaVerdict read_answer(const LuaScript& script, std::string_view text) {
  if (text.size() > limits::kLuaAnswerBytesMax) {
    return cut_rule(script, "the interpreter's answer is too long");
  }
  const Result<json::Value> answer = json::parse(text);
  if (!answer) return cut_rule(script, "the interpreter's answer is not JSON");
  const std::string_view error = json::string_at(*answer, {"error"});
  if (!error.empty()) return {.readiness = failed_rule(script, error)};
  if (json::bool_at(*answer, {"ready"})) return {.readiness = reconcile::ready()};
  return {.readiness = reconcile::not_ready(fmt::format(
              "readiness rule {} of ConfigMap {} is not met", script.name, script.source))};
}

}  // namespace

LuaRules::LuaRules(io::Loop& loop, io::Workers& workers, abi::statemachine::Runtime& machines,
                   Limits limits)
    : workers_(workers), machines_(machines), limits_(limits), loading_(loop, 1) {}

io::Task<Result<>> LuaRules::prepare(std::stop_token stop) {
  const io::Semaphore::Slot slot = HANGAR_CO_TRY(co_await loading_.acquire(stop));
  if (interpreter_ != nullptr) co_return Result<>();
  std::string bytes = HANGAR_CO_TRY(
      co_await workers_.run(budget::Consumer::of_host("lua"), [] { return lua_interpreter(); }));
  interpreter_ = HANGAR_CO_TRY(co_await machines_.load(
      std::make_shared<const std::string>(std::move(bytes)),
      {.cpu_time_max = limits_.cpu_time_max, .memory_bytes_max = limits_.memory_bytes_max},
      std::move(stop), budget::Consumer::of_host("lua")));
  co_return Result<>();
}

io::Task<Result<LuaVerdict>> LuaRules::judge(std::shared_ptr<const LuaScript> script,
                                             const json::Value& live, budget::Consumer consumer,
                                             std::stop_token stop) {
  if (interpreter_ == nullptr) HANGAR_CO_TRY(co_await prepare(stop));
  const Result<abi::statemachine::Step> step = co_await interpreter_->step(
      state_of(*script), json::dump(live), std::move(stop), {.consumer = std::move(consumer)});
  if (step) co_return read_answer(*script, step->state);
  switch (step.error().kind()) {
    case ErrorKind::GuestFault:
      if (step.error().message().contains(kOutOfMemory)) {
        co_return cut_rule(*script, fmt::format("it needs more than {} MiB of memory",
                                                limits_.memory_bytes_max / limits::kMiB));
      }
      [[fallthrough]];
    case ErrorKind::LimitExceeded:
    case ErrorKind::InvalidInput:  // An answer that is not one.
      co_return cut_rule(*script, step.error().message());
    default:
      co_return std::unexpected(
          Error(step.error()).in("readiness rule " + script->name + " was not run"));
  }
}

}  // namespace hangar::airways
