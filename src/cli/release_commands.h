// Yoke's commands for releases. Names, aliases, flags (with one dash or two), texts and exit codes
// are those of yoke's own program.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "cli/setting_flags.h"
#include "commands/blackbox.h"
#include "commands/releases.h"
#include "commands/stow.h"
#include "commands/takeoff.h"
#include "commands/turbulence.h"
#include "host/config.h"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::cli {

// One of the commands, with the flags that all of them have.
class ReleaseCommand {
 public:
  using Work =
      std::function<Result<commands::Finished>(const host::Config& config, const Log& log)>;

  ReleaseCommand(CLI::App& command, std::initializer_list<host::Part> parts);

  [[nodiscard]] const CLI::App& app() const { return command_; }
  [[nodiscard]] bool parsed() const { return command_.parsed(); }
  // Returns the exit code. Errors and warnings go to stderr without a prefix. `check` needs no
  // cluster; its error is reported instead of running `work`.
  [[nodiscard]] int run(const Result<>& check, const Work& work) const;

 private:
  CLI::App& command_;
  SettingFlags settings_;
  std::unique_ptr<bool> debug_ = std::make_unique<bool>(false);  // CLI11 keeps a pointer to it.
};

class ReleaseCommands {
 public:
  explicit ReleaseCommands(CLI::App& app);

  [[nodiscard]] std::vector<const CLI::App*> apps() const;
  [[nodiscard]] const CLI::App& takeoff_app() const { return takeoff_.app(); }
  // Sets the words after `--`, if they have been read separately.
  void take_flight_arguments(std::vector<std::string> arguments) {
    flags_->takeoff.args = std::move(arguments);
  }
  // The arguments for the parser, from `arguments` without the program's name: read as by Go's flag
  // package, without the words for the flight of a takeoff.
  [[nodiscard]] std::vector<std::string> read(std::vector<std::string> arguments);
  [[nodiscard]] bool parsed() const;
  // Runs the command that was parsed; returns the exit code.
  [[nodiscard]] int run() const;

 private:
  // The flags of takeoff, as given.
  struct TakeoffFlags {
    std::string module;
    std::vector<std::string> args;  // After "--".
    bool stdout_only = false;
    bool dry = false;
    bool skip_dry_run = false;
    bool diff_only = false;
    std::string out;
    bool create_namespace = false;
    bool cross_namespace = false;
    bool force_conflicts = false;
    bool force_ownership = false;
    bool cluster_access = false;
    std::vector<std::string> resource_access;
    bool insecure = false;
    std::string checksum;
    std::string verify;
    std::uint64_t memory_mib_max = 128;
    std::string timeout = "10s";
    std::int64_t history_max = 10;
    std::string compilation_cache;
  };
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
    TakeoffFlags takeoff;
    commands::TurbulenceOptions turbulence;
    commands::StowOptions stow;
    std::string module;  // The module of stow.
    bool color = false;

    [[nodiscard]] commands::ReleaseName name() const;
    [[nodiscard]] commands::PruneOptions prune() const;
    [[nodiscard]] Result<> check_release() const;
    // InvalidInput names the flag.
    [[nodiscard]] Result<commands::Waiting> waiting() const;
  };
  static void add_release(CLI::App& command, Flags& flags);
  static void add_waiting(CLI::App& command, Flags& flags);
  static void add_prune(CLI::App& command, Flags& flags);

  static void add_takeoff(CLI::App& command, Flags& flags);
  static void add_stow(CLI::App& command, Flags& flags);
  static void add_context(CLI::App& command, Flags& flags);
  static void add_difference(CLI::App& command, Flags& flags);
  // Does not read the standard input.
  [[nodiscard]] Result<commands::TakeoffOptions> takeoff_options() const;

  [[nodiscard]] int blackbox() const;
  [[nodiscard]] int descent() const;
  [[nodiscard]] int mayday() const;
  [[nodiscard]] int takeoff() const;
  [[nodiscard]] int turbulence() const;
  [[nodiscard]] int stow() const;
  [[nodiscard]] int unlatch() const;

  // CLI11 keeps pointers to it. The commands share it, since only one is parsed.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  ReleaseCommand blackbox_;
  ReleaseCommand descent_;
  ReleaseCommand mayday_;
  ReleaseCommand unlatch_;
  ReleaseCommand takeoff_;
  ReleaseCommand turbulence_;
  ReleaseCommand stow_;
};

}  // namespace hangar::cli
