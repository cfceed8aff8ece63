// Reads command lines as Go's flag package does, for the commands that yoke also has: -namespace=x
// means --namespace=x, and flags that all commands have may come before the command.
#pragma once

#include "base/result.h"

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <vector>

namespace hangar::cli {

// `arguments` without the program's name. Changes nothing unless the first argument that is not
// such a common flag names one of `commands` or an alias of one. Arguments after `--` stay
// unchanged.
[[nodiscard]] std::vector<std::string> read_go_flags(std::vector<std::string> arguments,
                                                     std::span<const CLI::App* const> commands);

// A command line read exactly as that package does, for the program under yoke's own name: flags
// end at the first word that is not a flag, and surplus words are left out.
struct GoLine {
  const CLI::App* command = nullptr;  // Null: no command, or the unknown `name`.
  std::string name;
  bool asks_for_help = false;
  // For the parser: the command, its flags (only the last of repeated ones), and its positional
  // words.
  std::vector<std::string> arguments;
  std::vector<std::string> behind_dashes;  // Words after `--`, for the flight of a takeoff.
  std::vector<std::string> left_out;
};
// `with_arguments`: the command whose words after `--` are kept apart. InvalidInput has the
// messages of that package.
[[nodiscard]] Result<GoLine> read_go_line(std::span<const std::string> arguments,
                                          std::span<const CLI::App* const> commands,
                                          const CLI::App& with_arguments);
// The same for a program without commands, whose flags `program` has.
[[nodiscard]] Result<GoLine> read_go_line(std::span<const std::string> arguments,
                                          const CLI::App& program);

}  // namespace hangar::cli
