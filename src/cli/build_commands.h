// `hangar build`: builds modules from users' sources.
#pragma once

#include "cli/setting_flags.h"
#include "commands/build_go.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace hangar::cli {

class BuildCommands {
 public:
  explicit BuildCommands(CLI::App& build);

  // Runs the command that was parsed; returns the exit code.
  [[nodiscard]] int run() const;

 private:
  CLI::App* go_;
  // CLI11 keeps pointers to it.
  std::unique_ptr<commands::BuildGoOptions> go_options_ =
      std::make_unique<commands::BuildGoOptions>();
  SettingFlags go_settings_;
};

}  // namespace hangar::cli
