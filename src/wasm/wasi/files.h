// Files that a guest may read: passed as paths and contents, seen as a tree of directories. The
// tree is the guest's whole file system, it never changes, and no path leads out of it.
#pragma once

#include "base/result.h"
#include "wasm/wasi/errno.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm::wasi {

// Immutable: any thread.
class FileTree {
 public:
  // Absolute paths ("/etc/config/key") to contents. InvalidInput, which names the path, when one is
  // not absolute and plain (no empty part, no "." or "..", no null byte), or lies below a file.
  [[nodiscard]] static Result<FileTree> of(std::map<std::string, std::string> files);

  // The paths and contents from which it was made.
  [[nodiscard]] std::map<std::string, std::string> files() const;

  using Index = std::uint32_t;
  static constexpr Index kRoot = 0;

  struct Node {
    std::string name;  // Empty for the root.
    bool is_directory = false;
    Index parent = kRoot;
    std::vector<Index> children;  // Of directories; sorted by name.
    std::string content;          // Only of files.
  };
  [[nodiscard]] const Node& node(Index index) const { return nodes_[index]; }

  // Resolves `path` in `directory` as preview 1 does: relative, and never above `directory`
  // (kNotCapable). kNotFound, kNotDirectory, kNameTooLong.
  [[nodiscard]] std::expected<Index, Errno> find(Index directory, std::string_view path) const;

 private:
  [[nodiscard]] std::expected<Index, Errno> child(Index directory, std::string_view name) const;
  [[nodiscard]] Index add(Index directory, std::string_view name, bool is_directory);

  std::vector<Node> nodes_ = {Node{.is_directory = true}};
};

}  // namespace hangar::wasm::wasi
