// What is to be installed: programs in a directory. Which, and with which checksums, is given, or
// it is what a SHA256SUMS beside them says, as `sha256sum *` writes it. Such a list is worth as
// much as whoever can write to the directory. The file's name says what a program is:
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
  std::string sha256;  // As promised; what is copied is checked against it.
  Descriptor source;
  // The program is where it will be: INSTALL_DIRECTORY/bin/FILE.
  Handler handler;
};

// "amd64" or "arm64": what this program was compiled for. Go's names, as Kubernetes has them.
[[nodiscard]] std::string_view architecture();

// Everything that `expected` names for this architecture, or if it is empty everything that
// SHA256SUMS lists; sorted by name, and checked once already, before anything on the node changes.
// A file that is not named is not installed.
//
// Errors: ChecksumMismatch; RuntimeInvalid for an unreadable list, a missing file, a name that says
// nothing, two files for one handler, and a program for another architecture; InvalidInput for an
// `expected` that has nothing for this architecture, or two for one file.
[[nodiscard]] Result<std::vector<Runtime>> runtimes_in(
    const std::string& directory, std::string_view install_directory,
    std::span<const RuntimeSource> expected = {});

// What a file of this name is; RuntimeInvalid for others. `program` is where it will be.
[[nodiscard]] Result<Handler> handler_of(std::string_view file, std::string program);

}  // namespace hangar::node_install
