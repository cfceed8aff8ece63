// Loads the keys that sign and verify modules and native code from files. Blocking.
#pragma once

#include "base/result.h"
#include "schematics/keys.h"

#include <filesystem>
#include <string_view>

namespace hangar::schematics {

// `path` is a file with one key in PEM, a file with an array of such keys in JSON, as yoke's
// controller reads them, or a directory. In a directory all files that end in `.pem` are read,
// including those in subdirectories, as in a mounted Secret.
[[nodiscard]] Result<PublicKeys> load_public_keys(const std::filesystem::path& path);

// `path` is a file with one key in PEM. The errors are worded as yoke's.
[[nodiscard]] Result<PrivateKey> load_private_key(const std::filesystem::path& path);

}  // namespace hangar::schematics
