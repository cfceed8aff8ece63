#include "airways/lua_rules.h"

#include "abi/flight/command.h"
#include "abi/flight/evaluation.h"
#include "airways/limits.h"
#include "airways/readiness.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/event.h"
#include "io/task.h"
#include "json/value.h"
#include "reconcile/readiness.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"

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

namespace {

// What Go prints when memory.grow fails, before it exits.
constexpr std::string_view kOutOfMemory = "out of memory";

struct Interpreter {
  wasm::Digest digest;
  std::shared_ptr<const std::string> bytes;
};

Result<Interpreter> unpack_interpreter() {
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
  const wasm::Digest digest = wasm::Digest::of(bytes);
  return Interpreter{.digest = digest,
                     .bytes = std::make_shared<const std::string>(std::move(bytes))};
}

std::string question(const LuaScript& script, const json::Value& live) {
  return fmt::format(R"({{"name":{},"script":{},"resource":{}}})",
                     json::dump(json::Value(std::string_view(script.name))),
                     json::dump(json::Value(std::string_view(script.text))), json::dump(live));
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

LuaVerdict read_answer(const LuaScript& script, const abi::flight::Output& output,
                       std::uint64_t memory_bytes_max) {
  if (output.exit_code != 0) {
    if (output.stderr_bytes.contains(kOutOfMemory)) {
      return cut_rule(script, fmt::format("it needs more than {} MiB of memory",
                                          memory_bytes_max / limits::kMiB));
    }
    return cut_rule(script, fmt::format("the interpreter exited with code {}: {}", output.exit_code,
                                        output.stderr_bytes));
  }
  if (output.stdout_bytes.size() > limits::kLuaAnswerBytesMax) {
    return cut_rule(script, "the interpreter's answer is too long");
  }
  const Result<json::Value> answer = json::parse(output.stdout_bytes);
  if (!answer) return cut_rule(script, "the interpreter's answer is not JSON");
  const std::string_view error = json::string_at(*answer, {"error"});
  if (!error.empty()) return {.readiness = failed_rule(script, error)};
  if (json::bool_at(*answer, {"ready"})) return {.readiness = reconcile::ready()};
  return {.readiness = reconcile::not_ready(fmt::format(
              "readiness rule {} of ConfigMap {} is not met", script.name, script.source))};
}

}  // namespace

LuaRules::LuaRules(const abi::flight::Runtime& runtime, wasm::CodeCache& code_cache, Limits limits)
    : runtime_(runtime),
      code_cache_(code_cache),
      limits_(limits),
      loading_(runtime.engine().loop(), 1) {}

io::Task<Result<>> LuaRules::prepare(std::stop_token stop) {
  const io::Semaphore::Slot slot = HANGAR_CO_TRY(co_await loading_.acquire(stop));
  if (interpreter_ != nullptr) co_return Result<>();
  Interpreter unpacked = HANGAR_CO_TRY(co_await runtime_.engine().workers().run(
      budget::Consumer::of_host("lua"), [] { return unpack_interpreter(); }));
  interpreter_ = HANGAR_CO_TRY(
      co_await code_cache_.load(unpacked.digest, std::move(unpacked.bytes), std::move(stop)));
  co_return Result<>();
}

io::Task<Result<LuaVerdict>> LuaRules::judge(std::shared_ptr<const LuaScript> script,
                                             const json::Value& live, budget::Consumer consumer,
                                             std::stop_token stop) {
  if (interpreter_ == nullptr) HANGAR_CO_TRY(co_await prepare(stop));
  abi::flight::Command command{.arguments = {"lua"},
                               .stdin_bytes = question(*script, live),
                               .timeout = limits_.time_max,
                               .memory_bytes_max = limits_.memory_bytes_max,
                               .consumer = std::move(consumer)};
  const Result<abi::flight::Output> output = co_await abi::flight::run_without_lookups(
      runtime_, interpreter_, std::move(command), std::move(stop));
  if (output) co_return read_answer(*script, *output, limits_.memory_bytes_max);
  switch (output.error().kind()) {
    case ErrorKind::GuestFault:
    case ErrorKind::LimitExceeded:
      co_return cut_rule(*script, output.error().message());
    default:
      co_return std::unexpected(
          Error(output.error()).in("readiness rule " + script->name + " was not run"));
  }
}

}  // namespace hangar::airways
