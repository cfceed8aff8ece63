// Shared by yoke's commands: their standard streams, and how they are added to the parser.
#pragma once

#include "base/result.h"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hangar::cli {

// To stdout, unchanged.
void print(std::string_view text);
// To stderr, unchanged.
void say(std::string_view text);
// A message that may have texts of tenants and of servers, for a terminal. Lines and letters stay;
// what controls a terminal is escaped (C1 controls are two bytes in UTF-8), and so are bytes that
// are not UTF-8.
[[nodiscard]] std::string without_controls(std::string_view text);
// Reads stdin to its end. LimitExceeded.
[[nodiscard]] Result<std::string> read_standard_input(std::size_t bytes_max);

CLI::App& add_command(CLI::App& app, const char* name, const char* help,
                      std::initializer_list<const char*> aliases = {});

}  // namespace hangar::cli
