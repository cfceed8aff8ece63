#include "commands/temporary_directory.h"

#include "base/result.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace hangar::commands {

Result<std::unique_ptr<TemporaryDirectory>> TemporaryDirectory::make() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::temp_directory_path(error);
  if (error) path = "/tmp";
  std::string name = (path / "hangar-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return fail(ErrorKind::Unavailable, fmt::format("make a directory in {}: {}", path.string(),
                                                    std::generic_category().message(errno)));
  }
  return std::make_unique<TemporaryDirectory>(std::move(name));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hangar::commands
