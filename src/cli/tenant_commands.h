// `hangar tenant allow`, `list` and `remove`: their flags and output.
#pragma once

#include "cli/setting_flags.h"
#include "commands/tenant_commands.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace hangar::cli {

class TenantCommands {
 public:
  explicit TenantCommands(CLI::App& tenant);

  // Runs the command that was parsed; returns the exit code.
  [[nodiscard]] int run() const;

 private:
  struct Flags {
    std::string host = "hangar-system:hangar";
    std::string namespace_;
    std::string dry_run = "none";
    std::string output;
    commands::AllowTenantOptions allow;
  };

  [[nodiscard]] int allow() const;
  [[nodiscard]] int list() const;
  [[nodiscard]] int remove() const;

  CLI::App* allow_;
  CLI::App* list_;
  CLI::App* remove_;
  // CLI11 keeps pointers to it.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  SettingFlags allow_settings_;
  SettingFlags list_settings_;
  SettingFlags remove_settings_;
};

}  // namespace hangar::cli
