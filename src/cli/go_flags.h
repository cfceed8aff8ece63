// Command lines as Go's flag package reads them, for the commands that yoke has, too: -namespace=x
// is --namespace=x, and flags that all commands have may stand before the command.
#pragma once

#include "base/result.h"

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <vector>

namespace hangar::cli {

// `arguments` without the program's name. Changes nothing unless the first one that is not such a
// common flag names one of `commands` (or an alias of one). What follows `--` is left as it is.
[[nodiscard]] std::vector<std::string> read_go_flags(std::vector<std::string> arguments,
                                                     std::span<const CLI::App* const> commands);

// A command line exactly as that package reads it, for the program under yoke's own name: flags end
// at the first word that is none, and what is too much is left out.
struct GoLine {
  const CLI::App* command = nullptr;  // Null: there is none, or it is `name`, which is unknown.
  std::string name;
  bool asks_for_help = false;
  // For the parser: the command, its flags, the last of each that is given twice, and its names.
  std::vector<std::string> arguments;
  std::vector<std::string> behind_dashes;  // What follows `--`, for the flight of a takeoff.
  std::vector<std::string> left_out;
};
// `with_arguments`: the command of which what follows `--` is kept apart. InvalidInput in the words
// of that package.
[[nodiscard]] Result<GoLine> read_go_line(std::span<const std::string> arguments,
                                          std::span<const CLI::App* const> commands,
                                          const CLI::App& with_arguments);

}  // namespace hangar::cli
