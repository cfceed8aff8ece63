#include "schematics/signature.h"

#include "base/digest.h"
#include "base/result.h"
#include "schematics/keys.h"
#include "schematics/sections.h"
#include "schematics/test_keys.h"
#include "wasm/custom_sections.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hangar::schematics {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

PublicKeys keys_of(std::string_view pem) {
  PublicKeys keys;
  EXPECT_TRUE(keys.add(*PublicKey::parse(pem)));
  return keys;
}

std::string signed_by(std::string_view pem, std::string_view module = kPlain,
                      Signed is_signed = Signed::Refuse) {
  const Result<std::string> made =
      sign_module(bytes_of(module), *PrivateKey::parse(pem), is_signed);
  return made ? *made : made.error().message();
}

// The message of the refusal; empty when one of the keys has signed the module.
std::string refusal(std::string_view module, const PublicKeys& keys) {
  const Result<> verified = verify_module(bytes_of(module), keys);
  return verified ? "" : verified.error().message();
}

TEST(Signature, OfYokeVerifies) {
  for (const MadeByYoke& made : kMadeByYoke) {
    std::string module(kPlain);
    wasm::append_custom_section(module, "yoke.schematics:signature", made.payload);

    EXPECT_EQ(refusal(module, keys_of(made.public_key)), "") << made.name;
  }
}

// Ed25519 signatures contain no randomness.
TEST(Signature, IsToTheByteThatOfYoke) {
  std::string module(kPlain);
  wasm::append_custom_section(module, "yoke.schematics:signature", kMadeByYoke[2].payload);

  EXPECT_EQ(signed_by(kEd25519Private), module);
}

TEST(Signature, IsRefusedWhenItIsNotThere) {
  EXPECT_EQ(refusal(kPlain, keys_of(kEcPrivate)), "module is unsigned");
  EXPECT_EQ(refusal("text", keys_of(kEcPrivate)), "is not a WebAssembly module: too short");
}

TEST(Signature, OfAnotherKeyIsRefused) {
  EXPECT_EQ(refusal(signed_by(kEcPrivate), keys_of(kP384Private)),
            "module's key fingerprint does not match provided key(s)");
  EXPECT_EQ(refusal(signed_by(kEcPrivate), {}),
            "module's key fingerprint does not match provided key(s)");
}

// With Ed25519, whose signature is always the same: in the base64 of another signature, unused bits
// of the last letter could change without effect.
TEST(Signature, OfAnyOtherByteIsRefused) {
  const std::string module = signed_by(kEd25519Private);
  const PublicKeys keys = keys_of(kEd25519Private);
  ASSERT_EQ(refusal(module, keys), "");
  for (std::size_t at = 0; at < module.size(); ++at) {
    std::string flipped = module;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EXPECT_NE(refusal(flipped, keys), "") << at;
  }
}

TEST(Signature, IsRefusedOfAModuleThatGrewAfterwards) {
  const std::string module = signed_by(kEcPrivate);
  const PublicKeys keys = keys_of(kEcPrivate);
  std::string appended = module;
  wasm::append_custom_section(appended, "hangar:plugin", "hostile");
  std::string prepended(kPlain.substr(0, 8));
  wasm::append_custom_section(prepended, "name", "x");
  prepended += module.substr(8);
  const std::string documented =
      *with_schematic(bytes_of(module), {.name = "docs", .contents = "new"});

  EXPECT_EQ(refusal(appended, keys), "invalid signature");
  EXPECT_EQ(refusal(prepended, keys), "invalid signature");
  EXPECT_EQ(refusal(documented, keys), "invalid signature");
}

TEST(Signature, IsRefusedWhereAnotherOneStandsBeforeOrBehindIt) {
  const std::string module = signed_by(kEcPrivate);
  const PublicKeys keys = keys_of(kEcPrivate);
  std::string twice = module;
  wasm::append_custom_section(twice, "yoke.schematics:signature", kMadeByYoke[2].payload);
  std::string before(kPlain.substr(0, 8));
  wasm::append_custom_section(before, "yoke.schematics:signature", kMadeByYoke[2].payload);
  before += module.substr(8);

  EXPECT_EQ(refusal(twice, keys), "invalid signature");
  EXPECT_EQ(refusal(before, keys), "module's key fingerprint does not match provided key(s)");
}

TEST(Signature, MayStandAnywhereAmongTheSections) {
  const std::string module = signed_by(kEcPrivate);
  const std::string moved =
      module.substr(0, 8) + module.substr(kPlain.size()) + std::string(kPlain.substr(8));

  EXPECT_EQ(refusal(moved, keys_of(kEcPrivate)), "");
}

TEST(Signature, ThatIsNoneIsRefusedWithWords) {
  const auto of = [](std::string_view payload) {
    std::string module(kPlain);
    wasm::append_custom_section(module, "yoke.schematics:signature", payload);
    return refusal(module, keys_of(kEcPrivate));
  };
  EXPECT_EQ(of(""), "module is unsigned");
  EXPECT_TRUE(of("{").starts_with("invalid signature payload: ")) << of("{");
  EXPECT_EQ(of("[]"), "module's key fingerprint does not match provided key(s)");
  EXPECT_EQ(of(R"({"Signature": "%"})"), "invalid signature payload: its signature is not base64");
  EXPECT_EQ(of(std::string(kSignatureBytesMax, ' ') + "{}"),
            "invalid signature payload: larger than 16384 bytes");
}

TEST(Signature, IsReplacedOnlyWhereThatIsWanted) {
  const std::string module = signed_by(kEcPrivate);

  EXPECT_EQ(signed_by(kP384Private, module), "module is already signed");
  const std::string again = signed_by(kP384Private, module, Signed::Replace);
  EXPECT_EQ(refusal(again, keys_of(kP384Private)), "");
  EXPECT_EQ(again.find("yoke.schematics:signature"), again.rfind("yoke.schematics:signature"));
}

// Sections that stay in the module are signed, whatever other sections had that name.
TEST(Signature, HoldsForAModuleThatHadACommandOfItsName) {
  const std::string module = *with_schematic(
      bytes_of(kPlain), {.name = "signature", .kind = Kind::Command, .contents = "[]"});

  EXPECT_EQ(refusal(signed_by(kEcPrivate, module), keys_of(kEcPrivate)), "");
}

const CodeStatement kStatement{.module_sha256 = std::string(64, 'a'),
                               .engine = "engine-1",
                               .processor = "x86_64 avx",
                               .code_sha256 = std::string(64, 'b')};

// The message of the refusal; empty when one of the keys has signed the code.
std::string code_refusal(std::string_view file, const CodeStatement& statement,
                         std::string_view pem = kEcPrivate) {
  const Result<std::string> verified = verify_code(file, statement, keys_of(pem));
  return verified ? "" : verified.error().message();
}

TEST(CodeSignature, IsOfOneStatementByOneKey) {
  const std::string file = *sign_code(kStatement, *PrivateKey::parse(kEcPrivate));

  EXPECT_EQ(code_refusal(file, kStatement), "");
  EXPECT_EQ(code_refusal(file, kStatement, kP384Private), "signed by none of the builder keys");
  for (auto field : {&CodeStatement::module_sha256, &CodeStatement::engine,
                     &CodeStatement::processor, &CodeStatement::code_sha256}) {
    CodeStatement other = kStatement;
    other.*field = std::string(64, 'c');
    EXPECT_EQ(code_refusal(file, other), "the signature is for other code, or another module");
  }
}

// Whoever signs modules with a key does not sign native code with it.
TEST(CodeSignature, IsNotTheSignatureOfAModule) {
  std::string module = signed_by(kEcPrivate);
  const auto begin = module.find('{');
  const std::string payload = module.substr(begin, module.rfind('}') + 1 - begin);
  CodeStatement statement = kStatement;
  statement.code_sha256 = to_hex(sha256(kPlain));

  EXPECT_EQ(code_refusal(payload, statement), "the signature is for other code, or another module");
}

TEST(CodeSignature, ThatIsNoneIsRefusedWithWords) {
  EXPECT_TRUE(code_refusal("{", kStatement).starts_with("invalid signature: "));
  EXPECT_EQ(code_refusal("[]", kStatement), "signed by none of the builder keys");
  EXPECT_EQ(code_refusal(R"({"Signature": "%"})", kStatement),
            "invalid signature: its signature is not base64");
}

}  // namespace
}  // namespace hangar::schematics
