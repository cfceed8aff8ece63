#include "schematics/sections.h"

#include "base/result.h"
#include "wasm/custom_sections.h"
#include "wasm/limits.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::schematics {
namespace {

const std::string kEmpty("\0asm\1\0\0\0", 8);

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string with(const std::string& module, const Schematic& schematic) {
  Result<std::string> made = with_schematic(bytes_of(module), schematic);
  return made ? *made : made.error().message();
}

std::vector<std::string> names_in(const std::string& module) {
  std::vector<std::string> names;
  const auto found = schematics_of(bytes_of(module));
  if (!found) return {found.error().message()};
  for (const Schematic& one : *found)
    names.push_back(one.name);
  return names;
}

// The bytes that yoke's own program wrote.
TEST(Schematics, AreWrittenToTheByteAsYokeWritesThem) {
  const std::string module =
      with(kEmpty, {.name = "mail", .kind = Kind::Command, .contents = R"(["-a"])"});

  EXPECT_EQ(module,
            kEmpty + std::string("\0\x1f\x18", 3) + "yoke.schematics.cmd:mail" + R"(["-a"])");
}

TEST(Schematics, TakeThePlaceOfAllOthersOfTheirName) {
  std::string module = with(kEmpty, {.name = "docs", .contents = "old"});
  module = with(module, {.name = "other", .contents = "stays"});
  wasm::append_custom_section(module, "yoke.schematics:docs", "a second");
  wasm::append_custom_section(module, "name", "not yoke's");

  module = with(module, {.name = "docs", .kind = Kind::Command, .contents = "[]"});

  const auto found = schematics_of(bytes_of(module));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ(found->at(0).name, "docs");
  EXPECT_EQ(found->at(0).kind, Kind::Command);
  EXPECT_EQ(found->at(1).contents, "stays");
  EXPECT_TRUE(module.contains("not yoke's"));
  EXPECT_FALSE(module.contains("a second"));
}

TEST(Schematics, AreListedCommandsFirst) {
  std::string module = with(kEmpty, {.name = "b"});
  module = with(module, {.name = "a"});
  module = with(module, {.name = "z", .kind = Kind::Command});

  EXPECT_EQ(names_in(module), (std::vector<std::string>{"z", "a", "b"}));
}

TEST(Schematics, OfSeveralSectionsTheLastCounts) {
  std::string module = with(kEmpty, {.name = "docs", .contents = "first"});
  wasm::append_custom_section(module, "yoke.schematics:docs", "last");
  wasm::append_custom_section(module, "yoke.schematicsx", "no schematic");

  const auto found = schematics_of(bytes_of(module));

  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().contents, "last");
}

TEST(Schematics, TakenOutLeaveEveryOtherByte) {
  std::string module = kEmpty;
  wasm::append_custom_section(module, "name", "before");
  const std::string before = module;
  module = with(module, {.name = "docs", .contents = "text"});
  std::string after = before;
  wasm::append_custom_section(module, "name", "after");
  wasm::append_custom_section(after, "name", "after");

  const Result<std::string> without = without_schematic(bytes_of(module), "docs");

  ASSERT_TRUE(without);
  EXPECT_EQ(*without, after);
}

TEST(Schematics, ThatMakeAModuleTooLargeAreRefused) {
  const std::string large(limits::kModuleBytesMax, 'x');

  EXPECT_EQ(with(kEmpty, {.name = "docs", .contents = large}),
            "the module becomes larger than 256 MiB");
}

TEST(Schematics, CommandsAreArraysOfStrings) {
  const auto read = [](std::string_view text) {
    const auto arguments = read_command(text);
    return arguments ? arguments->size() : std::size_t{99};
  };
  EXPECT_EQ(read("[--docs, now]"), 2U);
  EXPECT_EQ(read("- --docs"), 1U);
  EXPECT_EQ(read("[]"), 0U);
  EXPECT_EQ(read("[1]"), 99U);
  EXPECT_EQ(read("null"), 99U);
  EXPECT_EQ(read("{a: b}"), 99U);
}

}  // namespace
}  // namespace hangar::schematics
