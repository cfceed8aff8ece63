// `hangar timeline`: its flags, and what it prints.
#pragma once

#include "cli/setting_flags.h"
#include "commands/timeline.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace hangar::cli {

class TimelineCommand {
 public:
  explicit TimelineCommand(CLI::App& command);

  // Returns the exit code.
  [[nodiscard]] int run() const;

 private:
  struct Flags {
    commands::TimelineOptions options;
    std::string file;
    std::string output;
  };

  // CLI11 keeps pointers to it.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  SettingFlags settings_;
};

}  // namespace hangar::cli
