// Completion of command lines in shells: what could stand in place of the word under the cursor,
// out of the tables of options that `--help` shows, and out of the cluster.
//
// A shell's script (`hangar completion bash`) asks `hangar __complete WORD...` for each completion,
// with the words up to the cursor, the last of which may be empty. The answer's first line says
// whether paths could stand there, too (none, files or directories); each line behind it is a
// candidate, a tab, and what it is.
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
  std::vector<commands::KnownName> candidates;  // That begin with the last word.
  // What of the cluster could stand there as well, and what goes before it ("--namespace=").
  std::optional<commands::NameKind> names = {};
  std::string before_names = {};
  // Of the flags that were given, by their longest name; and the positional words.
  std::map<std::string, std::string> flags = {};
  std::vector<std::string> positionals = {};
  std::string command = {};  // Which one it is: "workflow show".
};
// Pure.
[[nodiscard]] Completion complete(const CLI::App& app, std::span<const std::string> words);

// The answer to `__complete`, for stdout. What the cluster does not say in time is left out.
[[nodiscard]] std::string complete_command(const CLI::App& app, std::span<const std::string> words);

// The word that asks for it.
inline constexpr std::string_view kCompleteWord = "__complete";

// `completion SHELL`. Returns the exit code.
class CompletionCommand {
 public:
  // `program`: under which name shells complete it.
  CompletionCommand(CLI::App& app, std::string_view program);

  [[nodiscard]] const CLI::App& app() const { return command_; }
  [[nodiscard]] bool parsed() const { return command_.parsed(); }
  [[nodiscard]] int run() const;

 private:
  const std::string program_;
  std::unique_ptr<std::string> shell_ = std::make_unique<std::string>();  // The parser has it.
  CLI::App& command_;
};

// The script of a shell for the program under that name. InvalidInput for other shells.
[[nodiscard]] Result<std::string> completion_script(std::string_view shell,
                                                    std::string_view program);

}  // namespace hangar::cli
