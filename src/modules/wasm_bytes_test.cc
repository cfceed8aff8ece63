#include "modules/internal/wasm_bytes.h"

#include "base/result.h"
#include "modules/config_map.h"
#include "modules/internal/gzip.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {
namespace {

using std::string_literals::operator""s;

const std::string kEmptyModule = "\0asm\x01\0\0\0"s;
constexpr std::string_view kEmptyModuleSha256 =
    "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476";

TEST(Unpack, TakesRawAndGzippedModulesByTheirFirstBytes) {
  for (const std::string& bytes : {kEmptyModule, gzip(kEmptyModule), gzip(gzip(kEmptyModule))}) {
    const Result<Unpacked> unpacked = unpack(bytes, 1000);

    ASSERT_TRUE(unpacked.has_value()) << unpacked.error().message();
    EXPECT_EQ(unpacked->wasm, kEmptyModule);
    EXPECT_EQ(unpacked->sha256, kEmptyModuleSha256);
  }
}

TEST(Unpack, HandsOnAGzipOfExactlyTheModule) {
  EXPECT_EQ(unpack(kEmptyModule, 1000)->gzipped, "");
  EXPECT_EQ(unpack(gzip(gzip(kEmptyModule)), 1000)->gzipped, gzip(kEmptyModule));
}

TEST(Unpack, TakesScriptsWhereTheyAreWanted) {
  const std::string script = "export const handle_event = () => '';\n";
  for (const std::string& bytes : {script, gzip(script)}) {
    EXPECT_FALSE(unpack(bytes, 1000).has_value());
    const Result<Unpacked> unpacked = unpack(bytes, 1000, Content::ModuleOrScript);
    ASSERT_TRUE(unpacked.has_value()) << unpacked.error().message();
    EXPECT_EQ(unpacked->wasm, script);
  }
  EXPECT_TRUE(unpack(kEmptyModule, 1000, Content::ModuleOrScript).has_value());
  const Result<Unpacked> page = unpack("<html>", 1000, Content::ModuleOrScript);
  ASSERT_FALSE(page.has_value());
  EXPECT_EQ(page.error().message(),
            "is not a WebAssembly module or JavaScript but an HTML page (6 bytes)");
}

TEST(Unpack, SaysWhatItIsInsteadOfAModule) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "nothing (0 bytes)"},
      {"  <!DOCTYPE HTML><title>Sign in</title>", "an HTML page"},
      {"<html>", "an HTML page"},
      {R"({"error":"no"})", "JSON"},
      {"not a module", "text"},
      {"(module)", "wat2wasm"},
      {"\0asm\x0d\0\x01\0"s, "a WebAssembly component"},
      {"\0asm\x02\0\0\0"s, "WebAssembly of an unknown version"},
      {"\0asm\x01"s, "the first bytes of a module"},
      {"\x7f"
       "ELF\x02"s,
       "an ELF program"},
      {"PK\x03\x04"s, "a zip archive"},
      {"\x28\xb5\x2f\xfd"s, "zstd"},
      {std::string(257, 'x') + "ustar", "a tar archive"},
      {"\x01\x02\x03"s, "other binary data"},
      {gzip("hello"), "gzip of text"},
      {gzip(gzip(gzip("hello"))), "gzip of gzip"},
  };
  for (const auto& [bytes, what] : cases) {
    const Result<Unpacked> unpacked = unpack(bytes, 10'000);

    ASSERT_FALSE(unpacked.has_value()) << what;
    EXPECT_EQ(unpacked.error().kind(), ErrorKind::InvalidInput);
    EXPECT_NE(unpacked.error().message().find(what), std::string::npos)
        << unpacked.error().message();
  }
}

TEST(Unpack, NeverRepeatsTheBytes) {
  const Result<Unpacked> unpacked = unpack("password of an internal server", 10'000);

  EXPECT_EQ(unpacked.error().message().find("password"), std::string::npos);
}

TEST(Unpack, BoundsTheModuleNotItsGzip) {
  const std::string module = kEmptyModule + std::string(1000, '\0');

  EXPECT_TRUE(unpack(module, module.size()).has_value());
  EXPECT_EQ(unpack(module, module.size() - 1).error().kind(), ErrorKind::LimitExceeded);
  EXPECT_EQ(unpack(gzip(module), module.size() - 1).error().kind(), ErrorKind::LimitExceeded);
}

}  // namespace
}  // namespace hangar::modules
