// Yoke's commands for modules: schematics, sign and verify, built like those for releases
// (cli/release_commands.h).
#pragma once

#include "base/result.h"
#include "cli/release_commands.h"
#include "commands/module_signing.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace hangar::cli {

class ModuleCommands {
 public:
  explicit ModuleCommands(CLI::App& app);

  // All commands; the first one is schematics.
  [[nodiscard]] std::vector<const CLI::App*> apps() const;
  // Like ReleaseCommands::read.
  [[nodiscard]] std::vector<std::string> read(std::vector<std::string> arguments) const;
  [[nodiscard]] bool parsed() const;
  // Runs the command that was parsed; returns the exit code.
  [[nodiscard]] int run() const;

 private:
  struct Flags {
    std::string module;
    std::string action;  // The action of schematics.
    std::string name;
    bool is_command = false;
    std::string key;
    std::string out;
    bool force = false;
  };
  [[nodiscard]] int schematics() const;
  [[nodiscard]] int sign() const;
  [[nodiscard]] int verify() const;
  [[nodiscard]] Result<> check_schematics() const;
  // The check of sign.
  [[nodiscard]] Result<> check_files() const;

  // CLI11 keeps pointers to it. The commands share it, since only one is parsed.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  ReleaseCommand schematics_;
  ReleaseCommand sign_;
  ReleaseCommand verify_;
};

}  // namespace hangar::cli
