// `hangar demo`: shows the ways of working on a cluster.
#pragma once

#include "cli/setting_flags.h"
#include "commands/demo.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace hangar::cli {

class DemoCommand {
 public:
  explicit DemoCommand(CLI::App& demo);

  // Becomes the demonstration's process; returns the exit code only if that fails.
  [[nodiscard]] int run() const;

 private:
  // CLI11 keeps pointers to it.
  std::unique_ptr<commands::DemoOptions> options_ = std::make_unique<commands::DemoOptions>();
  bool clean_ = false;
  SettingFlags settings_;
};

}  // namespace hangar::cli
