// Programs of the user's that a command runs: esbuild, go.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

[[nodiscard]] bool is_program(const std::filesystem::path& path);

// The first program of that name in the directories of PATH.
[[nodiscard]] std::optional<std::filesystem::path> find_on_path(std::string_view name);

struct ProgramRun {
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  std::filesystem::path directory = {};  // Where it runs.
  // NAME=VALUE: instead of, or besides, what this process's environment has.
  std::vector<std::string> environment = {};
  std::string_view failed = {};  // What it could not do, for the error: "could not ...".
};

// Waits until it has ended; what it prints goes to stderr. Errors: Unavailable (it cannot be
// started), InvalidInput (it ended with another exit code than 0; its own words are on stderr).
[[nodiscard]] Result<> run_program(ProgramRun run);

}  // namespace hangar::commands
