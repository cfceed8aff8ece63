#include "signatures/prebuilt_directory.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/result.h"
#include "schematics/keys.h"
#include "schematics/signature.h"
#include "schematics/test_keys.h"
#include "wasm/code_target.h"
#include "wasm/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::signatures {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Lines final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*component*/, std::string_view message,
             std::span<const LogField> fields) override {
    text += message;
    for (const LogField& field : fields)
      if (const auto* value = std::get_if<std::string>(&field.value)) text += " " + *value;
    text += '\n';
  }

  std::string text;
};

class PrebuiltDirectoryTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBytesMax = 1000;

  PrebuiltDirectoryTest() {
    std::string name = (fs::temp_directory_path() / "prebuilt.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~PrebuiltDirectoryTest() override { fs::remove_all(root_); }

  // Writes code and a signature of it as a builder does.
  void build(const wasm::CodeTarget& target, std::string_view code,
             std::string_view pem = schematics::kEcPrivate) {
    const PrebuiltFiles files = PrebuiltFiles::of(root_, module_, target);
    std::ofstream(files.code) << code;
    std::ofstream(files.signature) << schematics::sign_code({.module_sha256 = module_.to_hex(),
                                                             .engine = target.engine,
                                                             .processor = target.processor,
                                                             .code_sha256 = sha256_hex(code)},
                                                            *schematics::PrivateKey::parse(pem))
                                          .value();
  }

  Result<std::string> copy(std::uint64_t bytes_max = kBytesMax) {
    schematics::PublicKeys keys;
    EXPECT_TRUE(keys.add(*schematics::PublicKey::parse(schematics::kEcPrivate)));
    return PrebuiltDirectory(root_, std::move(keys), Log(log_, "test"))
        .copy_to(output_(), module_, bytes_max);
  }

  std::string copied() {
    std::ifstream file(output_());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  [[nodiscard]] fs::path output_() const { return root_ / "output"; }

  fs::path root_;
  Lines log_;
  const wasm::Digest module_ = wasm::Digest::of("a module");
};

TEST_F(PrebuiltDirectoryTest, CopiesWhatABuilderHasSigned) {
  build(wasm::CodeTarget::any_machine(), "for all");
  ASSERT_TRUE(copy());
  EXPECT_EQ(copied(), "for all");

  fs::remove(output_());
  build(wasm::CodeTarget::this_machine(), "for this one");
  ASSERT_TRUE(copy());
  EXPECT_EQ(copied(), "for this one") << "which is faster";
}

TEST_F(PrebuiltDirectoryTest, TrustsABuilderByItsKey) {
  build(wasm::CodeTarget::any_machine(), "code");
  const Result<std::string> builder = copy();
  ASSERT_TRUE(builder);

  schematics::PublicKeys keys;
  ASSERT_TRUE(keys.add(*schematics::PublicKey::parse(schematics::kEcPrivate)));
  EXPECT_TRUE(PrebuiltDirectory(root_, keys, Log()).trusts(*builder));
  schematics::PublicKeys others;
  ASSERT_TRUE(others.add(*schematics::PublicKey::parse(schematics::kP384Private)));
  EXPECT_FALSE(PrebuiltDirectory(root_, others, Log()).trusts(*builder)) << "it was withdrawn";
}

TEST_F(PrebuiltDirectoryTest, SaysWhatIsMissing) {
  wasm::CodeTarget older = wasm::CodeTarget::any_machine();
  older.engine = "wasmtime-1";
  build(older, "for all");

  const Result<std::string> done = copy();

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::NotFound);
  EXPECT_THAT(done.error().message(), HasSubstr("hangar build code"));
  EXPECT_THAT(done.error().message(), HasSubstr(module_.to_hex()));
  EXPECT_THAT(done.error().message(), Not(HasSubstr(root_.string()))) << "tenants read it";
  const std::string processor = wasm::CodeTarget::this_machine().processor;
  EXPECT_THAT(done.error().message(), Not(HasSubstr(processor)));
  EXPECT_THAT(log_.text, AllOf(HasSubstr(root_.string()), HasSubstr(processor)));
}

TEST_F(PrebuiltDirectoryTest, RefusesWhatNoBuilderHasSigned) {
  const PrebuiltFiles files = PrebuiltFiles::of(root_, module_, wasm::CodeTarget::any_machine());
  const auto refusal = [&] {
    const Result<std::string> done = copy();
    EXPECT_FALSE(done);
    EXPECT_FALSE(fs::exists(output_())) << "nothing is left that a later line might load";
    EXPECT_THAT(log_.text, HasSubstr(files.signature.string()));
    EXPECT_THAT(done.error().message(), Not(HasSubstr(root_.string()))) << "tenants read it";
    return done ? "" : done.error().message();
  };

  build(wasm::CodeTarget::any_machine(), "code", schematics::kP384Private);
  EXPECT_THAT(refusal(), HasSubstr("signed by none of the builder keys"));
  build(wasm::CodeTarget::any_machine(), "code");
  std::ofstream(files.code) << "cod3";
  EXPECT_THAT(refusal(), HasSubstr("the signature is for other code, or another module"));
  build(wasm::CodeTarget::any_machine(), "code");
  std::ofstream(files.signature) << "{";
  EXPECT_THAT(refusal(), HasSubstr("invalid signature"));
}

// A signature for one processor does not make code run on another.
TEST_F(PrebuiltDirectoryTest, RefusesCodeOfAnotherProcessorUnderThisOnesName) {
  wasm::CodeTarget other = wasm::CodeTarget::any_machine();
  other.processor = "a newer one";
  build(other, "code");
  const PrebuiltFiles from = PrebuiltFiles::of(root_, module_, other);
  const PrebuiltFiles to = PrebuiltFiles::of(root_, module_, wasm::CodeTarget::any_machine());
  fs::rename(from.code, to.code);
  fs::rename(from.signature, to.signature);

  const Result<std::string> done = copy();

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::Denied);
}

TEST_F(PrebuiltDirectoryTest, NeitherFillsTheDiskNorWaitsForAPipe) {
  build(wasm::CodeTarget::any_machine(), std::string(kBytesMax + 1, 'x'));
  const Result<std::string> large = copy();
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind(), ErrorKind::LimitExceeded);

  const PrebuiltFiles files = PrebuiltFiles::of(root_, module_, wasm::CodeTarget::any_machine());
  fs::remove(files.code);
  ASSERT_EQ(::mkfifo(files.code.c_str(), 0600), 0);
  const Result<std::string> pipe = copy();
  ASSERT_FALSE(pipe);
  EXPECT_EQ(pipe.error().kind(), ErrorKind::Denied);
  EXPECT_THAT(log_.text, HasSubstr("is not a file"));
  EXPECT_THAT(pipe.error().message(), Not(HasSubstr(root_.string()))) << "tenants read it";
}

}  // namespace
}  // namespace hangar::signatures
