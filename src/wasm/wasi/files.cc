#include "wasm/wasi/files.h"

#include "base/result.h"
#include "wasm/wasi/errno.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::wasm::wasi {

namespace {

// PATH_MAX.
constexpr std::size_t kPathBytesMax = 4096;

// Takes the part before the next slash off `path`.
std::string_view take_part(std::string_view& path) {
  const std::size_t slash = path.find('/');
  const std::string_view part = path.substr(0, slash);
  path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  return part;
}

bool is_plain(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.find('\0') == std::string_view::npos;
}

}  // namespace

Result<FileTree> FileTree::of(std::map<std::string, std::string> files) {
  FileTree tree;
  for (auto& [path, content] : files) {
    const auto refuse = [&path](std::string_view why) {
      return fail(ErrorKind::InvalidInput, fmt::format("file {}: {}", path, why));
    };
    if (!path.starts_with('/') || path.ends_with('/') || path.size() > kPathBytesMax) {
      return refuse("not the absolute path of a file");
    }
    std::string_view rest = std::string_view(path).substr(1);
    Index at = kRoot;
    while (!rest.empty()) {
      const std::string_view part = take_part(rest);
      if (!is_plain(part)) return refuse("the path has a part that is empty, \".\" or \"..\"");
      if (!tree.node(at).is_directory) return refuse("a part of the path is a file itself");
      const std::expected<Index, Errno> found = tree.child(at, part);
      at = found ? *found : tree.add(at, part, !rest.empty());
    }
    // Paths are unique keys of the map, and a file comes before any path below it.
    tree.nodes_[at].content = std::move(content);
  }
  tree.nodes_.shrink_to_fit();  // It lives as long as its guest, also while that sleeps.
  return tree;
}

std::map<std::string, std::string> FileTree::files() const {
  std::map<std::string, std::string> files;
  for (const Node& file : nodes_) {
    if (file.is_directory) continue;
    std::string path = "/" + file.name;
    for (Index at = file.parent; at != kRoot; at = node(at).parent)
      path.insert(0, "/" + node(at).name);
    files.emplace(std::move(path), file.content);
  }
  return files;
}

std::expected<FileTree::Index, Errno> FileTree::find(Index directory, std::string_view path) const {
  if (path.empty()) return std::unexpected(kNotFound);
  if (path.starts_with('/')) return std::unexpected(kNotCapable);
  if (path.size() > kPathBytesMax) return std::unexpected(kNameTooLong);
  Index at = directory;
  std::size_t depth = 0;
  while (!path.empty()) {
    if (!node(at).is_directory) return std::unexpected(kNotDirectory);
    const bool needs_directory = path.ends_with('/');
    const std::string_view part = take_part(path);
    if (part == "..") {
      if (depth-- == 0) return std::unexpected(kNotCapable);
      at = node(at).parent;
    } else if (!part.empty() && part != ".") {
      std::expected<Index, Errno> found = child(at, part);
      if (!found) return found;
      at = *found;
      ++depth;
    }
    if (needs_directory && !node(at).is_directory) return std::unexpected(kNotDirectory);
  }
  return at;
}

std::expected<FileTree::Index, Errno> FileTree::child(Index directory,
                                                      std::string_view name) const {
  const std::vector<Index>& children = node(directory).children;
  const auto name_of = [this](Index index) -> std::string_view { return node(index).name; };
  const auto found = std::ranges::lower_bound(children, name, {}, name_of);
  if (found == children.end() || name_of(*found) != name) return std::unexpected(kNotFound);
  return *found;
}

FileTree::Index FileTree::add(Index directory, std::string_view name, bool is_directory) {
  const auto index = static_cast<Index>(nodes_.size());
  nodes_.push_back({.name = std::string(name), .is_directory = is_directory, .parent = directory});
  std::vector<Index>& children = nodes_[directory].children;
  const auto name_of = [this](Index other) -> std::string_view { return node(other).name; };
  children.insert(std::ranges::lower_bound(children, name, {}, name_of), index);
  return index;
}

}  // namespace hangar::wasm::wasi
