// Reads the output of `go list -deps -json` about a program's packages, and explains why some
// cannot be part of a guest.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::go_build {

struct Package {
  std::string import_path;
  std::string name;
  std::filesystem::path directory;
  bool is_standard = false;
  // The package's module; empty for the standard library.
  std::string module;
  std::string version;  // The version in the build: "v0.37.0", or its replacement.
  std::filesystem::path module_directory;
  bool is_of_main_module = false;
  bool has_go_files = false;               // Go files for a guest's platform.
  std::vector<std::string> ignored_files;  // Go files that are left out on that platform.
  std::vector<std::string> imports;
  std::string error;  // Why it cannot be built; empty: no error is known.
};

// Parses the documents that `go list -json` prints in sequence. InvalidInput.
[[nodiscard]] Result<std::vector<Package>> read_packages(std::string_view text);

using ReadFile = std::function<Result<std::string>(const std::filesystem::path&)>;

// The files of a package that need cgo and are left out for no other reason.
[[nodiscard]] std::vector<std::string> cgo_files(const Package& package, const ReadFile& read_file);

// InvalidInput, with an explanation, for the first package that needs cgo or plugins, or that Go
// cannot build for another reason. `packages` are in the order of go list: the program comes last.
[[nodiscard]] Result<> check_packages(std::span<const Package> packages, const ReadFile& read_file);

}  // namespace hangar::go_build
