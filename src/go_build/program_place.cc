#include "go_build/program_place.h"

#include "base/limits.h"
#include "base/result.h"
#include "io/program.h"
#include "json/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::go_build {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kAnswerBytesMax = 4 * limits::kMiB;

// For an import path outside of the current module the user must give the version.
Result<fs::path> find_package(const std::string& program, const fs::path& go) {
  const io::ProgramOutput output = HANGAR_TRY(io::read_program(
      {.path = go,
       .arguments = {"list", "-find", "-e", "-json=Dir,Module", "--", program},
       .environment = {"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly"}},
      kAnswerBytesMax));
  const Result<json::Value> package = json::parse(output.text);
  if (output.exit_code == 0 && package && json::bool_at(*package, {"Module", "Main"}) &&
      !json::string_at(*package, {"Dir"}).empty()) {
    return fs::path(std::string(json::string_at(*package, {"Dir"})));
  }
  return fail(ErrorKind::NotFound,
              fmt::format("{} is not a directory, and not a package of the module here; from the "
                          "module proxy it is {}@latest, or @ and a version",
                          program, program));
}

// Checks which modules this module replaces by directories outside of it.
Result<> check_replacements(const std::string& module, const fs::path& directory,
                            const fs::path& go) {
  const io::ProgramOutput output = HANGAR_TRY(
      io::read_program({.path = go,
                        .arguments = {"mod", "edit", "-json", (directory / "go.mod").string()},
                        .directory = directory},
                       kAnswerBytesMax));
  if (output.exit_code != 0) {
    return fail(ErrorKind::InvalidInput, fmt::format("{} has no go.mod that go can read", module));
  }
  const json::Value go_mod = HANGAR_TRY(json::parse(output.text));
  std::vector<std::string> missing;
  const json::Array* const replaced = json::array_at(go_mod, {"Replace"});
  if (replaced == nullptr) return {};
  for (const json::Value& one : *replaced) {
    const std::string path(json::string_at(one, {"New", "Path"}));
    if (!json::string_at(one, {"New", "Version"}).empty()) continue;
    std::error_code ignored;
    if (!fs::exists(directory / path / "go.mod", ignored)) missing.push_back(path);
  }
  if (missing.empty()) return {};
  constexpr std::size_t kNamed = 3;
  const std::size_t count = missing.size();
  if (count > kNamed) missing.resize(kNamed);
  return fail(ErrorKind::InvalidInput,
              fmt::format("{} replaces modules by directories that are not in it ({}{}), so it can "
                          "only be built from its repository: check that out and name the "
                          "directory",
                          module, fmt::join(missing, ", "), count > kNamed ? ", ..." : ""));
}

Result<fs::path> download(std::string_view import_path, std::string_view version,
                          const fs::path& go, const fs::path& work,
                          const std::function<void(std::string_view)>& say) {
  std::string why;
  bool is_module_known = false;
  for (const std::string& module : possible_modules(import_path)) {
    const io::ProgramOutput output = HANGAR_TRY(io::read_program(
        {.path = go,
         .arguments = {"mod", "download", "-json", "--", fmt::format("{}@{}", module, version)},
         .directory = work,
         .environment = {"GOFLAGS=-mod=readonly", "GOWORK=off"}},
        kAnswerBytesMax));
    const Result<json::Value> answer = json::parse(output.text);
    if (!answer || output.exit_code != 0) {
      // Of several errors, that of the shortest path is reported: longer paths are not even names
      // of repositories.
      if (answer && !is_module_known) why = json::string_at(*answer, {"Error"});
      continue;
    }
    const fs::path source = std::string(json::string_at(*answer, {"Dir"}));
    const fs::path below = fs::path(std::string(import_path.substr(module.size()))).relative_path();
    std::error_code ignored;
    if (!fs::is_directory(source / below, ignored)) {
      is_module_known = true;
      why = fmt::format("{}@{} has no directory {}", module, json::string_at(*answer, {"Version"}),
                        below.string());
      continue;
    }
    say(fmt::format("{} {} from the module proxy", module, json::string_at(*answer, {"Version"})));
    HANGAR_TRY(check_replacements(fmt::format("{}@{}", module, version), source, go));
    const fs::path copy = work / "program";
    HANGAR_TRY(copy_tree(source, copy));
    return copy / below;
  }
  return fail(ErrorKind::NotFound, fmt::format("{}@{}: {}", import_path, version, why));
}

}  // namespace

std::vector<std::string> possible_modules(std::string_view import_path) {
  std::vector<std::string> modules;
  while (true) {
    modules.emplace_back(import_path);
    const std::size_t slash = import_path.rfind('/');
    if (slash == std::string_view::npos || import_path.find('/') == slash) break;
    import_path = import_path.substr(0, slash);
  }
  return modules;
}

Result<std::vector<fs::path>> files_below(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entries(directory, error);
  while (!error && entries != fs::recursive_directory_iterator()) {
    if (entries->is_regular_file(error) && !error) {
      files.push_back(entries->path().lexically_relative(directory));
    }
    if (!error) entries.increment(error);
  }
  if (!error) return files;
  return fail(ErrorKind::Unavailable,
              fmt::format("read {}: {}", directory.string(), error.message()));
}

Result<> copy_tree(const fs::path& from, const fs::path& to) {
  for (const fs::path& file : HANGAR_TRY(files_below(from))) {
    const fs::path copy = to / file;
    std::error_code error;
    fs::create_directories(copy.parent_path(), error);
    if (!error) fs::copy_file(from / file, copy, error);
    // Files in the module cache are read-only.
    if (!error) fs::permissions(copy, fs::perms::owner_write, fs::perm_options::add, error);
    if (error) {
      return fail(ErrorKind::Unavailable,
                  fmt::format("copy {}: {}", (from / file).string(), error.message()));
    }
  }
  return {};
}

Result<fs::path> find_program_directory(const std::string& program, const fs::path& go,
                                        const fs::path& work,
                                        const std::function<void(std::string_view)>& say) {
  if (const std::size_t at = program.find('@'); at != std::string::npos) {
    return download(std::string_view(program).substr(0, at),
                    std::string_view(program).substr(at + 1), go, work, say);
  }
  std::error_code ignored;
  if (fs::is_directory(program, ignored)) return fs::canonical(program, ignored);
  if (program.starts_with('.') || program.starts_with('/')) {
    return fail(ErrorKind::NotFound, fmt::format("{} is not a directory", program));
  }
  return find_package(program, go);
}

}  // namespace hangar::go_build
