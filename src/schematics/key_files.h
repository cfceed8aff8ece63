// Keys that modules are verified with, from files. Blocking.
#pragma once

#include "base/result.h"
#include "schematics/keys.h"

#include <filesystem>
#include <string_view>

namespace hangar::schematics {

// A file with one key in PEM; or a directory, of which all files that end in `.pem` are read, those
// of directories in it included, as of a Secret that is mounted.
[[nodiscard]] Result<PublicKeys> load_public_keys(const std::filesystem::path& path);

}  // namespace hangar::schematics
