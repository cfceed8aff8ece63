#include "schematics/key_files.h"

#include "base/result.h"
#include "io/file.h"
#include "json/value.h"
#include "schematics/keys.h"
#include "schematics/test_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hangar::schematics {
namespace {

using testing::HasSubstr;

class KeyFiles : public testing::Test {
 protected:
  KeyFiles() { std::filesystem::create_directories(directory_); }
  ~KeyFiles() override { std::filesystem::remove_all(directory_); }

  Result<PublicKeys> load(std::string_view text) const {
    const std::filesystem::path file = directory_ / "keys.json";
    if (const Result<> written = io::write_file(file, std::string(text)); !written) {
      return std::unexpected(written.error());
    }
    return load_public_keys(file);
  }
  std::string refusal(std::string_view text) const {
    const Result<PublicKeys> keys = load(text);
    return keys ? "" : keys.error().message();
  }

 private:
  const std::filesystem::path directory_ =
      std::filesystem::path(testing::TempDir()) / "hangar_key_files";
};

TEST_F(KeyFiles, MayHaveAnArrayOfKeysAsYokesControllerReadsThem) {
  json::Array pems;
  for (const MadeByYoke& made : kMadeByYoke)
    pems.emplace_back(made.public_key);

  const Result<PublicKeys> keys = load(json::dump(pems));

  ASSERT_TRUE(keys) << keys.error().message();
  for (const MadeByYoke& made : kMadeByYoke) {
    const Result<PublicKey> key = PublicKey::parse(made.public_key);
    ASSERT_TRUE(key);
    EXPECT_NE(keys->find(key->fingerprint()), nullptr) << made.name;
  }
}

TEST_F(KeyFiles, SayWhichKeyOfAnArrayIsWrong) {
  const std::string good = json::dump(json::Value(std::string(kMadeByYoke[0].public_key)));

  EXPECT_THAT(refusal("[" + good + ", \"no key\"]"),
              HasSubstr("failed to parse key at position 1"));
  EXPECT_THAT(refusal("[" + good + ", 7]"), HasSubstr("position 1: must be a string"));
  EXPECT_NE(refusal("[" + good), "");
  std::string many = "[";
  for (int count = 0; count < 65; ++count)
    many += (count == 0 ? "" : ",") + good;
  EXPECT_THAT(refusal(many + "]"), HasSubstr("more than 64 keys"));
}

}  // namespace
}  // namespace hangar::schematics
