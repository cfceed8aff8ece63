#include "wasm/module_header.h"

#include "base/limits.h"
#include "base/result.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {
namespace {

using testing::HasSubstr;

Result<ModuleHeader> read(std::string_view bytes) {
  return read_module_header(std::as_bytes(std::span(bytes)));
}

using namespace std::string_view_literals;

constexpr std::string_view kPreamble = "\0asm\1\0\0\0"sv;

std::string module_of(std::string_view sections) {
  return std::string(kPreamble) + std::string(sections);
}

TEST(ModuleHeader, ListsImportsExportsAndMemory) {
  const auto bytes = GuestRig::bytes_of("lookup");

  const Result<ModuleHeader> header = read(*bytes);

  ASSERT_TRUE(header.has_value()) << header.error().message();
  ASSERT_EQ(header->imports.size(), 3U);
  EXPECT_EQ(header->imports[0], (Import{.module = "host",
                                        .name = "k8s_lookup",
                                        .signature = "(i32, i64, i64, i64, i64) -> (i64)"}));
  EXPECT_EQ(header->memory_bytes_min, 16 * 64 * limits::kKiB);
  ASSERT_NE(find_export(header->exports, "malloc"), nullptr);
  EXPECT_EQ(find_export(header->exports, "malloc")->signature, "(i32) -> (i64)");
  EXPECT_EQ(find_export(header->exports, "memory")->kind, ExternKind::Memory);
  EXPECT_EQ(find_export(header->exports, "nothing"), nullptr);
  EXPECT_EQ(header->function_count, 4U);
  EXPECT_FALSE(header->has_start);
  ASSERT_FALSE(header->custom_sections.empty());
  EXPECT_EQ(header->custom_sections[0].name, "name");
}

TEST(ModuleHeader, SeesTheStartSection) {
  EXPECT_TRUE(read(*GuestRig::bytes_of("trap_in_start"))->has_start);
}

TEST(ModuleHeader, AcceptsAnEmptyModule) {
  const Result<ModuleHeader> header = read(kPreamble);
  ASSERT_TRUE(header.has_value());
  EXPECT_FALSE(header->memory_bytes_min.has_value());
}

TEST(ModuleHeader, RefusesWhatIsNoModuleAndSaysWhy) {
  struct Case {
    std::string name;
    std::string bytes;
    std::string says;
  };
  const std::vector<Case> cases = {
      {"nothing", "", "too short"},
      {"text", "kind: Deployment\n", "does not start with \\0asm"},
      {"gzip", std::string("\x1f\x8b\x08\0\0\0\0\0\0\0", 10), "it is gzip"},
      {"component", std::string("\0asm\x0d\0\1\0", 8), "is a component"},
      {"next version", std::string("\0asm\2\0\0\0", 8), "version"},
      {"section past the end", module_of("\1\7\0"), "ends early at offset 10"},
      {"section without size", module_of("\1"), "ends early"},
      {"size too long", module_of("\1\xff\xff\xff\xff\xff\1"), "number too large"},
      {"size of 33 bits", module_of("\1\xff\xff\xff\xff\x1f"), "number too large"},
      {"unknown section", module_of("\x0e\1\0"sv), "section of unknown kind 14"},
      {"types twice", module_of("\1\1\0\1\1\0"sv), "twice or out of order"},
      {"imports before types", module_of("\2\1\0\1\1\0"sv), "twice or out of order"},
      {"code before data count", module_of("\x0a\1\0\x0c\1\0"sv), "twice or out of order"},
      {"struct type", module_of("\1\3\1\x5f\0"sv), "garbage collected"},
      {"reference type", module_of("\1\6\1\x60\1\x64\0\0"sv), "garbage collected"},
      {"count past the end", module_of("\1\2\x7f\x60"sv), "ends early"},
      {"function of no type", module_of("\3\2\1\0"sv), "there are 0 types"},
      {"import of no kind", module_of("\2\4\1\0\0\x09"sv), "unknown kind 9"},
      {"export of no function", module_of("\7\4\1\0\0\0"sv), "there are 0"},
      {"two memories", module_of("\5\5\2\0\1\0\1"sv), "more than one memory"},
      {"64-bit memory", module_of("\5\3\1\4\1"sv), "64-bit memory"},
      {"memory of 5 GiB", module_of("\5\5\1\0\x80\x80\5"sv), "more than 4 GiB"},
      {"custom section without name", module_of("\0\0"sv), "ends early"},
      {"name past its section", module_of("\0\2\x7f\0"sv), "ends early"},
      {"name in another encoding", module_of("\2\5\1\1\xff\1m"sv), "malformed UTF-8"},
      {"small pages", module_of("\5\4\1\x08\1\0"sv), "pages of another size"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const Result<ModuleHeader> header = read(each.bytes);
    ASSERT_FALSE(header.has_value());
    EXPECT_EQ(header.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(header.error().message(), HasSubstr(each.says));
  }
}

TEST(ModuleHeader, BoundsCounts) {
  // 10,001 types of one byte each would fit, if a type could have one byte.
  const std::string many = module_of("\1\x93\x4e\x91\x4e"sv) + std::string(10'001, '\x60');
  const Result<ModuleHeader> header = read(many);
  ASSERT_FALSE(header.has_value());
  EXPECT_EQ(header.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(header.error().message(), HasSubstr("10001 types"));
}

TEST(ModuleHeader, EveryTruncationIsRefusedOrHarmless) {
  const auto bytes = GuestRig::bytes_of("lookup");
  std::size_t refused = 0;
  for (std::size_t size = 0; size < bytes->size(); ++size) {
    if (!read(std::string_view(*bytes).substr(0, size))) ++refused;
  }
  // The remaining module is cut exactly between two sections.
  EXPECT_GT(refused, bytes->size() - 12);
}

TEST(ModuleHeader, SurvivesEveryFlippedByte) {
  const auto bytes = GuestRig::bytes_of("lookup");
  for (std::size_t index = 0; index < bytes->size(); ++index) {
    for (const unsigned mask : {0x01U, 0x80U, 0xffU}) {
      std::string flipped = *bytes;
      flipped[index] = static_cast<char>(static_cast<unsigned char>(flipped[index]) ^ mask);
      const Result<ModuleHeader> header = read(flipped);
      if (!header) {
        EXPECT_NE(header.error().message(), "");
      }
    }
  }
}

}  // namespace
}  // namespace hangar::wasm
