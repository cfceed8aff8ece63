// Finds the source of a program: a directory, a package of the surrounding module, or a module from
// the proxy, which is copied.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::go_build {

// "example.com/a/b/cmd" -> itself, "example.com/a/b", "example.com/a": the possible modules of a
// package, the longest first, in the order in which the go command tries them.
[[nodiscard]] std::vector<std::string> possible_modules(std::string_view import_path);

// The regular files below `directory`, relative to it.
[[nodiscard]] Result<std::vector<std::filesystem::path>> files_below(
    const std::filesystem::path& directory);

// Copies all files, and makes the copies writable by this user.
[[nodiscard]] Result<> copy_tree(const std::filesystem::path& from,
                                 const std::filesystem::path& to);

// The directory of the package. A module from the proxy is copied below `work` and built as its
// authors build it, with its own go.mod, go.sum and replacements. Errors: NotFound; InvalidInput
// when a module cannot be built by itself, because it replaces others by directories that the proxy
// does not have.
[[nodiscard]] Result<std::filesystem::path> find_program_directory(
    const std::string& program, const std::filesystem::path& go, const std::filesystem::path& work,
    const std::function<void(std::string_view)>& say);

}  // namespace hangar::go_build
