#include "modules/config_map.h"

#include "base/result.h"
#include "modules/internal/gzip.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hangar::modules {
namespace {

using Values = std::map<std::string, std::string>;

std::string refused(const ConfigMapContent& content, std::string_view key, ErrorKind kind) {
  const Result<std::string> bytes = module_bytes(content, key);
  if (bytes) return "accepted";
  EXPECT_EQ(bytes.error().kind(), kind);
  return bytes.error().message();
}

TEST(ModuleBytes, AreTheNamedKey) {
  const ConfigMapContent content{.binary_data = {{"a.wasm", "Zm9v"}, {"b.wasm", "YmFy"}}};

  EXPECT_EQ(module_bytes(content, "b.wasm").value(), "bar");
}

TEST(ModuleBytes, AreTheOnlyKeyOrBase64Text) {
  EXPECT_EQ(module_bytes({.binary_data = {{"a", "Zm9v"}}}, "").value(), "foo");
  EXPECT_EQ(module_bytes({.data = {{"a", "Zm9v\nYmFy\n"}}}, "").value(), "foobar");
}

TEST(ModuleBytes, AreNumberedPartsInTheOrderOfTheirNumbers) {
  Values parts;
  std::string whole;
  for (int number = 0; number <= 10; ++number) {
    const std::string letter(1, static_cast<char>('a' + number));
    parts["f.wasm." + std::to_string(number)] = "YWFh";
    whole += "aaa";
  }
  parts["f.wasm.2"] = "YmJi";
  parts["f.wasm.10"] = "Y2Nj";
  whole.replace(6, 3, "bbb");
  whole.replace(30, 3, "ccc");

  EXPECT_EQ(module_bytes({.binary_data = parts}, "").value(), whole);
  EXPECT_EQ(module_bytes({.data = {{"1", "Zm"}, {"2", "9v"}}}, "").value(), "foo");
  EXPECT_EQ(module_bytes({.data = {{"p01", "Zg=="}, {"p02", "Zg=="}}}, "").value(), "ff");
}

TEST(ModuleBytes, MayBeAScriptWhereThatIsWanted) {
  const auto bytes = [](const ConfigMapContent& content) {
    return module_bytes(content, "", Content::ModuleOrScript).value();
  };
  EXPECT_EQ(bytes({.data = {{"machine.js", "f();"}}}), "f();");
  EXPECT_EQ(bytes({.data = {{"m.0", "f("}, {"m.1", ");"}}}), "f();");
  EXPECT_EQ(bytes({.data = {{"m", "AGFzbQEAAAA="}}}), std::string("\0asm\x01\0\0\0", 8));
  EXPECT_EQ(bytes({.data = {{"m", "abcd"}}}), "abcd") << "base64 of nothing that could be meant";
  EXPECT_EQ(bytes({.binary_data = {{"machine.js", "Zm9v"}}}), "foo");
  EXPECT_EQ(bytes({.data = {{"README.md", "read"}, {"machine.js", "f();"}}}), "f();");
  EXPECT_FALSE(
      module_bytes({.data = {{"a.js", "f()"}, {"b.js", "g()"}}}, "", Content::ModuleOrScript)
          .has_value());
  EXPECT_FALSE(module_bytes({.data = {{"machine.js", "f();"}}}, "").has_value());
}

TEST(ModuleBytes, AreWhatWasPutIntoAConfigMap) {
  const ConfigMapContent content = in_config_map("machine.js", "f();").value();
  ASSERT_TRUE(content.binary_data.contains("machine.js.gz"));
  const std::string packed = module_bytes(content, "", Content::ModuleOrScript).value();
  EXPECT_EQ(gunzip(packed, 100).value(), "f();");

  std::string large(4 << 20, ' ');
  std::uint32_t number = 1;
  for (char& letter : large) {
    number = number * 1664525U + 1013904223U;
    letter = static_cast<char>(number >> 24U);
  }
  const auto refused = in_config_map("machine.js", large);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
}

TEST(ModuleBytes, AreNeverGuessed) {
  constexpr auto kInvalid = ErrorKind::InvalidInput;
  struct Case {
    ConfigMapContent content;
    std::string_view why;
  };
  const Case cases[] = {
      {{}, "no keys"},
      {{.data = {{"a", "Zg=="}, {"b", "Zg=="}}}, "the keys a, b"},
      {{.data = {{"f.0", "Zg=="}, {"f.2", "Zg=="}}}, "without a gap"},
      {{.data = {{"f.2", "Zg=="}, {"f.3", "Zg=="}}}, "without a gap"},
      {{.data = {{"f.0", "Zg=="}, {"g.1", "Zg=="}}}, "without a gap"},
      {{.data = {{"f.1", "Zg=="}, {"f.01", "Zg=="}}}, "without a gap"},
      {{.data = {{"f.0", "Zg=="}}, .binary_data = {{"f.1", "Zg=="}}}, "some parts are in data"},
      {{.data = {{"a", "\x7f not base64"}}}, "is not base64"},
  };
  for (const Case& one : cases) {
    const std::string message = refused(one.content, "", kInvalid);
    EXPECT_NE(message.find(one.why), std::string::npos) << message;
  }
}

TEST(ModuleBytes, NameTheKeysThatThereAre) {
  EXPECT_EQ(refused({.data = {{"a", "Zg=="}}}, "b", ErrorKind::NotFound),
            "configmap has no key b (it has a)");
}

}  // namespace
}  // namespace hangar::modules
