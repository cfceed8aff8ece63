// Builds a Go program as a guest of this host, with the Go toolchain of the user: what
// `hangar build go` does.
//
// The program's main stays as it is, and nothing is written beside it. What a guest needs besides
// (package guest, and other lines in a few files of client-go, controller-runtime and Go's own
// library) comes in by a go.mod of the build's own, copies of those modules, and -overlay.
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
  // A directory; an import path of the module around the current directory; or IMPORT-PATH@VERSION.
  std::string program;
  std::filesystem::path output;  // The module to make.
  std::string tags;              // As go build has them.
  std::string ldflags;           // Besides our own.
  // For what the build makes and nobody keeps; empty, and writable by nobody else.
  std::filesystem::path work;
};

struct Built {
  std::uint64_t bytes = 0;
  std::vector<Change> changes;
};

// For people, a line at a time: what is about to be done, and what they should know.
using Say = std::function<void(std::string_view line)>;

// The name of a program by its place: "manager" of "/src/memo/cmd/manager" and of
// "example.com/operator/v2/cmd/manager@v2.1.0", "operator" of "example.com/operator/v2" and of
// "example.com/operator/cmd".
[[nodiscard]] std::string name_of(std::string_view program);

// Blocking, for minutes. The words of the go command go to stderr.
// Errors: NotFound (no go command, no such directory or module), InvalidInput (a program that
// cannot be a guest, a version that is not known, a toolchain that is too old, what the compiler
// refuses), Denied and Unavailable for the file system.
[[nodiscard]] Result<Built> build(const BuildOptions& options, const Say& say);

}  // namespace hangar::go_build
