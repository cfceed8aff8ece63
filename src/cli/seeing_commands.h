// `hangar timeline` and `hangar why`: their flags, and what they print.
#pragma once

#include "cli/setting_flags.h"
#include "commands/timeline.h"
#include "commands/why.h"

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

class WhyCommand {
 public:
  explicit WhyCommand(CLI::App& command);

  // Returns the exit code.
  [[nodiscard]] int run() const;

 private:
  struct Flags {
    commands::WhyOptions options;
    std::string output;
  };

  // CLI11 keeps pointers to it.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  SettingFlags settings_;
};

}  // namespace hangar::cli
