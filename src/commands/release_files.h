// Writes the resources of a release as files or as one document, for `takeoff --out`.
#pragma once

#include "airways/resource_ref.h"
#include "base/result.h"

#include <filesystem>
#include <string>

namespace hangar::commands {

// Writes DIRECTORY/RELEASE/namespace/group/version/kind/name.yaml for each resource, after deleting
// the content of DIRECTORY/RELEASE. InvalidInput, before anything is written, for a name that is
// not a valid file name; and the errors of writing.
[[nodiscard]] Result<> write_release_files(const std::filesystem::path& directory,
                                           const std::string& release,
                                           const airways::Stages& stages);

// The same tree as one YAML document.
[[nodiscard]] std::string release_tree(const airways::Stages& stages);

}  // namespace hangar::commands
