// hangar-compile: reads a WebAssembly module from descriptor 0 and writes native code to
// descriptor 1.
//
// The only program that is linked with the compiler. hangar starts it for one module, and kills it
// after kCompileMax. It bounds its own processor time, and its memory and its output to the bytes
// given by its first two arguments; a third one can ask for code that any processor of this
// architecture runs. With `verify` and public keys as further arguments it compiles nothing and
// checks whether one of the keys has signed the module. Descriptor 0 must be a file (it is mapped),
// 1 an empty file; an error is one line on descriptor 2. Exit status: see wasm/compile_exit.h. A
// module that carries its plugin is first linked with it.
#include "base/base64.h"
#include "base/destroyed_by.h"
#include "base/number.h"
#include "base/result.h"
#include "compile/sandbox.h"
#include "schematics/keys.h"
#include "schematics/signature.h"
#include "wasm/code_config.h"
#include "wasm/compile_exit.h"
#include "wasm/limits.h"
#include "wasm/module_header.h"
#include "wasm/plugin.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#include <wasm.h>
#include <wasmtime/engine.h>
#include <wasmtime/error.h>
#include <wasmtime/module.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::compile {

namespace {

// Bound of the compiler's message.
constexpr std::size_t kMessageBytesMax = 2048;

using EnginePtr = std::unique_ptr<wasm_engine_t, DestroyedBy<wasm_engine_delete>>;
using ModulePtr = std::unique_ptr<wasmtime_module_t, DestroyedBy<wasmtime_module_delete>>;
using ErrorPtr = std::unique_ptr<wasmtime_error_t, DestroyedBy<wasmtime_error_delete>>;

// Makes one line without control characters: messages may have several lines, and quote the module.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, kMessageBytesMax)) {
    const bool is_space = static_cast<unsigned char>(c) <= 0x20 || c == 0x7f;
    if (!is_space) line += c;
    if (is_space && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' '))
    line.pop_back();
  constexpr std::string_view kCause = " Caused by:";
  for (std::size_t at = line.find(kCause); at != std::string::npos; at = line.find(kCause, at))
    line.replace(at, kCause.size(), ":");
  return line;
}

std::string text_of(const wasmtime_error_t* error) {
  wasm_byte_vec_t bytes;
  wasmtime_error_message(error, &bytes);
  std::string text = one_line({bytes.data, bytes.size});
  wasm_byte_vec_delete(&bytes);
  return text;
}

Result<std::span<const std::byte>> map_input() {
  // Not fstat, which glibc implements as fstatat with a path, and paths are forbidden here.
  const off_t end = ::lseek(STDIN_FILENO, 0, SEEK_END);
  if (end < 0) return fail(ErrorKind::Unavailable, "standard input is not a file");
  const auto size = static_cast<std::uint64_t>(end);
  if (size == 0) return fail(ErrorKind::InvalidInput, "is not a WebAssembly module: it is empty");
  if (size > limits::kModuleBytesMax) {
    return fail(ErrorKind::LimitExceeded, "the module is too large");
  }
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
  if (address == MAP_FAILED) return fail(ErrorKind::Unavailable, "cannot map standard input");
  return std::span(static_cast<const std::byte*>(address), size);
}

Result<> write_output(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    if (count < 0 && errno == EFBIG) {
      return fail(ErrorKind::LimitExceeded, "the native code is too large");
    }
    if (count < 0 && errno != EINTR) {
      return fail(ErrorKind::Unavailable, "cannot write the native code: is the disk full?");
    }
  }
  return {};
}

enum class Processor : std::uint8_t { This, Any };

// Naming a target, even this machine's, ends the search for features of this processor.
#if defined(__x86_64__)
constexpr const char* kAnyProcessor = "x86_64-unknown-linux-gnu";
#else
constexpr const char* kAnyProcessor = "aarch64-unknown-linux-gnu";
#endif

Result<EnginePtr> make_engine(Processor processor) {
  wasm_config_t* const config = wasm_config_new();
  wasm::apply_code_config(config);
  if (processor == Processor::Any) {
    if (const ErrorPtr error(wasmtime_config_target_set(config, kAnyProcessor)); error != nullptr) {
      wasm_config_delete(config);
      return fail(ErrorKind::Unavailable, text_of(error.get()));
    }
  }
  wasmtime_config_strategy_set(config, WASMTIME_STRATEGY_CRANELIFT);
  wasmtime_config_cranelift_opt_level_set(config, WASMTIME_OPT_LEVEL_SPEED);
  // The same bits on every machine, so that a guest's memory may move between machines.
  wasmtime_config_cranelift_nan_canonicalization_set(config, true);
  return EnginePtr(wasm_engine_new_with_config(config));
}

const std::uint8_t* data_of(std::span<const std::byte> module) {
  return reinterpret_cast<const std::uint8_t*>(module.data());
}

std::unexpected<Error> refused(const wasmtime_error_t* error) {
  std::string text = text_of(error);
  // The system's message for a failed mapping; a failed allocation in Rust aborts instead.
  if (text.contains("os error 12")) {
    return fail(ErrorKind::LimitExceeded, std::string(wasm::kOutOfMemory));
  }
  // The prefix only names the step of the compiler.
  if (constexpr std::string_view kDoing = "failed to parse WebAssembly module: ";
      text.starts_with(kDoing)) {
    text.erase(0, kDoing.size());
  }
  return fail(ErrorKind::InvalidInput, "invalid module: " + text);
}

Result<> validate(wasm_engine_t* engine, std::span<const std::byte> module) {
  const ErrorPtr error(wasmtime_module_validate(engine, data_of(module), module.size()));
  if (error != nullptr) return refused(error.get());
  return {};
}

Result<> compile(wasm_engine_t* engine, std::span<const std::byte> module) {
  wasmtime_module_t* made = nullptr;
  if (const ErrorPtr error(wasmtime_module_new(engine, data_of(module), module.size(), &made));
      error != nullptr) {
    return refused(error.get());
  }
  const ModulePtr compiled(made);

  wasm_byte_vec_t code;
  if (const ErrorPtr error(wasmtime_module_serialize(compiled.get(), &code)); error != nullptr) {
    return fail(ErrorKind::Unavailable, text_of(error.get()));
  }
  auto written = write_output(std::string_view(code.data, code.size));
  wasm_byte_vec_delete(&code);
  return written;
}

// Both are validated separately first: linking could make an invalid module valid, or cause a
// misleading error.
Result<> compile_linked(wasm_engine_t* engine, std::span<const std::byte> module,
                        std::span<const std::byte> plugin) {
  HANGAR_TRY(validate(engine, module));
  if (Result<> valid = validate(engine, plugin); !valid) {
    return std::unexpected(std::move(valid).error().in("its plugin"));
  }
  const std::string linked = HANGAR_TRY(wasm::link_plugin(module, plugin));
  return compile(engine, std::as_bytes(std::span(linked)));
}

// The argument at `index`; without it, `otherwise`.
Result<std::uint64_t> bytes_at(std::span<char* const> arguments, std::size_t index,
                               std::uint64_t otherwise) {
  if (arguments.size() <= index) return otherwise;
  const auto bytes = parse_number<std::uint64_t>(arguments[index]);
  if (bytes) return *bytes;
  return fail(ErrorKind::Unavailable, "the argument is not a number of bytes");
}

Result<schematics::PublicKeys> keys_of(std::span<char* const> arguments) {
  schematics::PublicKeys keys;
  for (const char* const argument : arguments) {
    const std::optional<std::string> der = base64_decode(argument);
    if (!der) return fail(ErrorKind::Unavailable, "a key is not base64");
    const Result<schematics::PublicKey> key = schematics::PublicKey::from_der(*der);
    if (!key) return fail(ErrorKind::Unavailable, key.error().message());
    HANGAR_TRY(keys.add(*key));
  }
  return keys;
}

Result<> verify(std::uint64_t memory_bytes, std::span<char* const> arguments) {
  // Before the system calls are limited: OpenSSL opens a file when it is first used.
  const schematics::PublicKeys keys = HANGAR_TRY(keys_of(arguments));
  HANGAR_TRY(limit_resources(
      {.memory_bytes = memory_bytes, .processor_time = limits::kVerifyProcessorMax}));
  HANGAR_TRY(limit_system_calls());
  const Result<> verified = schematics::verify_module(HANGAR_TRY(map_input()), keys);
  if (!verified) return fail(verified.error().kind(), one_line(verified.error().message()));
  return {};
}

Result<> run(std::span<char* const> arguments) {
  const std::uint64_t memory_bytes =
      HANGAR_TRY(bytes_at(arguments, 1, limits::kCompileMemoryBytesMax));
  constexpr std::size_t kBeforeKeys = 3;
  if (arguments.size() >= kBeforeKeys && arguments[2] == wasm::kVerifyArgument) {
    return verify(memory_bytes, arguments.subspan(kBeforeKeys));
  }
  const std::uint64_t output_bytes = HANGAR_TRY(bytes_at(arguments, 2, limits::kCompiledBytesMax));
  HANGAR_TRY(limit_resources({.memory_bytes = memory_bytes, .output_bytes = output_bytes}));
  HANGAR_TRY(limit_system_calls());
  const auto module = HANGAR_TRY(map_input());
  const wasm::ModuleHeader header = HANGAR_TRY(wasm::read_module_header(module));
  const bool is_for_any =
      arguments.size() > kBeforeKeys && arguments[kBeforeKeys] == wasm::kAnyProcessorArgument;
  const EnginePtr engine = HANGAR_TRY(make_engine(is_for_any ? Processor::Any : Processor::This));
  const auto plugin = wasm::carried_plugin(header);
  return plugin ? compile_linked(engine.get(), module, *plugin) : compile(engine.get(), module);
}

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidInput:
    case ErrorKind::Denied:
      return wasm::kExitInvalidModule;
    case ErrorKind::LimitExceeded:
      return wasm::kExitLimit;
    default:
      return wasm::kExitInternal;
  }
}

}  // namespace

}  // namespace hangar::compile

#if __has_feature(thread_sanitizer)
// Only one thread belongs to this program. The others are wasmtime's, whose synchronisation
// ThreadSanitizer does not see: every report would be false.
extern "C" const char* __tsan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "report_bugs=0";
}
#endif

int main(int count, char** arguments) {
  // Two threads share the work; the host and its guests need the machine, too. No other thread runs
  // yet that could read the environment.
  (void)::nice(5);
  ::setenv("RAYON_NUM_THREADS", "2", 1);  // NOLINT(concurrency-mt-unsafe)
  // A write beyond the limit then fails with EFBIG, which has a message.
  ::signal(SIGXFSZ, SIG_IGN);
  const hangar::Result<> done = hangar::compile::run({arguments, static_cast<std::size_t>(count)});
  if (done) return hangar::wasm::kExitOk;
  std::fprintf(stderr, "%s\n", done.error().message().c_str());
  return hangar::compile::status_of(done.error().kind());
}
