// Yoke's commands for releases: their names, aliases and flags are those of yoke's own program,
// with one dash or two; so are their texts and exit codes.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "cli/setting_flags.h"
#include "commands/blackbox.h"
#include "commands/releases.h"
#include "host/config.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace hangar::cli {

// One of them, with the flags that all have.
class ReleaseCommand {
 public:
  using Work =
      std::function<Result<commands::Finished>(const host::Config& config, const Log& log)>;

  ReleaseCommand(CLI::App& command, std::initializer_list<host::Part> parts);

  [[nodiscard]] const CLI::App& app() const { return command_; }
  [[nodiscard]] bool parsed() const { return command_.parsed(); }
  // Returns the exit code. Errors and warnings go to the standard error as they are: what comes of
  // `check`, which needs no cluster, first.
  [[nodiscard]] int run(const Result<>& check, const Work& work) const;

 private:
  CLI::App& command_;
  SettingFlags settings_;
  std::unique_ptr<bool> debug_ = std::make_unique<bool>(false);  // CLI11 keeps a pointer to it.
};

class ReleaseCommands {
 public:
  explicit ReleaseCommands(CLI::App& app);

  // For read_go_flags().
  [[nodiscard]] std::vector<const CLI::App*> apps() const;
  [[nodiscard]] bool parsed() const;
  // The one that was parsed; returns the exit code.
  [[nodiscard]] int run() const;

 private:
  // As they are written.
  struct Flags {
    std::string release;
    std::string namespace_;
    std::string revision;
    std::string compared_with;
    std::size_t context_lines = 4;
    std::string wait = "0";
    std::string poll = "5s";
    bool lock = false;
    bool load_custom_readiness = false;
    bool remove_all = false;
    bool remove_crds = false;
    bool remove_namespaces = false;

    [[nodiscard]] commands::ReleaseName name() const;
    [[nodiscard]] commands::PruneOptions prune() const;
    [[nodiscard]] Result<> check_release() const;
    // InvalidInput names the flag.
    [[nodiscard]] Result<commands::Waiting> waiting() const;
  };
  static void add_release(CLI::App& command, Flags& flags);
  static void add_waiting(CLI::App& command, Flags& flags);
  static void add_prune(CLI::App& command, Flags& flags);

  [[nodiscard]] int blackbox() const;
  [[nodiscard]] int descent() const;
  [[nodiscard]] int mayday() const;
  [[nodiscard]] int unlatch() const;

  // CLI11 keeps pointers to it. Only one of the commands is parsed.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  ReleaseCommand blackbox_;
  ReleaseCommand descent_;
  ReleaseCommand mayday_;
  ReleaseCommand unlatch_;
};

}  // namespace hangar::cli
