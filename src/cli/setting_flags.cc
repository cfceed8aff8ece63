#include "cli/setting_flags.h"

#include "base/dns_name.h"
#include "base/limits.h"
#include "cli/standard_streams.h"
#include "io/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace hangar::cli {

namespace {

// The file may contain settings of other commands; they are checked and ignored.
constexpr const char* kConfigHelp = "YAML file with settings, such as logLevel: info";

}  // namespace

int report(const Error& error, int code) {
  fmt::print(stderr, "hangar: {}\n", without_controls(error.message()));
  return code;
}

SettingFlags::SettingFlags(CLI::App& command) {
  command.add_option("--config", file_, kConfigHelp)->type_name("FILE");
  for (const host::Setting& setting : host::settings())
    add(command, setting, setting.name);
}

SettingFlags::SettingFlags(CLI::App& command, std::initializer_list<host::Part> parts,
                           std::initializer_list<Renamed> renamed) {
  command.add_option("--config", file_, kConfigHelp)->type_name("FILE");
  for (const host::Setting& setting : host::settings()) {
    if (std::ranges::find(parts, setting.part) == parts.end()) continue;
    const auto* const other = std::ranges::find(renamed, setting.name, &Renamed::setting);
    add(command, setting, other == renamed.end() ? setting.name : other->flag);
  }
}

void SettingFlags::add(CLI::App& command, const host::Setting& setting, std::string_view name) {
  Given& given = given_.emplace_back(Given{.setting = &setting, .flag = name, .text = {}});
  const std::string flag = fmt::format("--{}", name);
  const std::string help = fmt::format("{} [{}]", setting.help, setting.variable());
  if (setting.is_switch) {
    command.add_flag(flag + "{true}", given.text, help);
  } else {
    command.add_option(flag, given.text, help)->type_name(std::string(setting.type));
  }
}

Result<host::Config> SettingFlags::resolve() const {
  host::Config config;
  if (!file_.empty()) {
    Result<std::string> text = io::read_file(file_, limits::kObjectBytesMax);
    if (!text) return std::unexpected(std::move(text).error());
    Result<> applied = host::apply_file(config, *text);
    if (!applied) return std::unexpected(std::move(applied).error().in(file_));
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts.
  HANGAR_TRY(host::apply_environment(config, [](const char* name) { return std::getenv(name); }));
  for (const Given& given : given_) {
    if (given.text.empty()) continue;
    Result<> set = given.setting->set(config, given.text);
    if (!set) {
      return std::unexpected(std::move(set).error().in(fmt::format("--{}", given.flag)));
    }
  }
  return config;
}

// Namespaces are names without dots, and shorter (RFC 1123 labels).
std::string check_namespace(const std::string& name) {
  constexpr std::size_t kBytesMax = 63;
  if (name.empty()) return {};
  if (is_dns_subdomain(name) && name.size() <= kBytesMax && !name.contains('.')) return {};
  return fmt::format(
      "must be a namespace such as my-team: lower case letters, digits and '-', at most {}, "
      "beginning and ending with a letter or digit",
      kBytesMax);
}

}  // namespace hangar::cli
