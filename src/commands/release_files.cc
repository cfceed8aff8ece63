#include "commands/release_files.h"

#include "airways/resource_ref.h"
#include "base/result.h"
#include "io/file.h"
#include "json/go_text.h"
#include "json/value.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

// The segments of a canonical name. InvalidInput if one could lead out of the directory: the flight
// chooses kinds, groups and names.
Result<std::vector<std::string>> segments_of(const json::Value& resource) {
  constexpr std::size_t kCount = 5;
  const std::string name = airways::canonical_name(resource);
  std::vector<std::string> segments;
  std::string_view rest = name;
  while (true) {
    const std::size_t slash = rest.find('/');
    segments.emplace_back(rest.substr(0, slash));
    const std::string& one = segments.back();
    if (one.empty() || one == "." || one == ".." || one.contains('\0')) {
      return fail(ErrorKind::InvalidInput, fmt::format("{}: is not the name of a file", name));
    }
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (segments.size() != kCount) {
    return fail(ErrorKind::InvalidInput, fmt::format("{}: is not the name of a file", name));
  }
  return segments;
}

Error failed(const std::filesystem::path& path, const std::error_code& error) {
  return {ErrorKind::Unavailable, fmt::format("{}: {}", path.string(), error.message())};
}

}  // namespace

Result<> write_release_files(const std::filesystem::path& directory, const std::string& release,
                             const airways::Stages& stages) {
  if (release.empty() || release == "." || release == ".." || release.contains('/')) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("release \"{}\" cannot name a directory", release));
  }
  const std::filesystem::path root = directory / release;
  std::vector<std::pair<std::filesystem::path, const json::Value*>> files;
  for (const airways::Stage& stage : stages) {
    for (const json::Value& resource : stage) {
      const std::vector<std::string> segments = HANGAR_TRY(segments_of(resource));
      std::filesystem::path path = root;
      for (const std::string& segment : segments)
        path /= segment;
      path += ".yaml";
      files.emplace_back(std::move(path), &resource);
    }
  }
  std::error_code error;
  std::filesystem::remove_all(root, error);
  if (error) {
    return std::unexpected(failed(root, error).in("failed remove previous flight export"));
  }
  for (const auto& [path, resource] : files) {
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return std::unexpected(
          failed(path.parent_path(), error).in("failed to create release output directory"));
    }
    Result<> written = io::write_file(path, json::to_yaml_as_go(*resource));
    if (!written) {
      return std::unexpected(std::move(written).error().in("failed to write resource(s)"));
    }
  }
  return {};
}

std::string release_tree(const airways::Stages& stages) {
  json::Value tree = json::Object();
  for (const airways::Stage& stage : stages) {
    for (const json::Value& resource : stage) {
      json::Value* at = &tree;
      std::string_view rest;
      const std::string name = airways::canonical_name(resource);
      for (rest = name; rest.contains('/'); rest.remove_prefix(rest.find('/') + 1)) {
        if (!at->is_object()) at->emplace_object();
        at = &at->get_object()[rest.substr(0, rest.find('/'))];
      }
      if (!at->is_object()) at->emplace_object();
      at->get_object()[rest] = resource;
    }
  }
  return json::to_yaml_as_go(tree);
}

}  // namespace hangar::commands
