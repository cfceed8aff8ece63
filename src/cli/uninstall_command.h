// `hangar uninstall`: its flags and output.
#pragma once

#include "cli/setting_flags.h"
#include "commands/uninstall.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace hangar::cli {

class UninstallCommand {
 public:
  explicit UninstallCommand(CLI::App& uninstall);

  // Returns the exit code.
  [[nodiscard]] int run() const;

 private:
  // CLI11 keeps pointers to it.
  std::unique_ptr<commands::UninstallOptions> options_ =
      std::make_unique<commands::UninstallOptions>();
  SettingFlags settings_;
};

}  // namespace hangar::cli
