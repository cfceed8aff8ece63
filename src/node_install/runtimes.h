// The programs to install, in a directory. Their names and checksums are given, or come from a
// SHA256SUMS beside them, as `sha256sum *` writes it. Anyone who can write to the directory can
// change such a list. The file's name tells the kind of program:
//   containerd-shim-NAME-v1   a shim; handler NAME
//   crun-NAME                 an OCI runtime; handler NAME (crun alone: handler crun)
// A directory for several architectures has one directory for each: amd64/, arm64/.
#pragma once

#include "base/result.h"
#include "node_install/config_edit.h"
#include "node_install/files.h"
#include "node_install/runtime_source.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

struct Runtime {
  std::string file;    // Its name, in the directory and on the node.
  std::string sha256;  // The expected digest; the copy is checked against it.
  Descriptor source;
  // The program's path is its final one: INSTALL_DIRECTORY/bin/FILE.
  Handler handler;
};

// "amd64" or "arm64": the architecture of this program. Go's names, as Kubernetes uses them.
[[nodiscard]] std::string_view architecture();

// Every runtime that `expected` names for this architecture, or if it is empty every one that
// SHA256SUMS lists; sorted by name, and checked once already, before anything on the node changes.
// A file that is not named is not installed.
//
// Errors: ChecksumMismatch; RuntimeInvalid for an unreadable list, a missing file, a name of no
// known kind, two files for one handler, and a program for another architecture; InvalidInput for
// an `expected` that has nothing for this architecture, or two entries for one file.
[[nodiscard]] Result<std::vector<Runtime>> runtimes_in(
    const std::string& directory, std::string_view install_directory,
    std::span<const RuntimeSource> expected = {});

// The handler of a file with this name; RuntimeInvalid for other names. `program`: its final path.
[[nodiscard]] Result<Handler> handler_of(std::string_view file, std::string program);

}  // namespace hangar::node_install
