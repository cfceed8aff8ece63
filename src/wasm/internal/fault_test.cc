#include "wasm/internal/fault.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hangar::wasm::internal {
namespace {

TEST(Fault, DemanglesPathsOfRustAndCxx) {
  struct Case {
    std::string name;
    std::string path;
  };
  const std::vector<Case> cases = {
      {"_ZN4core9panicking5panic17h0123456789abcdefE", "core::panicking::panic"},
      {"_ZN6flight3runEv", "flight::run"},
      {"_ZNK6flight4Kind4nameEv", "flight::Kind::name"},
      {"_Z3runi", "run"},
      {"main.main", "main.main"},
      {"_start", "_start"},
      {"", ""},
      // Unknown forms stay as they are.
      {"_Z", "_Z"},
      {"_ZN", "_ZN"},
      {"_ZN99999999999foo", "_ZN99999999999foo"},
      {"_ZN0E", "_ZN0E"},
      {"_RNvCs_3foo3bar", "_RNvCs_3foo3bar"},
      {"_ZN1aIS_S_ES_", "a"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(demangle_path(each.name), each.path);
}

}  // namespace
}  // namespace hangar::wasm::internal
