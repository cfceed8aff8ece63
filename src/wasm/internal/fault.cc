#include "wasm/internal/fault.h"

#include "base/text.h"
#include "wasm/internal/function_names.h"
#include "wasm/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace hangar::wasm::internal {

namespace {

// The bound of one function's name in a backtrace, after demangling.
constexpr std::size_t kNameBytesMax = 120;
// The bound of a message from wasmtime itself.
constexpr std::size_t kMessageBytesMax = 1024;

// One line for people. The guest chooses the text: everything but printable ASCII is escaped, and
// what separates the words of a message is a space.
std::string clean(std::string_view text, std::size_t bytes_max) {
  std::string line(text.substr(0, bytes_max + 1));  // One byte more shows that it is cut.
  std::ranges::replace_if(line, [](char c) { return has_control_character({&c, 1}); }, ' ');
  return printable(line, bytes_max);
}

std::string_view name_of_trap(wasmtime_trap_code_t code) {
  switch (code) {
    case WASMTIME_TRAP_CODE_STACK_OVERFLOW:
      return "call stack exhausted";
    case WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS:
      return "out of bounds memory access";
    case WASMTIME_TRAP_CODE_HEAP_MISALIGNED:
      return "unaligned atomic";
    case WASMTIME_TRAP_CODE_TABLE_OUT_OF_BOUNDS:
      return "out of bounds table access";
    case WASMTIME_TRAP_CODE_INDIRECT_CALL_TO_NULL:
      return "indirect call to null";
    case WASMTIME_TRAP_CODE_BAD_SIGNATURE:
      return "indirect call of another type";
    case WASMTIME_TRAP_CODE_INTEGER_OVERFLOW:
      return "integer overflow";
    case WASMTIME_TRAP_CODE_INTEGER_DIVISION_BY_ZERO:
      return "integer division by zero";
    case WASMTIME_TRAP_CODE_BAD_CONVERSION_TO_INTEGER:
      return "invalid conversion to integer";
    case WASMTIME_TRAP_CODE_UNREACHABLE_CODE_REACHED:
      return "unreachable executed";
    case WASMTIME_TRAP_CODE_INTERRUPT:
      return "interrupted";
    default:
      return "trap";
  }
}

std::string backtrace(const wasm_frame_vec_t& frames) {
  std::string text;
  const std::size_t shown = std::min<std::size_t>(frames.size, limits::kBacktraceFramesMax);
  for (std::size_t index = 0; index < shown; ++index) {
    const wasm_frame_t* const frame = frames.data[index];
    text += index == 0 ? "at " : " < ";
    if (const wasm_name_t* const name = wasmtime_frame_func_name(frame); name != nullptr) {
      text += clean(readable_name({name->data, name->size}), kNameBytesMax);
    } else {
      fmt::format_to(std::back_inserter(text), "function {}", wasm_frame_func_index(frame));
    }
  }
  if (shown < frames.size) text += " < ...";
  return text;
}

template <auto kTrace, class T>
std::string backtrace_of(const T& object) {
  wasm_frame_vec_t frames{};
  kTrace(&object, &frames);
  std::string text = backtrace(frames);
  wasm_frame_vec_delete(&frames);
  return text;
}

}  // namespace

std::string describe(const wasm_trap_t& trap) {
  wasmtime_trap_code_t code = 0;
  const std::string_view name = wasmtime_trap_code(&trap, &code) ? name_of_trap(code) : "trap";
  const std::string where = backtrace_of<wasm_trap_trace>(trap);
  return where.empty() ? std::string(name) : fmt::format("{}; {}", name, where);
}

std::string describe(const wasmtime_error_t& error) {
  // A message with a backtrace contains it with fully demangled names, so we do not request it.
  if (std::string where = backtrace_of<wasmtime_error_wasm_trace>(error); !where.empty()) {
    return where;
  }
  wasm_byte_vec_t message{};
  wasmtime_error_message(&error, &message);
  std::string text = clean({message.data, message.size}, kMessageBytesMax);
  wasm_byte_vec_delete(&message);
  return text;
}

}  // namespace hangar::wasm::internal
