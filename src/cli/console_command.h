// `hangar console`: its flags.
#pragma once

#include "cli/seeing_commands.h"
#include "cli/setting_flags.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace hangar::cli {

class ConsoleCommand {
 public:
  explicit ConsoleCommand(CLI::App& command);

  // Returns the exit code.
  [[nodiscard]] int run() const;

 private:
  struct Flags {
    std::uint16_t port = 0;
    std::string idle_timeout = "30m";
    bool no_open = false;
    bool allow_actions = false;
  };

  // CLI11 keeps pointers to it.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  RecordsFlags records_;
  SettingFlags settings_;
};

}  // namespace hangar::cli
