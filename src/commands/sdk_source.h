// The source of the Go SDK, which the build links into this program (cmake/SdkSource.cmake).
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string_view>

namespace hangar::commands {

// All files as one text: each follows a line "-- NAME --".
[[nodiscard]] std::string_view sdk_source();

// Writes the files of such a text below a directory. Errors: Corrupt (the text does not begin with
// a name, or a name leads out of the directory), those of io::write_file.
[[nodiscard]] Result<> write_files(std::string_view text, const std::filesystem::path& directory);

}  // namespace hangar::commands
