#include "go_build/build.h"

#include "base/limits.h"
#include "base/result.h"
#include "go_build/guest_sources.h"
#include "go_build/known_files.h"
#include "go_build/limits.h"
#include "go_build/packages.h"
#include "go_build/program_place.h"
#include "go_build/toolchain.h"
#include "io/file.h"
#include "io/program.h"
#include "json/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::go_build {

namespace {

namespace fs = std::filesystem;

// Bound for source files, and for the output of `go list` about a thousand packages.
constexpr std::uint64_t kSourceBytesMax = 16 * limits::kMiB;
constexpr std::uint64_t kListingBytesMax = 256 * limits::kMiB;

// The file that is added to the main package. It exists only in -overlay.
constexpr std::string_view kMainFile = "zz_hangar_guest.go";

Result<std::string> read_source(const fs::path& path) {
  return io::read_file(path, kSourceBytesMax);
}

Result<> make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return {};
  return fail(ErrorKind::Unavailable, fmt::format("make {}: {}", path.string(), error.message()));
}

Result<> write_source(const fs::path& path, std::string_view text) {
  HANGAR_TRY(make_directories(path.parent_path()));
  return io::write_file(path, text);
}

// The path for the copy of a replaced module. The built module contains it (go version -m), so it
// must be the same in each build: equal programs give equal bytes.
fs::path place_of(std::string_view module) {
  return fs::path("/hangar-build") / module;
}

class Build {
 public:
  Build(const BuildOptions& options, const Say& say) : options_(options), say_(say) {}

  Result<Built> run();

 private:
  // Runs `go env` in the program's directory.
  Result<> look_at_toolchain();
  // Makes a go.mod and a go.sum that the build may change.
  Result<> copy_go_mod();
  Result<> list_packages();
  // Replaces each module with files that have to change.
  Result<> change_modules();
  // The directory in which the program now finds that module; it exists only in -overlay.
  Result<fs::path> replace(const Package& package);
  Result<> change_standard_library();
  // Replaces the content of the file in this build, whether or not the file exists.
  Result<> lay_over(const fs::path& file, std::string_view text);
  Result<> add_guest();
  Result<> compile();
  void tell_changes() const;

  // Runs go in the program's directory, for a guest's platform, with the go.mod of the build.
  Result<io::ProgramOutput> go(std::vector<std::string> arguments);
  Result<> edit_go_mod(std::vector<std::string> edits);
  [[nodiscard]] fs::path go_mod() const { return options_.work / "build" / "go.mod"; }
  [[nodiscard]] std::string modfile_flag() const { return "-modfile=" + go_mod().string(); }
  [[nodiscard]] std::vector<std::string> environment() const;
  [[nodiscard]] const Package* find(std::string_view import_path) const;

  const BuildOptions& options_;
  const Say& say_;
  fs::path go_;
  fs::path directory_;  // Directory of the program's main package.
  std::string go_version_;
  fs::path go_root_;
  fs::path user_go_mod_;
  std::vector<Package> packages_;
  std::map<std::string, fs::path> replaced_;  // By module.
  std::map<std::string, std::string> overlay_;
  std::vector<Change> changes_;
};

std::vector<std::string> Build::environment() const {
  // The user's own workspace and flags would change this build. An empty GOFLAGS would not override
  // what `go env -w` has stored.
  return {"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off"};
}

Result<io::ProgramOutput> Build::go(std::vector<std::string> arguments) {
  return io::read_program({.path = go_,
                           .arguments = std::move(arguments),
                           .directory = directory_,
                           .environment = environment()},
                          kListingBytesMax);
}

Result<> Build::edit_go_mod(std::vector<std::string> edits) {
  std::vector<std::string> arguments = {"mod", "edit"};
  arguments.insert(arguments.end(), edits.begin(), edits.end());
  arguments.push_back(go_mod().string());
  const io::ProgramOutput output = HANGAR_TRY(go(std::move(arguments)));
  if (output.exit_code == 0) return {};
  return fail(ErrorKind::InvalidInput, "go mod edit has refused the program's go.mod");
}

const Package* Build::find(std::string_view import_path) const {
  const auto found = std::ranges::find(packages_, import_path, &Package::import_path);
  return found == packages_.end() ? nullptr : &*found;
}

Result<> Build::look_at_toolchain() {
  // Runs in the program's directory: its go.mod may make the go command choose another toolchain.
  const io::ProgramOutput output = HANGAR_TRY(
      io::read_program({.path = go_,
                        .arguments = {"env", "-json", "GOVERSION", "GOROOT", "GOMOD", "GOWORK"},
                        .directory = directory_},
                       kSourceBytesMax));
  if (output.exit_code != 0) return fail(ErrorKind::InvalidInput, "go env has failed");
  const json::Value variables = HANGAR_TRY(json::parse(output.text));
  go_version_ = json::string_at(variables, {"GOVERSION"});
  go_root_ = std::string(json::string_at(variables, {"GOROOT"}));
  user_go_mod_ = std::string(json::string_at(variables, {"GOMOD"}));
  const std::string warning = HANGAR_TRY(check_toolchain(go_version_));
  if (!warning.empty()) say_("warning: " + warning);
  // `go env GOMOD` prints os.DevNull outside of a module.
  if (user_go_mod_.empty() || user_go_mod_ == "/dev/null") {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} is not in a Go module: make one with go mod init and go mod tidy",
                            directory_.string()));
  }
  if (!json::string_at(variables, {"GOWORK"}).empty()) {
    say_(fmt::format("note: {} is not used: go.mod must list the modules that the program needs",
                     json::string_at(variables, {"GOWORK"})));
  }
  return {};
}

Result<> Build::copy_go_mod() {
  const std::string text = HANGAR_TRY(read_source(user_go_mod_));
  HANGAR_TRY(write_source(go_mod(), text));
  const Result<std::string> sums = read_source(fs::path(user_go_mod_).replace_extension(".sum"));
  if (!sums && sums.error().kind() != ErrorKind::NotFound) return std::unexpected(sums.error());
  return write_source(go_mod().replace_extension(".sum"), sums ? *sums : std::string());
}

Result<> Build::list_packages() {
  std::vector<std::string> arguments = {
      "list", "-e", "-deps", modfile_flag(),
      "-json=ImportPath,Name,Dir,Standard,Module,GoFiles,IgnoredGoFiles,Imports,Error"};
  if (!options_.tags.empty()) arguments.push_back("-tags=" + options_.tags);
  arguments.emplace_back(".");
  const io::ProgramOutput output = HANGAR_TRY(go(std::move(arguments)));
  if (output.exit_code != 0) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("go list has failed in {}", directory_.string()));
  }
  packages_ = HANGAR_TRY(read_packages(output.text));
  return check_packages(packages_, read_source);
}

Result<fs::path> Build::replace(const Package& package) {
  if (const auto known = replaced_.find(package.module); known != replaced_.end()) {
    return known->second;
  }
  fs::path place = place_of(package.module);
  for (const fs::path& file : HANGAR_TRY(files_below(package.module_directory))) {
    overlay_[(place / file).string()] = (package.module_directory / file).string();
  }
  std::vector<std::string> edits;
  // The program's own replacement is dropped: one that names a version would take precedence.
  const io::ProgramOutput output = HANGAR_TRY(go({"mod", "edit", "-json", go_mod().string()}));
  const json::Value parsed = HANGAR_TRY(json::parse(output.text));
  if (const json::Array* const replaced = json::array_at(parsed, {"Replace"})) {
    for (const json::Value& one : *replaced) {
      if (json::string_at(one, {"Old", "Path"}) != package.module) continue;
      const std::string_view version = json::string_at(one, {"Old", "Version"});
      edits.push_back(
          fmt::format("-dropreplace={}{}{}", package.module, version.empty() ? "" : "@", version));
    }
  }
  edits.push_back(fmt::format("-replace={}={}", package.module, place.string()));
  HANGAR_TRY(edit_go_mod(std::move(edits)));
  replaced_[package.module] = place;
  return place;
}

Result<> Build::lay_over(const fs::path& file, std::string_view text) {
  const fs::path actual = options_.work / "texts" / file.relative_path();
  HANGAR_TRY(write_source(actual, text));
  overlay_[file.string()] = actual.string();
  return {};
}

Result<> Build::change_modules() {
  // All files are checked before the first one is replaced, so that an unknown version fails fast.
  std::vector<std::pair<const ChangedFile*, Change>> changes;
  for (const ChangedFile& file : changed_files()) {
    const Package* const package = find(file.import_path());
    if (package == nullptr) continue;
    Result<std::string> text = read_source(package->directory / file.name);
    Result<Change> changed =
        text ? change(file, package->version, *text) : std::unexpected(std::move(text).error());
    if (!changed && file.unknown == Unknown::LeftAlone) continue;
    changes.emplace_back(&file, HANGAR_TRY(std::move(changed)));
  }
  for (auto& [file, changed] : changes) {
    const Package* const package = find(file->import_path());
    const fs::path place = HANGAR_TRY(replace(*package)) / file->directory;
    HANGAR_TRY(lay_over(place / file->name, changed.text));
    if (file->module == kControllerRuntime) {
      HANGAR_TRY(
          lay_over(place / "hangar_options.go", in_package_manager(manager_options_source())));
    }
    changes_.push_back(std::move(changed));
  }
  return {};
}

Result<> Build::change_standard_library() {
  for (const StandardFile& file : standard_files()) {
    const fs::path path = go_root_ / "src" / file.path;
    const std::string text = HANGAR_TRY(read_source(path));
    Change changed = HANGAR_TRY(change(file, go_version_, text));
    HANGAR_TRY(lay_over(path, changed.text));
    changes_.push_back(std::move(changed));
  }
  return {};
}

Result<> Build::add_guest() {
  // A program that imports the SDK contains the package already, and must not have it twice.
  const auto has_sdk = [](const Package& package) { return package.module == kGuestModule; };
  if (std::ranges::none_of(packages_, has_sdk)) {
    const fs::path place = place_of(kGuestModule);
    HANGAR_TRY(lay_over(place / "go.mod", guest_go_mod()));
    for (const GuestSource& source : guest_sources()) {
      HANGAR_TRY(lay_over(place / "guest" / source.name, source.text));
    }
    HANGAR_TRY(edit_go_mod({fmt::format("-require={}@v0.0.0", kGuestModule),
                            fmt::format("-replace={}={}", kGuestModule, place.string())}));
  }
  return lay_over(packages_.back().directory / kMainFile, main_source());
}

Result<> Build::compile() {
  json::Object replace;
  for (const auto& [path, copy] : overlay_)
    replace[path] = copy;
  const fs::path overlay = options_.work / "overlay.json";
  HANGAR_TRY(io::write_file(overlay, json::dump(json::Object{{"Replace", std::move(replace)}})));
  std::vector<std::string> arguments = {
      "build", modfile_flag(), "-overlay=" + overlay.string(), "-buildmode=c-shared", "-trimpath",
      "-buildvcs=false",
      // Without -s, which would remove the names of functions: messages about traps show them. The
      // SDK turns off signals through internals of os/signal.
      fmt::format("-ldflags=-w -checklinkname=0 {}", options_.ldflags), "-o",
      fs::absolute(options_.output).string()};
  if (!options_.tags.empty()) arguments.push_back("-tags=" + options_.tags);
  arguments.emplace_back(".");
  const int exit_code = HANGAR_TRY(io::run_program({.path = go_,
                                                    .arguments = std::move(arguments),
                                                    .directory = directory_,
                                                    .environment = environment()}));
  if (exit_code == 0) return {};
  std::string message = "go build has refused the program";
  for (const Package& package : packages_) {
    if (package.is_standard || !package.is_of_main_module) continue;
    const std::vector<std::string> files = cgo_files(package, read_source);
    if (files.empty()) continue;
    message += fmt::format("; package {} needs cgo ({}), and there is no C in a guest",
                           package.import_path, fmt::join(files, ", "));
  }
  return fail(ErrorKind::InvalidInput, std::move(message));
}

void Build::tell_changes() const {
  const auto tell_lines = [this](char mark, std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      say_(fmt::format("  {} {}", mark, text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  };
  say_("main is unchanged. What it is built with differs in these lines:");
  for (const Change& changed : changes_) {
    say_(fmt::format("{}:{}: {}", changed.file, changed.line_number, changed.why));
    tell_lines('-', changed.before);
    tell_lines('+', changed.after);
  }
}

Result<Built> Build::run() {
  const Result<fs::path> go = io::find_program("go");
  if (!go) {
    return fail(
        ErrorKind::NotFound,
        "go not found on PATH: programs are built with your own toolchain; install Go 1.26");
  }
  go_ = *go;
  directory_ = HANGAR_TRY(find_program_directory(options_.program, go_, options_.work, say_));
  HANGAR_TRY(look_at_toolchain());
  HANGAR_TRY(copy_go_mod());
  HANGAR_TRY(list_packages());
  HANGAR_TRY(change_modules());
  HANGAR_TRY(change_standard_library());
  HANGAR_TRY(add_guest());
  tell_changes();
  say_(fmt::format("building {} with {}", packages_.back().import_path, go_version_));
  HANGAR_TRY(compile());
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(options_.output, error);
  if (error) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{}: {}", options_.output.string(), error.message()));
  }
  if (bytes > limits::kBuiltModuleBytesMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("the module has {} MiB, and a host takes at most {}: leave packages out, "
                    "with --tags where the program has some for that",
                    bytes / limits::kMiB, limits::kBuiltModuleBytesMax / limits::kMiB));
  }
  return Built{.bytes = bytes, .changes = std::move(changes_)};
}

}  // namespace

std::string name_of(std::string_view program) {
  program = program.substr(0, program.find('@'));
  while (!program.empty()) {
    const std::size_t slash = program.rfind('/');
    const bool is_last = slash == std::string_view::npos;
    const std::string_view name = is_last ? program : program.substr(slash + 1);
    program = is_last ? std::string_view() : program.substr(0, slash);
    const bool is_version = name.size() > 1 && name.front() == 'v' &&
                            name.find_first_not_of("0123456789", 1) == std::string_view::npos;
    const bool says_nothing = is_version || name == "cmd";
    if (!name.empty() && name != "." && name != ".." && (!says_nothing || program.empty())) {
      return std::string(name);
    }
  }
  return "operator";
}

Result<Built> build(const BuildOptions& options, const Say& say) {
  return Build(options, say).run();
}

}  // namespace hangar::go_build
