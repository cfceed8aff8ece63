#include "nodes/names.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace hangar::nodes {

namespace {

constexpr std::size_t kLabelBytesMax = 63;

std::string cut(std::string_view node, std::string_view suffix) {
  if (node.size() + suffix.size() <= kLabelBytesMax) return fmt::format("{}{}", node, suffix);
  const std::string mark = "-" + short_hash(node);
  std::string_view kept = node.substr(0, kLabelBytesMax - suffix.size() - mark.size());
  while (kept.ends_with('.') || kept.ends_with('-'))
    kept.remove_suffix(1);
  return fmt::format("{}{}{}", kept, mark, suffix);
}

}  // namespace

std::string_view name_of(Action action) {
  switch (action) {
    case Action::Install:
      return "install";
    case Action::Uninstall:
      return "uninstall";
    case Action::Probe:
      break;
  }
  return "probe";
}

std::string job_name(std::string_view node, Action action) {
  switch (action) {
    case Action::Install:
      return cut(node, "-provision-kwasm");
    case Action::Uninstall:
      return cut(node, "-uninstall-kwasm");
    case Action::Probe:
      break;
  }
  return cut(node, "-probe-kwasm");
}

std::string label_value(std::string_view node) {
  return cut(node, "");
}

// FNV-1a.
std::string short_hash(std::string_view text) {
  std::uint32_t value = 2'166'136'261U;
  for (const char one : text) {
    value ^= static_cast<unsigned char>(one);
    value *= 16'777'619U;
  }
  return fmt::format("{:08x}", value);
}

}  // namespace hangar::nodes
