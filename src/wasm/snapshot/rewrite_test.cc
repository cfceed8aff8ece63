#include "wasm/snapshot/rewrite.h"

#include "base/consumer.h"
#include "base/result.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/sleepable_module.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

// Modules as bytes; all lengths are below 128.
class Bytes {
 public:
  Bytes() : text_("\0asm\1\0\0\0", 8) {}

  Bytes& section(std::uint8_t id, std::string_view contents) {
    text_ += static_cast<char>(id);
    text_ += static_cast<char>(contents.size());
    text_ += contents;
    return *this;
  }
  // A function of type () -> () with these instructions; the sections before it must be there.
  static std::string code(std::initializer_list<int> instructions) {
    std::string body("\0", 1);  // No locals.
    for (const int byte : instructions)
      body += static_cast<char>(byte);
    body += '\x0b';
    return std::string("\x01") + static_cast<char>(body.size()) + body;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string with_code(std::initializer_list<int> instructions) {
  return Bytes()
      .section(1, {"\1\x60\0\0", 4})
      .section(3, {"\1\0", 2})
      .section(5, {"\1\0\1", 3})
      .section(10, Bytes::code(instructions))
      .text();
}

std::string with_data(std::string_view data_section) {
  return Bytes().section(5, {"\1\0\1", 3}).section(11, data_section).text();
}

struct Rewritten : RewrittenModule {
  std::string bytes;
};

Rewritten rewritten(const std::string& module) {
  Rewritten made;
  Result<RewrittenModule> result =
      rewrite(std::as_bytes(std::span(module)), [&made](std::span<const std::byte> piece) {
        made.bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      });
  EXPECT_TRUE(result.has_value()) << result.error().message();
  if (result) static_cast<RewrittenModule&>(made) = *std::move(result);
  return made;
}

std::optional<std::string> obstacle_of(const std::string& module) {
  return rewritten(module).obstacle;
}

TEST(Rewrite, ExportsWhatASnapshotNeeds) {
  const auto bytes = GuestRig::bytes_of("sleeper");
  const Rewritten module = rewritten(*bytes);
  ASSERT_EQ(module.obstacle, std::nullopt);
  EXPECT_EQ(module.global_count, 5U);
  EXPECT_TRUE(module.has_memory);
  EXPECT_TRUE(module.has_start);
  EXPECT_EQ(module.memory_bytes_min, 4 * 65536U);
  const ModuleHeader header = read_module_header(std::as_bytes(std::span(module.bytes))).value();
  EXPECT_FALSE(header.has_start);
  EXPECT_NE(find_export(header.exports, kMemoryExport), nullptr);
  EXPECT_NE(find_export(header.exports, kStartExport), nullptr);
  EXPECT_NE(find_export(header.exports, global_export(4)), nullptr);
  EXPECT_EQ(find_export(header.exports, global_export(5)), nullptr);
  EXPECT_NE(find_export(header.exports, "work"), nullptr);
}

TEST(Rewrite, TakesOutDataInTheOrderOfItsAddresses) {
  const auto bytes = GuestRig::bytes_of("sleeper");
  const Rewritten module = rewritten(*bytes);
  ASSERT_EQ(module.data.size(), 3U);
  EXPECT_EQ(module.data[0].address, 16U);
  EXPECT_EQ(module.data[1].address, 8190U);
  EXPECT_EQ(module.data[2].address, 200000U);
  EXPECT_EQ(module.data[2].bytes.size(), std::string_view("and far from both").size());
  EXPECT_EQ(module.bytes.find("data at the beginning"), std::string::npos);
}

TEST(Rewrite, IsIdempotentInWhatItRefuses) {
  const Rewritten once = rewritten(*GuestRig::bytes_of("sleeper"));
  EXPECT_THAT(obstacle_of(once.bytes), Optional(HasSubstr("begins with hangar:")));
}

TEST(Rewrite, FindsWhatASnapshotWouldMiss) {
  EXPECT_EQ(obstacle_of(with_code({0x01})), std::nullopt);
  EXPECT_THAT(obstacle_of(with_code({0x26, 0})), Optional(HasSubstr("table.set")));
  EXPECT_THAT(obstacle_of(with_code({0xfc, 12, 0, 0})), Optional(HasSubstr("table.init")));
  EXPECT_THAT(obstacle_of(with_code({0xfc, 13, 0})), Optional(HasSubstr("elem.drop")));
  EXPECT_THAT(obstacle_of(with_code({0xfc, 14, 0, 0})), Optional(HasSubstr("table.copy")));
  EXPECT_THAT(obstacle_of(with_code({0xfc, 15, 0})), Optional(HasSubstr("table.grow")));
  EXPECT_THAT(obstacle_of(with_code({0xfc, 17, 0})), Optional(HasSubstr("table.fill")));
}

TEST(Rewrite, IsNotMisledByNumbersThatLookLikeInstructions) {
  EXPECT_EQ(obstacle_of(with_code({0x41, 0x26, 0x1a})), std::nullopt);        // i32.const
  EXPECT_EQ(obstacle_of(with_code({0x42, 0xa6, 0x26, 0x1a})), std::nullopt);  // i64.const
  EXPECT_EQ(obstacle_of(with_code({0x43, 0x26, 0x26, 0x26, 0x26, 0x1a})), std::nullopt);
  EXPECT_EQ(obstacle_of(with_code({0x41, 0, 0x28, 2, 0x26, 0x1a})), std::nullopt);  // i32.load
  EXPECT_EQ(obstacle_of(with_code({0x0e, 2, 0, 0, 0})), std::nullopt);              // br_table
  // A real one after all of these.
  EXPECT_THAT(obstacle_of(with_code({0x41, 0x26, 0x41, 0, 0x28, 2, 0x26, 0x26, 0})),
              Optional(HasSubstr("table.set")));
}

TEST(Rewrite, WhatIsNotUnderstoodIsAnObstacle) {
  EXPECT_THAT(obstacle_of(with_code({0xfb, 0})), Optional(HasSubstr("not known here")));
  EXPECT_THAT(obstacle_of(with_code({0x06, 0x40})), Optional(HasSubstr("not known here")));
  EXPECT_THAT(obstacle_of(with_code({0x43, 1})), Optional(HasSubstr("ends early")));
  EXPECT_THAT(obstacle_of(Bytes().section(6, {"\1\x70\1\xd0\x70\x0b", 6}).text()),
              Optional(HasSubstr("a reference in a mutable global")));
  EXPECT_THAT(obstacle_of(Bytes().section(6, {"\1\x63", 2}).text()), Optional(HasSubstr("global")));
  EXPECT_THAT(obstacle_of(Bytes().section(5, {"\1\3\1\1", 4}).text()),
              Optional(HasSubstr("shared memory")));
}

TEST(Rewrite, DataThatCannotBeAnImageIsAnObstacle) {
  EXPECT_EQ(obstacle_of(with_data({"\1\0\x41\0\x0b\1a", 7})), std::nullopt);
  EXPECT_THAT(obstacle_of(with_data({"\1\0\x23\0\x0b\1a", 7})), Optional(HasSubstr("computed")));
  EXPECT_THAT(obstacle_of(with_data({"\1\0\x41\x7f\x0b\1a", 7})),
              Optional(HasSubstr("does not lie in its memory")));
  EXPECT_THAT(obstacle_of(with_data({"\2\0\x41\0\x0b\1a\0\x41\0\x0b\1b", 13})),
              Optional(HasSubstr("overlap")));
  EXPECT_THAT(obstacle_of(with_data({"\1\2\1\x41\0\x0b\1a", 8})),
              Optional(HasSubstr("another memory")));
}

TEST(Rewrite, DroppingDataMattersOnlyWhenSomeIsPassive) {
  const auto module = [](std::string_view data) {
    return Bytes()
        .section(1, {"\1\x60\0\0", 4})
        .section(3, {"\1\0", 2})
        .section(5, {"\1\0\1", 3})
        .section(12, "\1")
        .section(10, Bytes::code({0xfc, 9, 0}))
        .section(11, data)
        .text();
  };
  EXPECT_EQ(obstacle_of(module({"\1\0\x41\0\x0b\1a", 7})), std::nullopt);
  EXPECT_THAT(obstacle_of(module({"\1\1\1a", 4})), Optional(HasSubstr("data.drop")));
}

TEST(Rewrite, BrokenModulesAreErrors) {
  const std::string whole = *GuestRig::bytes_of("sleeper");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // Whatever the result, reading must not pass the end.
    const Result<RewrittenModule> result =
        rewrite(std::as_bytes(std::span(whole)).first(size), [](auto) {});
    if (size < 8) EXPECT_FALSE(result.has_value());
  }
}

TEST(Rewrite, WhatItMakesIsCompiledAsItWouldBeWithoutIt) {
  GuestRig rig;
  const TemporaryDirectory images;
  for (const char* const name : {"hidden_memory_at_start", "imports_everything", "ledger",
                                 "passive_data", "sleeper", "trap_in_start", "two_tables"}) {
    const auto bytes = GuestRig::bytes_of(name);
    const auto plain = rig.try_load(bytes);
    ASSERT_TRUE(plain.has_value()) << name;
    const auto module =
        rig.await(SleepableModule::load(rig.cache(), Digest::of(*bytes), bytes, images.path(), {}));
    ASSERT_TRUE(module.has_value()) << name << ": " << module.error().message();
    EXPECT_EQ((*module)->obstacle(), nullptr) << name;
    EXPECT_EQ((*module)->code_digest(), Digest::of(rewritten(*bytes).bytes)) << name;
    const auto code = rig.await((*module)->code(budget::unnamed_consumer())).value();
    EXPECT_EQ(code->imports(), (*plain)->imports()) << name;
    for (const Export& exported : (*plain)->exports()) {
      const Export* const same = code->find_export(exported.name);
      ASSERT_NE(same, nullptr) << name << " " << exported.name;
      EXPECT_EQ(*same, exported);
    }
  }
}

TEST(Rewrite, AnImageCountsForItsNamespaceBeforeTheModuleIsCompiled) {
  GuestRig rig;
  const TemporaryDirectory directory;
  budget::CacheCharges charges;
  charges.limit_tenants({.namespaces = {{"poor", {.bytes_max = 1, .set_by = "TenantPolicy a"}}}});
  CodeCache cache(rig.engine(), {.directory = directory.path() / "code",
                                 .compile_program = HANGAR_COMPILE_PROGRAM,
                                 .charges = &charges});
  ASSERT_TRUE(cache.open());
  const auto bytes = GuestRig::bytes_of("sleeper");
  const auto load_for = [&](const std::string& tenant) {
    return rig.await(SleepableModule::load(
        cache, Digest::of(*bytes), bytes, directory.path() / "images", {},
        budget::Consumer{.tenant = budget::Tenant::of_namespace(tenant), .name = "module"}));
  };

  const auto refused = load_for("poor");

  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(budget::is_too_little_disk(refused.error())) << refused.error().message();
  EXPECT_EQ(cache.compiled_count(), 0U);
  EXPECT_TRUE(load_for("rich").has_value());
  EXPECT_EQ(charges.charged_bytes(budget::Tenant::of_namespace("rich")), 0U)
      << "whoever uses the module charges it";
}

}  // namespace
}  // namespace hangar::wasm
