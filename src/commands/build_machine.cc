#include "commands/build_machine.h"

#include "abi/statemachine/limits.h"
#include "base/dns_name.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/run_machine.h"
#include "commands/temporary_directory.h"
#include "host/config.h"
#include "io/file.h"
#include "json/value.h"
#include "json/yaml.h"
#include "modules/config_map.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kEntries = {
    "src/index.ts",   "src/index.js",   "index.ts",   "index.js",
    "src/machine.ts", "src/machine.js", "machine.ts", "machine.js"};
constexpr std::string_view kKey = "machine.js";

bool is_program(const fs::path& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

Result<fs::path> find_esbuild(const fs::path& directory) {
  if (const fs::path own = directory / "node_modules/.bin/esbuild"; is_program(own)) {
    return fs::absolute(own);
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread changes it.
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path candidate = fs::path(rest.substr(0, end)) / "esbuild";
    if (end > 0 && is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return fail(ErrorKind::NotFound,
              fmt::format("no esbuild in {}/node_modules/.bin or on PATH: npm install --save-dev "
                          "esbuild",
                          directory.string()));
}

Result<fs::path> find_entry(const MachineProject& project) {
  if (!fs::is_directory(project.directory)) {
    return fail(ErrorKind::NotFound, fmt::format("{} is no directory", project.directory.string()));
  }
  if (!project.entry.empty()) return fs::path(project.entry);
  const auto* const found = std::ranges::find_if(kEntries, [&project](std::string_view entry) {
    return fs::is_regular_file(project.directory / entry);
  });
  if (found != kEntries.end()) return fs::path(*found);
  return fail(ErrorKind::NotFound,
              fmt::format("{} has none of {}: name the file with --entry",
                          project.directory.string(), fmt::join(kEntries, ", ")));
}

// Runs it in `directory`; its words go to stderr.
Result<> run_program(const fs::path& program, std::vector<std::string> arguments,
                     const fs::path& directory) {
  std::string name = program.string();
  std::vector<char*> argv = {name.data()};
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, name.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return fail(ErrorKind::Unavailable,
                fmt::format("run {}: {}", name, std::generic_category().message(error)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorKind::InvalidInput, fmt::format("{} could not bundle the project", name));
}

// A directory's name as a ConfigMap may be called.
std::string object_name(const fs::path& directory) {
  std::string name = fs::weakly_canonical(directory).filename().string();
  for (char& letter : name) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '-';
  }
  name.erase(0, name.find_first_not_of('-'));
  name.resize(std::min(name.size(), kDnsNameBytesMax));
  name.erase(name.find_last_not_of('-') + 1);
  return name.empty() ? "machine" : name;
}

}  // namespace

Result<std::string> bundle_project(const MachineProject& project) {
  const fs::path entry = HANGAR_TRY(find_entry(project));
  const fs::path esbuild = HANGAR_TRY(find_esbuild(project.directory));
  const std::unique_ptr<TemporaryDirectory> work = HANGAR_TRY(TemporaryDirectory::make());
  const fs::path bundle = work->path() / kKey;
  // Names stay as they are: they are in errors.
  HANGAR_TRY(
      run_program(esbuild,
                  {"./" + entry.string(), "--bundle", "--format=esm", "--target=es2022",
                   "--minify-whitespace", "--minify-syntax", "--log-level=error",
                   "--define:process.env.NODE_ENV=\"production\"", "--outfile=" + bundle.string()},
                  project.directory));
  return io::read_file(bundle, limits::kMachineBundleBytesMax);
}

Result<std::string> build_machine(const host::Config& config, const BuildMachineOptions& options,
                                  const Log& log) {
  const std::string bundle = HANGAR_TRY(bundle_project(options.project));
  const std::unique_ptr<TemporaryDirectory> work = HANGAR_TRY(TemporaryDirectory::make());
  const fs::path file = work->path() / kKey;
  HANGAR_TRY(io::write_file(file, bundle));
  HANGAR_TRY(check_machine(config, file.string(), log));

  modules::ConfigMapContent content = HANGAR_TRY(modules::in_config_map(kKey, bundle));
  json::Object metadata = {
      {"name", options.name.empty() ? object_name(options.project.directory) : options.name}};
  if (!options.namespace_.empty()) metadata["namespace"] = options.namespace_;
  json::Object values;
  for (auto& [key, value] : content.binary_data)
    values[key] = std::move(value);
  return json::to_yaml(json::Object{{"apiVersion", "v1"},
                                    {"kind", "ConfigMap"},
                                    {"metadata", std::move(metadata)},
                                    {"binaryData", std::move(values)}});
}

}  // namespace hangar::commands
