#include "wasm/internal/fault.h"

#include "wasm/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::wasm::internal {

namespace {

// The bound of one function's name in a backtrace, after demangling.
constexpr std::size_t kNameBytesMax = 120;
// The bound of a message from wasmtime itself.
constexpr std::size_t kMessageBytesMax = 1024;

bool is_printable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte != 0x7f;
}

std::string clean(std::string_view text, std::size_t bytes_max) {
  std::string result(text.substr(0, bytes_max));
  for (char& c : result) {
    if (!is_printable(c)) c = ' ';
  }
  if (text.size() > bytes_max) result += "...";
  return result;
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
      text += clean(demangle_path({name->data, name->size}), kNameBytesMax);
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

// Reads "3foo": a length and that many characters. Moves `text` past it.
std::optional<std::string_view> take_identifier(std::string_view& text) {
  std::size_t length = 0;
  std::size_t digits = 0;
  while (digits < text.size() && digits < 5 && text[digits] >= '0' && text[digits] <= '9') {
    length = 10 * length + static_cast<std::size_t>(text[digits] - '0');
    ++digits;
  }
  if (digits == 0 || length == 0 || length > text.size() - digits) return std::nullopt;
  const std::string_view identifier = text.substr(digits, length);
  text.remove_prefix(digits + length);
  return identifier;
}

// The hash at the end of Rust's names: h and 16 hexadecimal digits.
bool is_rust_hash(std::string_view identifier) {
  return identifier.size() == 17 && identifier[0] == 'h' &&
         identifier.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
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

std::string demangle_path(std::string_view name) {
  std::string_view rest = name;
  if (!rest.starts_with("_Z")) return std::string(name);
  rest.remove_prefix(2);
  const bool is_nested = rest.starts_with('N');
  if (is_nested) rest.remove_prefix(1);
  while (is_nested && rest.starts_with('K'))
    rest.remove_prefix(1);  // Marks a const member function.
  std::string path;
  while (const auto identifier = take_identifier(rest)) {
    if (is_rust_hash(*identifier)) break;
    if (!path.empty()) path += "::";
    path += *identifier;
    if (!is_nested) break;
  }
  return path.empty() ? std::string(name) : path;
}

}  // namespace hangar::wasm::internal
