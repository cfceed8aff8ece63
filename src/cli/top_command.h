// `hangar top`: its flags, its table, and its live screen.
#pragma once

#include "cli/seeing_commands.h"
#include "cli/setting_flags.h"
#include "commands/top_table.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace hangar::cli {

class TopCommand {
 public:
  explicit TopCommand(CLI::App& command);

  // Returns the exit code.
  [[nodiscard]] int run() const;

 private:
  struct Flags {
    std::string namespace_;
    std::string sort = "cpu";
    std::string window = "1m";
    std::string output;
    bool once = false;
    bool cost = false;
  };

  // CLI11 keeps pointers to it.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  RecordsFlags records_;
  SettingFlags settings_;
};

}  // namespace hangar::cli
