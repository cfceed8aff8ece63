// The record of what hangar-node has installed on a node: a JSON file beside the runtimes. It is
// written before anything else changes, so that the next run can finish or roll back a run that
// was killed.
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
  std::string version;  // The hangar-node that wrote it.
  std::string distribution;
  std::string config;  // The file with our part.
  // Digest of that file before our part was added; empty if the file did not exist.
  std::string config_sha256_before;
  std::vector<File> files;
  std::vector<std::string> directories;  // Created by us, outermost first.
  // The configuration has changed, or is about to, and containerd has not been restarted since.
  bool restart_pending = false;
};

[[nodiscard]] std::string to_text(const Lock& lock);
// Corrupt for any text that to_text() did not write.
[[nodiscard]] Result<Lock> parse_lock(std::string_view text);

// std::nullopt if the file does not exist.
[[nodiscard]] Result<std::optional<Lock>> read_lock(const Files& files,
                                                    std::string_view install_directory);
[[nodiscard]] Result<> write_lock(Files& files, std::string_view install_directory,
                                  const Lock& lock);

}  // namespace hangar::node_install
