// Builds a Go program as a guest, with the user's Go toolchain: the implementation of `hangar
// build go`.
//
// The program's main package stays unchanged, and nothing is written beside it. A guest needs
// package guest, and changed lines in a few files of client-go, controller-runtime and Go's own
// library. The build adds these with its own go.mod, copies of those modules, and -overlay.
#pragma once

#include "base/result.h"
#include "go_build/known_files.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::go_build {

struct BuildOptions {
  // A directory, an import path of the module around the current directory, or IMPORT-PATH@VERSION.
  std::string program;
  std::filesystem::path output;  // The module to write.
  std::string tags;              // As for go build.
  std::string ldflags;           // Added to our own.
  // For temporary files of the build: an empty directory to which no one else can write.
  std::filesystem::path work;
};

struct Built {
  std::uint64_t bytes = 0;
  std::vector<Change> changes;
};

// Receives messages for people, line by line: the next step, and warnings.
using Say = std::function<void(std::string_view line)>;

// The name of a program, from its location: "manager" for "/src/memo/cmd/manager" and for
// "example.com/operator/v2/cmd/manager@v2.1.0", "operator" for "example.com/operator/v2" and
// for "example.com/operator/cmd".
[[nodiscard]] std::string name_of(std::string_view program);

// Builds the program. Blocking, for minutes. The output of the go command goes to stderr. Errors:
// NotFound (no go command, no such directory or module), InvalidInput (a program that cannot be a
// guest, an unknown version, a toolchain that is too old, an error of the compiler), Denied and
// Unavailable for the file system.
[[nodiscard]] Result<Built> build(const BuildOptions& options, const Say& say);

}  // namespace hangar::go_build
