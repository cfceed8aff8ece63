#include "commands/build_machine.h"

#include "abi/statemachine/limits.h"
#include "base/consumer.h"
#include "base/dns_name.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/run_machine.h"
#include "commands/shown_step.h"
#include "commands/streams.h"
#include "commands/temporary_directory.h"
#include "host/config.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/program.h"
#include "io/run.h"
#include "io/workers.h"
#include "json/value.h"
#include "json/yaml.h"
#include "modules/config_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::commands {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kEntries = {
    "src/index.ts",   "src/index.js",   "index.ts",   "index.js",
    "src/machine.ts", "src/machine.js", "machine.ts", "machine.js"};
constexpr std::string_view kKey = "machine.js";

Result<fs::path> find_esbuild(const fs::path& directory) {
  if (const fs::path own = directory / "node_modules/.bin/esbuild"; io::is_program(own)) {
    return fs::absolute(own);
  }
  Result<fs::path> found = io::find_program("esbuild");
  if (found) return found;
  return fail(ErrorKind::NotFound,
              fmt::format("no esbuild in {}/node_modules/.bin or on PATH: npm install --save-dev "
                          "esbuild",
                          directory.string()));
}

Result<fs::path> find_entry(const MachineProject& project) {
  if (!fs::is_directory(project.directory)) {
    return fail(ErrorKind::NotFound,
                fmt::format("{} is not a directory", project.directory.string()));
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

// The name of a directory, changed to a valid name of a ConfigMap.
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

Result<std::string> run_esbuild(const MachineProject& project) {
  const fs::path entry = HANGAR_TRY(find_entry(project));
  const fs::path esbuild = HANGAR_TRY(find_esbuild(project.directory));
  const std::unique_ptr<TemporaryDirectory> work = HANGAR_TRY(TemporaryDirectory::make());
  const fs::path bundle = work->path() / kKey;
  // Does not minify names, because they appear in errors.
  const int exit_code = HANGAR_TRY(io::run_program(
      {.path = esbuild,
       .arguments = {"./" + entry.string(), "--bundle", "--format=esm", "--target=es2022",
                     "--minify-whitespace", "--minify-syntax", "--log-level=error",
                     "--define:process.env.NODE_ENV=\"production\"",
                     "--outfile=" + bundle.string()},
       .directory = project.directory}));
  if (exit_code != 0) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} could not bundle the project", esbuild.string()));
  }
  return io::read_file(bundle, limits::kMachineBundleBytesMax);
}

}  // namespace

Result<std::string> bundle_project(const MachineProject& project, const Say& show) {
  io::Loop loop;
  io::Workers thread(loop, 1);
  ShownStep step(loop, show);
  step.is("bundling");
  // The call blocks, and the step is shown by the loop.
  return io::run_to_end(
      loop, thread.run(unnamed_consumer(), [&project] { return run_esbuild(project); }));
}

Result<std::string> build_machine(const host::Config& config, const BuildMachineOptions& options,
                                  const Log& log) {
  const std::string bundle = HANGAR_TRY(bundle_project(options.project, options.show));
  const std::unique_ptr<TemporaryDirectory> work = HANGAR_TRY(TemporaryDirectory::make());
  const fs::path file = work->path() / kKey;
  HANGAR_TRY(io::write_file(file, bundle));
  HANGAR_TRY(check_machine(config, file.string(), options.show, log));

  const modules::ConfigMapContent content = HANGAR_TRY(modules::in_config_map(kKey, bundle));
  json::Object metadata = {
      {"name", options.name.empty() ? object_name(options.project.directory) : options.name}};
  if (!options.namespace_.empty()) metadata["namespace"] = options.namespace_;
  json::Object values;
  for (const auto& [key, value] : content.binary_data)
    values[key] = value;
  return json::to_yaml(json::Object{{"apiVersion", "v1"},
                                    {"kind", "ConfigMap"},
                                    {"metadata", std::move(metadata)},
                                    {"binaryData", std::move(values)}});
}

}  // namespace hangar::commands
