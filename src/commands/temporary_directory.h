// A directory for temporary files of a command.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <memory>
#include <utility>

namespace hangar::commands {

// Private to this user; the destructor deletes it with its content.
class TemporaryDirectory {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TemporaryDirectory>> make();
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace hangar::commands
