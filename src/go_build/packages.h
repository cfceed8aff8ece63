// What `go list -deps -json` says of a program's packages, and why some cannot be in a guest.
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
  // Its module; empty for those of the standard library.
  std::string module;
  std::string version;  // What the build takes: "v0.37.0", or what replaces it.
  std::filesystem::path module_directory;
  bool is_of_main_module = false;
  bool has_go_files = false;               // For a guest's platform.
  std::vector<std::string> ignored_files;  // Of Go, left out on that platform.
  std::vector<std::string> imports;
  std::string error;  // Why it cannot be built; empty: nothing is known.
};

// The documents that `go list -json` prints one after the other. InvalidInput.
[[nodiscard]] Result<std::vector<Package>> read_packages(std::string_view text);

using ReadFile = std::function<Result<std::string>(const std::filesystem::path&)>;

// Which files of a package need cgo, though nothing but that keeps them out.
[[nodiscard]] std::vector<std::string> cgo_files(const Package& package, const ReadFile& read_file);

// InvalidInput, with words, for the first package that needs cgo or plugins, or that Go cannot
// build for another reason. `packages` are in the order of go list: the program is the last.
[[nodiscard]] Result<> check_packages(std::span<const Package> packages, const ReadFile& read_file);

}  // namespace hangar::go_build
