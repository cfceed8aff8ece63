// `hangar timeline`, `hangar why` and `hangar rights`: their flags and output.
//
// All of them read the records of the cluster's host, with the rights of the kubeconfig's user. If
// a flag or variable gives the directory of records, they read that directory of this machine
// instead.
#pragma once

#include "base/result.h"
#include "cli/setting_flags.h"
#include "commands/records.h"
#include "commands/rights.h"
#include "commands/timeline.h"
#include "commands/why.h"
#include "host/config.h"
#include "seeing/uses.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace hangar::cli {

// The flags for the source of records.
class RecordsFlags {
 public:
  explicit RecordsFlags(CLI::App& command);
  RecordsFlags(const RecordsFlags&) = delete;  // The parser has pointers to its members.
  RecordsFlags& operator=(const RecordsFlags&) = delete;

  // `given`: the configuration before host::resolve().
  [[nodiscard]] Result<commands::RecordsAccess> resolve(const host::Config& given) const;

 private:
  commands::HostPlace place_;
  std::string authority_;
};

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

  [[nodiscard]] Result<std::string> text(const host::Config& given) const;

  // CLI11 keeps pointers to it.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  RecordsFlags records_;
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
  RecordsFlags records_;
  SettingFlags settings_;
};

class RightsCommand {
 public:
  explicit RightsCommand(CLI::App& command);

  // Returns the exit code.
  [[nodiscard]] int run() const;

 private:
  struct Flags {
    commands::RightsOptions options;
    bool names = false;
    std::string output;
  };

  [[nodiscard]] Result<seeing::FoundUses> find(const host::Config& given,
                                               seeing::UsesQuestion& question) const;

  // CLI11 keeps pointers to it.
  std::unique_ptr<Flags> flags_ = std::make_unique<Flags>();
  RecordsFlags records_;
  SettingFlags settings_;
};

}  // namespace hangar::cli
