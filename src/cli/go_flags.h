// Command lines as Go's flag package reads them, for the commands that yoke has, too: -namespace=x
// is --namespace=x, and flags that all commands have may stand before the command.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>
#include <vector>

namespace hangar::cli {

// `arguments` without the program's name. Changes nothing unless the first one that is not such a
// common flag names one of `commands` (or an alias of one). What follows `--` is left as it is.
[[nodiscard]] std::vector<std::string> read_go_flags(std::vector<std::string> arguments,
                                                     std::span<const CLI::App* const> commands);

}  // namespace hangar::cli
