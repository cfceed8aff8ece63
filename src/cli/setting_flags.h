// Shared by all commands: the settings of host::settings() as flags, and exit codes.
#pragma once

#include "base/result.h"
#include "host/config.h"

#include <CLI/CLI.hpp>

#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hangar::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

// Prints the error to stderr and returns `code`.
int report(const Error& error, int code);

// The settings as flags of one command. A flag wins over the environment, the environment over the
// file.
class SettingFlags {
 public:
  // The settings of `parts`. All others are not in the command's help, and refused. `renamed`:
  // settings whose flag has another name in this command.
  struct Renamed {
    std::string_view setting;
    std::string_view flag;
  };
  SettingFlags(CLI::App& command, std::initializer_list<host::Part> parts,
               std::initializer_list<Renamed> renamed = {});
  // All settings.
  explicit SettingFlags(CLI::App& command);

  SettingFlags(const SettingFlags&) = delete;  // The parser has pointers to its members.
  SettingFlags& operator=(const SettingFlags&) = delete;

  [[nodiscard]] Result<host::Config> resolve() const;

 private:
  struct Given {
    const host::Setting* setting;
    std::string_view flag;
    std::string text;
  };
  void add(CLI::App& command, const host::Setting& setting, std::string_view flag);

  std::string file_;
  std::deque<Given> given_;  // A deque, so that pointers stay valid.
};

// A check for options whose value is a namespace: why it cannot be one, or nothing. An empty value
// counts as not given.
[[nodiscard]] std::string check_namespace(const std::string& name);

}  // namespace hangar::cli
