// What the commands share: the settings of host::settings() as flags, and exit codes.
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

// Says it on the standard error, and returns `code`.
int report(const Error& error, int code);

// The settings of host::settings() as flags of one command. A flag wins over the environment, the
// environment over the file.
class SettingFlags {
 public:
  // Those of `parts`: what the command does not use is not in its help, and refused.
  // `renamed`: which have another name as a flag of this command than they have elsewhere.
  struct Renamed {
    std::string_view setting;
    std::string_view flag;
  };
  SettingFlags(CLI::App& command, std::initializer_list<host::Part> parts,
               std::initializer_list<Renamed> renamed = {});
  // All of them.
  explicit SettingFlags(CLI::App& command);

  SettingFlags(const SettingFlags&) = delete;  // The parser has the addresses of its members.
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
  std::deque<Given> given_;  // Addresses stay valid.
};

// For an option whose value is a namespace: why it cannot be one, or nothing. An empty one is as
// none.
[[nodiscard]] std::string check_namespace(const std::string& name);

}  // namespace hangar::cli
