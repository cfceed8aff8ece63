// Where a runtime is to be had, as hangar-node-fetch and the host's settings have it:
// FILE[@ARCHITECTURE]=URL#sha256:HEX, for an archive with #program-sha256:HEX behind it
// and what it has to be, as hangar-node has it: FILE[@ARCHITECTURE]=sha256:HEX
//
// The program's checksum is in the configuration, so that no container on the way has to be
// believed: neither the one that downloads nor the one that unpacks.
#pragma once

#include "base/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

struct RuntimeSource {
  std::string file;            // As hangar-node wants runtimes named: containerd-shim-spin-v2.
  std::string architecture;    // "amd64", "arm64"; empty: any.
  std::string url;             // http or https, without the fragment.
  std::string sha256;          // Of what the URL has, so of the archive if it is one.
  std::string program_sha256;  // Of the program; the same if it is not an archive.

  // A .tar.gz or .tgz, in which one file has the name `file`.
  [[nodiscard]] bool is_archive() const;
};

// InvalidInput for anything else, such as an archive without its program's checksum.
[[nodiscard]] Result<RuntimeSource> parse_runtime_source(std::string_view text);

// One for each file: the one for this architecture, else the one for any. InvalidInput if a file
// has none, or has two.
[[nodiscard]] Result<std::vector<RuntimeSource>> choose_sources(std::span<const RuntimeSource> all,
                                                                std::string_view architecture);

// FILE[@ARCHITECTURE]=sha256:HEX of the program.
[[nodiscard]] std::string checksum_argument(const RuntimeSource& source);

// The same read back: a RuntimeSource without a URL. InvalidInput for anything else.
[[nodiscard]] Result<RuntimeSource> parse_checksum_argument(std::string_view text);

}  // namespace hangar::node_install
