#include "cli/standard_streams.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/text.h"
#include "base/utf8.h"

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

std::string without_controls(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_utf8_prefix(text));
    for (std::size_t at = 0; at < valid.size(); ++at) {
      const auto byte = static_cast<unsigned char>(valid[at]);
      const auto next = static_cast<unsigned char>(at + 1 < valid.size() ? valid[at + 1] : 0);
      if (byte == 0xc2 && next < 0xa0) {
        out += printable(valid.substr(at++, 2));
      } else if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f)) {
        out += valid[at];
      } else {
        out += printable(valid.substr(at, 1));
      }
    }
    text.remove_prefix(valid.size());
    if (text.empty()) break;
    out += printable(text.substr(0, 1));
    text.remove_prefix(1);
  }
  return out;
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
