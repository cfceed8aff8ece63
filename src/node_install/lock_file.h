// What hangar-node has put on a node: a JSON file beside the runtimes. Written before anything else
// changes, so that a run that is killed can be finished or undone by the next.
#pragma once

#include "base/result.h"
#include "node_install/files.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::node_install {

inline constexpr std::string_view kLockName = "lock.json";

struct Lock {
  struct File {
    std::string path;
    std::string sha256;
    std::string handler;
  };
  std::string version;  // Of the hangar-node that wrote it.
  std::string distribution;
  std::string config;  // The file with our part.
  // Of that file before our part came into it; empty if there was none.
  std::string config_sha256_before;
  std::vector<File> files;
  std::vector<std::string> directories;  // That did not exist, outermost first.
  // The configuration has changed, or is about to, and containerd has not been restarted since.
  bool restart_pending = false;
};

[[nodiscard]] std::string to_text(const Lock& lock);
// Corrupt for anything that to_text() did not make.
[[nodiscard]] Result<Lock> parse_lock(std::string_view text);

// Nothing if there is none.
[[nodiscard]] Result<std::optional<Lock>> read_lock(const Files& files,
                                                    std::string_view install_directory);
[[nodiscard]] Result<> write_lock(Files& files, std::string_view install_directory,
                                  const Lock& lock);

}  // namespace hangar::node_install
