#include "budget/stalls.h"

#include "base/number.h"
#include "base/time.h"
#include "budget/internal/cgroup.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace hangar::budget {

namespace {

// No system has been up for so long; in nanoseconds it is still a number.
constexpr std::uint64_t kMicrosecondsMax = (std::uint64_t{1} << 60U) / 1000;

std::optional<Stall> stall_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  // Reading fails where the kernel was started without PSI: the text is empty.
  return parse_stall(std::string(std::istreambuf_iterator<char>(stream), {}));
}

}  // namespace

std::optional<Stall> parse_stall(std::string_view text) {
  // "some avg10=0.00 avg60=0.00 avg300=0.00 total=22857", in microseconds; then "full ...".
  Stall stall;
  bool has_some = false;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::string_view whole(line);
    const std::size_t at = whole.find(" total=");
    if (at == std::string_view::npos) continue;
    const auto total = parse_number<std::uint64_t>(whole.substr(at + 7));
    if (!total || *total > kMicrosecondsMax) return std::nullopt;
    const Duration time = std::chrono::microseconds(*total);
    if (whole.starts_with("some ")) {
      stall.some = time;
      has_some = true;
    } else if (whole.starts_with("full ")) {
      stall.full = time;
    }
  }
  return has_some ? std::optional(stall) : std::nullopt;
}

StallFiles::StallFiles(std::string_view resource, const std::filesystem::path& root)
    : machine_(root / "proc/pressure" / resource) {
  if (const auto directory = version_2_directory(root)) {
    cgroup_ = *directory / fmt::format("{}.pressure", resource);
  }
}

std::optional<Stall> StallFiles::of_machine() const {
  return stall_in(machine_);
}

std::optional<Stall> StallFiles::of_cgroup() const {
  return cgroup_.empty() ? std::nullopt : stall_in(cgroup_);
}

}  // namespace hangar::budget
