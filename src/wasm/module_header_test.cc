#include "wasm/module_header.h"

#include "base/limits.h"
#include "base/result.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
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
  const Result<ModuleHeader> globals = read(module_of("\6\3\xa1\x8d\6"sv));
  ASSERT_FALSE(globals.has_value());
  EXPECT_THAT(globals.error().message(), HasSubstr("100001 globals"));
}

// LEB128.
std::string number(std::size_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U)
    bytes += static_cast<char>((value & 0x7fU) | 0x80U);
  return bytes + static_cast<char>(value);
}

std::string section(char id, const std::string& contents) {
  return id + number(contents.size()) + contents;
}

std::string repeated(std::size_t count, const std::string& item) {
  std::string bytes = number(count);
  for (std::size_t index = 0; index < count; ++index)
    bytes += item;
  return bytes;
}

TEST(ModuleHeader, BoundsTheExportsThatShareALongType) {
  const std::string type = section(1, number(1) + '\x60' + repeated(1000, "\x7f") + number(0));
  const std::string function = section(3, repeated(1, number(0)));
  const std::string exported = number(4) + "name" + '\0' + number(0);

  EXPECT_TRUE(read(module_of(type + function + section(7, repeated(256, exported)))).has_value());
  const auto many = read(module_of(type + function + section(7, repeated(257, exported))));

  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(many.error().message(), HasSubstr("257 imports and exports of functions"));
}

TEST(ModuleHeader, BoundsTheValuesOfAllTypes) {
  const std::string type = '\x60' + repeated(1000, "\x7f") + repeated(1000, "\x7e");

  EXPECT_TRUE(read(module_of(section(1, repeated(100, type)))).has_value());
  const auto many = read(module_of(section(1, repeated(101, type))));

  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(many.error().message(), HasSubstr("200000 parameters and results"));
}

TEST(ModuleHeader, BoundsTheNamesOfAllExports) {
  const std::string type = section(1, number(1) + '\x60' + number(0) + number(0));
  const std::string function = section(3, repeated(1, number(0)));
  const std::string exported = number(50'000) + std::string(50'000, 'n') + '\0' + number(0);

  EXPECT_TRUE(read(module_of(type + function + section(7, repeated(100, exported)))).has_value());
  const auto many = read(module_of(type + function + section(7, repeated(200, exported))));

  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(many.error().message(), HasSubstr("the limit is 8 MiB"));
}

TEST(ModuleHeader, WritesTypesAsTheCompiledModuleDoes) {
  // (i32 a thousand times) -> (), and (i64) -> (f64); both end at once.
  const std::string types = number(2) + '\x60' + repeated(1000, "\x7f") + number(0) + '\x60' +
                            repeated(1, "\x7e") + repeated(1, "\x7c");
  const std::string exports =
      number(2) + number(4) + "long" + '\0' + number(0) + number(5) + "short" + '\0' + number(1);
  const std::string body = number(3) + std::string("\0\0\x0b", 3);
  const auto bytes = std::make_shared<const std::string>(
      module_of(section(1, types) + section(3, number(2) + number(0) + number(1)) +
                section(7, exports) + section(10, repeated(2, body))));

  const auto header = read(*bytes);
  GuestRig rig;
  const auto module = rig.try_load(bytes);

  ASSERT_TRUE(header.has_value()) << header.error().message();
  ASSERT_TRUE(module.has_value()) << module.error().message();
  for (const std::string_view name : {"long", "short"})
    EXPECT_EQ((*module)->find_export(name)->signature,
              find_export(header->exports, name)->signature);
  EXPECT_LT((*module)->find_export("long")->signature.size(), 200U);
  EXPECT_EQ((*module)->find_export("short")->signature, "(i64) -> (f64)");
}

TEST(ModuleHeader, BoundsImports) {
  const std::string type = section(1, number(1) + '\x60' + number(0) + number(0));
  const std::string imported = number(1) + "m" + number(1) + "f" + '\0' + number(0);

  EXPECT_TRUE(read(module_of(type + section(2, repeated(1000, imported)))).has_value());
  const auto many = read(module_of(type + section(2, repeated(1001, imported))));

  ASSERT_FALSE(many.has_value());
  EXPECT_THAT(many.error().message(), HasSubstr("1001 imports"));
}

TEST(ModuleHeader, ImportsAreNamedInFewWords) {
  const std::vector<Import> imports(7, {.module = std::string(1000, 'm'),
                                        .name = std::string(1000, 'n'),
                                        .kind = ExternKind::Function,
                                        .signature = std::string(1000, 's')});
  EXPECT_LT(names_of(imports).size(), 2000U);
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
