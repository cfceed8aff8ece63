// The source of a runtime, in the notation of hangar-node-fetch and of the host's settings:
// FILE[@ARCHITECTURE]=URL#sha256:HEX, for an archive with #program-sha256:HEX behind it
// and the expected program, in the notation of hangar-node: FILE[@ARCHITECTURE]=sha256:HEX
//
// The program's checksum is part of the configuration, so that neither the container that downloads
// nor the one that unpacks has to be trusted.
#pragma once

#include "base/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

struct RuntimeSource {
  std::string file;            // As hangar-node expects names: containerd-shim-spin-v2.
  std::string architecture;    // "amd64", "arm64"; empty: any.
  std::string url;             // http or https, without the fragment.
  std::string sha256;          // Of the download, so of the archive if it is one.
  std::string program_sha256;  // Of the program; the same if it is not an archive.

  // The URL names a .tar.gz or .tgz, in which one file has the name `file`.
  [[nodiscard]] bool is_archive() const;
};

// InvalidInput for anything else, such as an archive without its program's checksum.
[[nodiscard]] Result<RuntimeSource> parse_runtime_source(std::string_view text);

// One source for each file: the one for this architecture, else the one for any. InvalidInput if a
// file has none, or has two.
[[nodiscard]] Result<std::vector<RuntimeSource>> choose_sources(std::span<const RuntimeSource> all,
                                                                std::string_view architecture);

// FILE[@ARCHITECTURE]=sha256:HEX of the program.
[[nodiscard]] std::string checksum_argument(const RuntimeSource& source);

// Parses the result of checksum_argument() into a RuntimeSource without a URL. InvalidInput for
// anything else.
[[nodiscard]] Result<RuntimeSource> parse_checksum_argument(std::string_view text);

}  // namespace hangar::node_install
