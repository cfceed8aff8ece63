#include "schematics/sections.h"

#include "base/invalid.h"
#include "base/limits.h"
#include "base/result.h"
#include "json/value.h"
#include "json/yaml.h"
#include "wasm/custom_sections.h"
#include "wasm/limits.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::schematics {

namespace {

// The common beginning of both prefixes.
constexpr std::string_view kStem = "yoke.schematics";
static_assert(kPrefix.starts_with(kStem) && kCommandPrefix.starts_with(kStem));

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string section_name(Kind kind, std::string_view name) {
  return fmt::format("{}{}", kind == Kind::Command ? kCommandPrefix : kPrefix, name);
}

}  // namespace

Result<std::vector<Schematic>> schematics_of(std::span<const std::byte> module) {
  std::map<std::string_view, std::string_view> contents;  // By section name.
  const std::vector<wasm::PlacedSection> sections =
      HANGAR_TRY(wasm::custom_sections_of(module, kStem));
  for (const wasm::PlacedSection& section : sections)
    contents[section.name] = section.contents;
  std::vector<Schematic> found;
  for (const auto& [section, text] : contents) {
    const bool is_command = section.starts_with(kCommandPrefix);
    if (!is_command && !section.starts_with(kPrefix)) continue;
    found.push_back({.name = std::string(section.substr(section.find(':') + 1)),
                     .kind = is_command ? Kind::Command : Kind::Document,
                     .contents = std::string(text)});
  }
  return found;
}

Result<std::vector<std::string>> read_command(std::string_view contents) {
  const json::Value value = HANGAR_TRY(json::parse_yaml(contents));
  if (!value.is_array()) return invalid("expected an array of arguments");
  std::vector<std::string> arguments;
  for (const json::Value& one : value.get_array()) {
    if (!one.is_string()) {
      return invalid(fmt::format("expected a string for argument {}", arguments.size()));
    }
    arguments.emplace_back(one.get_string());
  }
  return arguments;
}

Result<std::string> without_schematic(std::span<const std::byte> module, std::string_view name) {
  const std::vector<wasm::PlacedSection> sections =
      HANGAR_TRY(wasm::custom_sections_of(module, kStem));
  std::string without;
  without.reserve(module.size());
  std::size_t at = 0;
  for (const wasm::PlacedSection& section : sections) {
    if (section.name != section_name(Kind::Document, name) &&
        section.name != section_name(Kind::Command, name)) {
      continue;
    }
    without += text_of(module.subspan(at, section.begin - at));
    at = section.end;
  }
  without += text_of(module.subspan(at));
  return without;
}

Result<std::string> with_schematic(std::span<const std::byte> module, const Schematic& schematic) {
  std::string made = HANGAR_TRY(without_schematic(module, schematic.name));
  const std::string name = section_name(schematic.kind, schematic.name);
  // Checked before a section is written whose size does not fit into its header.
  if (made.size() + name.size() + schematic.contents.size() + 16 > limits::kModuleBytesMax) {
    return fail(ErrorKind::LimitExceeded, fmt::format("the module becomes larger than {} MiB",
                                                      limits::kModuleBytesMax / limits::kMiB));
  }
  wasm::append_custom_section(made, name, schematic.contents);
  return made;
}

}  // namespace hangar::schematics
