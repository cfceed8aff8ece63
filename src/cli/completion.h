// Completion of command lines in shells: the words that fit in place of the word under the cursor,
// from the parser's options (those of `--help`) and from the cluster.
//
// For each completion a shell's script (`hangar completion bash`) runs `hangar __complete WORD...`
// with the words up to the cursor; the last one may be empty. The first line of the answer tells
// whether paths fit, too (none, files or directories). Each further line is a candidate, a tab, and
// its description.
#pragma once

#include "base/result.h"
#include "commands/known_names.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::cli {

enum class Paths : std::uint8_t { None, Files, Directories };

struct Completion {
  Paths paths = Paths::None;
  std::vector<commands::KnownName> candidates;  // Candidates that start with the last word.
  // Names of the cluster that fit as well, and the text before them ("--namespace=").
  std::optional<commands::NameKind> names = {};
  std::string before_names = {};
  // Values of the given flags, by the flag's longest name; and the positional words.
  std::map<std::string, std::string> flags = {};
  std::vector<std::string> positionals = {};
  std::string command = {};  // The subcommands so far: "workflow show".
};
// Pure.
[[nodiscard]] Completion complete(const CLI::App& app, std::span<const std::string> words);

// The answer to `__complete`, for stdout. Leaves out names that the cluster does not return in
// time.
[[nodiscard]] std::string complete_command(const CLI::App& app, std::span<const std::string> words);

// The first argument of such a run.
inline constexpr std::string_view kCompleteWord = "__complete";

// `completion SHELL`. Returns the exit code.
class CompletionCommand {
 public:
  // `program`: the name that shells complete.
  CompletionCommand(CLI::App& app, std::string_view program);

  [[nodiscard]] const CLI::App& app() const { return command_; }
  [[nodiscard]] bool parsed() const { return command_.parsed(); }
  [[nodiscard]] int run() const;

 private:
  const std::string program_;
  std::unique_ptr<std::string> shell_ = std::make_unique<std::string>();  // CLI11 points to it.
  CLI::App& command_;
};

// The script of a shell that completes `program`. InvalidInput for other shells.
[[nodiscard]] Result<std::string> completion_script(std::string_view shell,
                                                    std::string_view program);

}  // namespace hangar::cli
