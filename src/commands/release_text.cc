#include "commands/release_text.h"

#include "airways/resource_ref.h"
#include "json/diff.h"
#include "json/go_text.h"
#include "json/value.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::commands {

std::string release_yaml(const airways::Stages& stages) {
  json::Object named;
  for (const airways::Stage& stage : stages) {
    for (const json::Value& resource : stage)
      named.insert_or_assign(airways::canonical_name(resource), resource);
  }
  return json::to_yaml_as_go(json::Value(std::move(named)));
}

std::string release_difference(NamedText left, NamedText right, std::size_t context_lines,
                               Color color) {
  constexpr std::string_view kGreen = "\x1b[32m";
  constexpr std::string_view kRed = "\x1b[31m";
  constexpr std::string_view kReset = "\x1b[0m";
  if (left.text == right.text) return {};
  // yoke's texts end with an empty line.
  std::string text = json::diff_lines(std::string(left.text) + "\n", std::string(right.text) + "\n",
                                      {.context_lines = context_lines,
                                       .left_name = std::string(left.name),
                                       .right_name = std::string(right.name)});
  if (color == Color::None) return text;
  std::string colored;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const bool is_changed = line.starts_with('-') || line.starts_with('+');
    if (is_changed) colored += line.starts_with('-') ? kGreen : kRed;
    colored += line;
    if (is_changed) colored += kReset;
    if (end == std::string_view::npos) break;
    colored += '\n';
    rest.remove_prefix(end + 1);
  }
  return colored;
}

}  // namespace hangar::commands
