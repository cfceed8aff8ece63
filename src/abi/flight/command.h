// One run of a flight or a converter: its input and its result, independent of where it runs.
#pragma once

#include "abi/flight/lookups.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::abi::flight {

enum class Role : std::uint8_t { Flight, Converter };

struct Command {
  Role role = Role::Flight;
  // Must not contain null bytes, since guests read these as C strings.
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string stdin_bytes;
  std::optional<Duration> timeout = limits::kGuestCallMax;  // std::nullopt: no limit.
  std::uint64_t memory_bytes_max = limits::kGuestMemoryBytesMax;
  budget::Consumer consumer = budget::unnamed_consumer();
};

struct Output {
  std::uint32_t exit_code = 0;
  std::string stdout_bytes;
  std::string stderr_bytes;  // Cut at kFlightErrorBytesMax, with a note.
  Duration cpu_time{};
  std::uint64_t memory_bytes = 0;
};

// Runs commands outside this process. Loop thread.
class CommandRunner {
 public:
  CommandRunner() = default;
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;
  virtual ~CommandRunner() = default;

  // Results and errors as of evaluate(), and Unavailable when there is no place for the run now.
  // `lookups` is null for converters; otherwise it outlives the task, and every lookup that was
  // started has finished when the task returns.
  [[nodiscard]] virtual io::Task<Result<Output>> run(std::shared_ptr<const wasm::Module> module,
                                                     Command command, Lookups* lookups,
                                                     std::stop_token stop) = 0;
};

}  // namespace hangar::abi::flight
