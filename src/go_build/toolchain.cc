#include "go_build/toolchain.h"

#include "base/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::go_build {

namespace {

// The first version whose compiler exports functions (go:wasmexport) and builds libraries that
// export them (-buildmode=c-shared).
constexpr int kMinorMin = 24;
constexpr std::array kTestedMinors = {26};
constexpr std::string_view kTested = "Go 1.26";

}  // namespace

Result<std::string> check_toolchain(std::string_view version) {
  // A development version is "devel go1.27-0123abcd".
  constexpr std::string_view kPrefix = "go1.";
  const std::size_t at = version.find(kPrefix);
  int minor = 0;
  if (at != std::string_view::npos) {
    const std::string_view rest = version.substr(at + kPrefix.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), minor);
    if (error == std::errc() && minor >= kMinorMin) {
      if (std::ranges::find(kTestedMinors, minor) != kTestedMinors.end()) return std::string();
      return fmt::format("guests were not tested with {}; the tested version is {}", version,
                         kTested);
    }
    if (error == std::errc()) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("{} cannot build guests: Go 1.{} is the first that can, and {} is "
                              "the tested version",
                              version, kMinorMin, kTested));
    }
  }
  return fail(
      ErrorKind::InvalidInput,
      fmt::format("\"{}\" is not a version of Go; the tested version is {}", version, kTested));
}

}  // namespace hangar::go_build
