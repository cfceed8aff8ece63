#include "guest/program_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>

namespace hangar::guest {
namespace {

// Pages of files that this process maps.
std::uint64_t file_pages() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  std::uint64_t of_files = 0;
  statm >> total >> resident >> of_files;
  return of_files;
}

TEST(ProgramPages, AreFewerAndComeBackWhenTheyAreUsed) {
  const std::uint64_t before = file_pages();

  unmap_program();

  const std::uint64_t after = file_pages();
  EXPECT_GT(after, 0U);
  EXPECT_LT(after, before * 3 / 4);
}

}  // namespace
}  // namespace hangar::guest
