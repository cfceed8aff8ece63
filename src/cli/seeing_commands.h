// `hangar timeline`, `hangar why` and `hangar rights`: their flags, and what they print.
//
// All of them read the records of the host of the cluster, with the rights of the kubeconfig; those
// of this machine where a flag or variable says where they are.
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

// Where records are read, as flags.
class RecordsFlags {
 public:
  explicit RecordsFlags(CLI::App& command);
  RecordsFlags(const RecordsFlags&) = delete;  // The parser has the addresses of its members.
  RecordsFlags& operator=(const RecordsFlags&) = delete;

  // `given`: before directories are filled in.
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
