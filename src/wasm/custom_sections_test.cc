#include "wasm/custom_sections.h"

#include "base/result.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {
namespace {

constexpr std::string_view kPreamble("\0asm\1\0\0\0", 8);

std::string text(std::string_view after_preamble) {
  return std::string(kPreamble) + std::string(after_preamble);
}

Result<std::vector<PlacedSection>> read(std::string_view module, std::string_view prefix = "") {
  return custom_sections_of(std::as_bytes(std::span(module)), prefix);
}

std::string refusal(std::string_view module) {
  const auto found = read(module);
  return found ? "" : found.error().message();
}

TEST(CustomSections, AreFoundWhereTheyAre) {
  std::string module = text(std::string_view("\1\1\0", 3));  // A type section: no types.
  const std::size_t begin = module.size();
  append_custom_section(module, "a:one", "first");
  const std::size_t end = module.size();
  append_custom_section(module, "b:two", "");
  append_custom_section(module, "a:three", std::string(300, 'x'));

  const auto found = read(module, "a:");

  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ(found->at(0).name, "a:one");
  EXPECT_EQ(found->at(0).contents, "first");
  EXPECT_EQ(found->at(0).begin, begin);
  EXPECT_EQ(found->at(0).end, end);
  EXPECT_EQ(found->at(1).contents.size(), 300U);
  EXPECT_EQ(found->at(1).end, module.size());
}

TEST(CustomSections, OfDamagedModulesAreRefusedWithThePlace) {
  EXPECT_EQ(refusal(kPreamble), "");
  EXPECT_EQ(refusal("\0asm"), "is not a WebAssembly module: too short");
  EXPECT_EQ(refusal(text(std::string_view("\0", 1))), "ends early at offset 9");
  EXPECT_EQ(refusal(text(std::string_view("\0\5\1a", 4))), "ends early at offset 10");
  EXPECT_EQ(refusal(text(std::string_view("\0\2\1\377", 4))),
            "malformed UTF-8 encoding at offset 11");
  // The name would extend beyond its section.
  EXPECT_EQ(refusal(text(std::string_view("\0\2\5ab", 5))), "ends early at offset 11");
  EXPECT_EQ(refusal(text(std::string_view("\0\377\377\377\377\377\1", 7))),
            "number too large at offset 13");
}

TEST(CustomSections, AreFoundAlsoWhereASizeIsWrittenInMoreBytesThanItTakes) {
  const std::string module = text(std::string_view("\0\202\0\1a", 5));
  const auto found = read(module);

  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().name, "a");
}

TEST(CustomSections, AreBoundedInNumber) {
  std::string module(kPreamble);
  for (int index = 0; index < 10'000; ++index)
    append_custom_section(module, "a", "");
  EXPECT_EQ(refusal(module), "");

  append_custom_section(module, "a", "");

  EXPECT_EQ(refusal(module), "too many custom sections");
}

}  // namespace
}  // namespace hangar::wasm
