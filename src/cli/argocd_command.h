// `hangar argocd`, yoke's plugin for Argo CD: its command and its server. Under the name `yokecd`
// the program is the plugin, with the original's flag and environment.
#pragma once

#include "cli/setting_flags.h"
#include "commands/argocd_generate.h"
#include "commands/argocd_server.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hangar::cli {

class ArgocdCommand {
 public:
  explicit ArgocdCommand(CLI::App& command);

  // The arguments for the parser: this command takes flags with one dash as well.
  [[nodiscard]] std::vector<std::string> read(std::vector<std::string> arguments) const;
  // Returns the exit code.
  [[nodiscard]] int run() const;

 private:
  struct Flags {
    bool serves = false;
    std::string listen_address = commands::kArgoServerAddress;
    std::string server_url = commands::kArgoServerUrl;
    std::string keys;
  };

  const CLI::App& command_;  // Not used by run(): the parser is destroyed by then.
  SettingFlags settings_;
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();  // CLI11 keeps pointers to it.
};

// `arguments` without the program's name. Returns the exit code.
[[nodiscard]] int run_yokecd(std::span<const std::string> arguments);

}  // namespace hangar::cli
