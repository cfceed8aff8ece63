#include "go_build/packages.h"

#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::go_build {

namespace {

std::vector<std::string> strings_at(const json::Value& value, std::string_view name) {
  std::vector<std::string> strings;
  const json::Array* const array = json::array_at(value, {name});
  if (array == nullptr) return strings;
  for (const json::Value& one : *array) {
    if (one.is_string()) strings.emplace_back(one.get_string());
  }
  return strings;
}

bool is_not_empty(const json::Value& value, std::string_view name) {
  const json::Array* const array = json::array_at(value, {name});
  return array != nullptr && !array->empty();
}

Package read_package(const json::Value& value) {
  Package package{.import_path = std::string(json::string_at(value, {"ImportPath"})),
                  .name = std::string(json::string_at(value, {"Name"})),
                  .directory = std::string(json::string_at(value, {"Dir"})),
                  .is_standard = json::bool_at(value, {"Standard"}),
                  .module = std::string(json::string_at(value, {"Module", "Path"})),
                  .version = std::string(json::string_at(value, {"Module", "Version"})),
                  .module_directory = std::string(json::string_at(value, {"Module", "Dir"})),
                  .is_of_main_module = json::bool_at(value, {"Module", "Main"}),
                  .has_go_files = is_not_empty(value, "GoFiles"),
                  .ignored_files = strings_at(value, "IgnoredGoFiles"),
                  .imports = strings_at(value, "Imports"),
                  .error = std::string(json::string_at(value, {"Error", "Err"}))};
  if (json::object_at(value, {"Module", "Replace"}) != nullptr) {
    const std::string_view version = json::string_at(value, {"Module", "Replace", "Version"});
    package.version =
        fmt::format("=> {}{}{}", json::string_at(value, {"Module", "Replace", "Path"}),
                    version.empty() ? "" : " ", version);
  }
  return package;
}

std::string_view trim(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t begin = line.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kSpace) + 1 - begin);
}

// True when a file imports C and no other condition could exclude it. Assumes gofmt's style: cgo
// ignores the comment before an import within parentheses.
bool needs_cgo(std::string_view text) {
  bool imports_c = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    if (line.starts_with("//go:build")) return false;
    imports_c = imports_c || line == "import \"C\"";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return imports_c;
}

}  // namespace

Result<std::vector<Package>> read_packages(std::string_view text) {
  // Each document is an object that ends in a line with a single brace.
  constexpr std::string_view kEnd = "\n}\n";
  std::vector<Package> packages;
  while (!text.empty()) {
    const std::size_t at = text.find(kEnd);
    const std::size_t size = at == std::string_view::npos ? text.size() : at + kEnd.size();
    Result<json::Value> document = json::parse(text.substr(0, size));
    if (!document) return std::unexpected(std::move(document).error().in("go list"));
    packages.push_back(read_package(*document));
    text.remove_prefix(size);
  }
  return packages;
}

std::vector<std::string> cgo_files(const Package& package, const ReadFile& read_file) {
  std::vector<std::string> files;
  for (const std::string& name : package.ignored_files) {
    if (name.ends_with("_test.go")) continue;
    const Result<std::string> text = read_file(package.directory / name);
    if (text && needs_cgo(*text)) files.push_back(name);
  }
  return files;
}

Result<> check_packages(std::span<const Package> packages, const ReadFile& read_file) {
  for (const Package& package : packages) {
    if (package.is_standard) continue;
    if (std::ranges::find(package.imports, "plugin") != package.imports.end()) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("package {} imports plugin: a guest is one module and loads no "
                              "others",
                              package.import_path));
    }
    // If there are other files to compile, the files for cgo may be optional.
    if (!package.has_go_files) {
      const std::vector<std::string> files = cgo_files(package, read_file);
      if (!files.empty()) {
        return fail(ErrorKind::InvalidInput,
                    fmt::format("package {} needs cgo ({}): there is no C in a guest. Look for a "
                                "package in Go alone, or a build tag that chooses one (--tags)",
                                package.import_path, fmt::join(files, ", ")));
      }
    }
    if (!package.error.empty()) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("package {}: {}", package.import_path, package.error));
    }
  }
  if (packages.empty()) return fail(ErrorKind::InvalidInput, "no package was found");
  const Package& program = packages.back();
  if (program.name == "main") return {};
  return fail(ErrorKind::InvalidInput,
              fmt::format("{} is package {} and not a program: name the directory of its main",
                          program.import_path, program.name));
}

}  // namespace hangar::go_build
