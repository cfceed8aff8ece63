// Where yoke's commands read and write, and how they are added: what they share.
#pragma once

#include "base/result.h"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hangar::cli {

// To the standard output, as it is.
void print(std::string_view text);
// To the standard error.
void say(std::string_view text);
// To its end. LimitExceeded.
[[nodiscard]] Result<std::string> read_standard_input(std::size_t bytes_max);

CLI::App& add_command(CLI::App& app, const char* name, const char* help,
                      std::initializer_list<const char*> aliases = {});

}  // namespace hangar::cli
