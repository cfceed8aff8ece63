// `hangar build`: builds modules from users' sources, and native code from modules.
#pragma once

#include "cli/setting_flags.h"
#include "commands/build_code.h"
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
  [[nodiscard]] int run_go() const;
  [[nodiscard]] int run_code() const;

  CLI::App* go_;
  // CLI11 keeps pointers to it.
  std::unique_ptr<commands::BuildGoOptions> go_options_ =
      std::make_unique<commands::BuildGoOptions>();
  SettingFlags go_settings_;
  CLI::App* code_;
  std::unique_ptr<commands::BuildCodeOptions> code_options_ =
      std::make_unique<commands::BuildCodeOptions>();
  SettingFlags code_settings_;
};

}  // namespace hangar::cli
