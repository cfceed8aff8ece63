// Programs that a command runs for its user and waits for: go, esbuild. Blocking, and with the
// rights and the environment of this process: for commands, never for a host.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::io {

// The first executable file of that name on PATH. NotFound.
[[nodiscard]] Result<std::filesystem::path> find_program(std::string_view name);

[[nodiscard]] bool is_program(const std::filesystem::path& path);

struct Program {
  std::filesystem::path path;
  std::vector<std::string> arguments = {};
  std::filesystem::path directory = {};  // Where it runs; empty: where this process does.
  // "NAME=value", besides this process's own and in place of those of the same name.
  std::vector<std::string> environment = {};
};

// Runs it to its end; what it prints on either stream goes to stderr. The exit code. Unavailable
// when it cannot be run, or ends by a signal.
[[nodiscard]] Result<int> run_program(const Program& program);

struct ProgramOutput {
  int exit_code = 0;
  std::string text;  // Its stdout.
};
// The same, but its stdout is returned. LimitExceeded when it prints more than `bytes_max`.
[[nodiscard]] Result<ProgramOutput> read_program(const Program& program, std::uint64_t bytes_max);

}  // namespace hangar::io
