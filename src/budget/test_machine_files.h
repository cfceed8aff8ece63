// A temporary directory that stands for the root of a machine, with the files of /proc and /sys
// that a test writes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::budget {

class MachineFilesTest : public ::testing::Test {
 protected:
  MachineFilesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "hangar-test-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~MachineFilesTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  void write(std::string_view path, std::string_view text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
};

}  // namespace hangar::budget
