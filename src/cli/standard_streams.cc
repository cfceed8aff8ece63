#include "cli/standard_streams.h"

#include "base/limits.h"
#include "base/result.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hangar::cli {

void print(std::string_view text) {
  fmt::print("{}", text);
}

void say(std::string_view text) {
  fmt::print(stderr, "{}", text);
}

Result<std::string> read_standard_input(std::size_t bytes_max) {
  std::string text;
  std::array<char, 64 * limits::kKiB> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    text.append(buffer.data(), count);
    if (text.size() > bytes_max) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("the standard input is larger than {} bytes", bytes_max));
    }
  }
  return text;
}

CLI::App& add_command(CLI::App& app, const char* name, const char* help,
                      std::initializer_list<const char*> aliases) {
  CLI::App* const command = app.add_subcommand(name, help);
  for (const char* const alias : aliases)
    command->alias(alias);
  return *command;
}

}  // namespace hangar::cli
