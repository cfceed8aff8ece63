#include "schematics/keys.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/result.h"
#include "schematics/cosign_keys.h"
#include "schematics/test_keys.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::schematics {
namespace {

std::string refusal(std::string_view pem) {
  const Result<PrivateKey> key = PrivateKey::parse(pem);
  return key ? "" : key.error().message();
}

TEST(Keys, AreNamedAsYokeNamesThem) {
  for (const MadeByYoke& made : kMadeByYoke) {
    const Result<PublicKey> key = PublicKey::parse(made.public_key);

    ASSERT_TRUE(key) << made.name << ": " << key.error().message();
    EXPECT_TRUE(made.payload.contains(key->fingerprint())) << made.name;
  }
}

TEST(Keys, VerifyWhatCosignHasSignedAndNothingElse) {
  PublicKeys all;
  for (const MadeByCosign& made : kMadeByCosign) {
    const Result<PublicKey> key = PublicKey::parse(made.public_key);
    ASSERT_TRUE(key) << made.name << ": " << key.error().message();
    const std::optional<std::string> signature = base64_decode(made.signature);
    ASSERT_TRUE(signature) << made.name;

    EXPECT_TRUE(key->has_signed_bytes(kCosignPayload, *signature)) << made.name;
    EXPECT_FALSE(key->has_signed_bytes("other bytes", *signature)) << made.name;
    EXPECT_FALSE(key->has_signed_bytes(kCosignPayload, "")) << made.name;
    EXPECT_FALSE(key->has_signed_bytes(kCosignPayload, *signature + "x")) << made.name;
    std::string flipped = *signature;
    flipped.back() = static_cast<char>(flipped.back() ^ 1);
    EXPECT_FALSE(key->has_signed_bytes(kCosignPayload, flipped)) << made.name;
    EXPECT_FALSE(all.has_signed_bytes(kCosignPayload, *signature))
        << made.name << " is by none of the other keys";
    ASSERT_TRUE(all.add(*key));
    EXPECT_TRUE(all.has_signed_bytes(kCosignPayload, *signature)) << made.name;
  }
}

TEST(Keys, DoNotTakeASignatureOfOneToolForOneOfTheOther) {
  const Result<PrivateKey> key = PrivateKey::parse(kEd25519Private);
  ASSERT_TRUE(key);
  const std::string signature = key->sign(sha256("a module")).value();

  EXPECT_FALSE(key->public_key().has_signed_bytes("a module", signature));
}

TEST(Keys, VerifyWhatTheirPrivateHalfHasSignedAndNothingElse) {
  const Sha256Bytes digest = sha256("a module");
  for (const std::string_view pem : {kEd25519Private, kEcPrivate, kP384Private}) {
    const Result<PrivateKey> key = PrivateKey::parse(pem);
    ASSERT_TRUE(key) << key.error().message();
    const Result<std::string> signature = key->sign(digest);
    ASSERT_TRUE(signature);
    const Result<PublicKey> parsed = PublicKey::parse(pem);  // The public half.
    ASSERT_TRUE(parsed);

    EXPECT_TRUE(parsed->has_signed(digest, *signature));
    EXPECT_FALSE(parsed->has_signed(sha256("another"), *signature));
    EXPECT_FALSE(parsed->has_signed(digest, ""));
    for (std::size_t at = 0; at < signature->size(); ++at) {
      std::string flipped = *signature;
      flipped[at] = static_cast<char>(flipped[at] ^ 1);
      EXPECT_FALSE(parsed->has_signed(digest, flipped)) << at;
    }
  }
}

TEST(Keys, ComeBackFromTheirDer) {
  for (const MadeByYoke& made : kMadeByYoke) {
    const Result<PublicKey> key = PublicKey::parse(made.public_key);
    ASSERT_TRUE(key);

    const Result<PublicKey> again = PublicKey::from_der(key->der());

    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->fingerprint(), key->fingerprint());
  }
}

TEST(Keys, OfOtherKindsAreRefusedByName) {
  EXPECT_EQ(refusal("no key"), "failed to decode PEM");
  EXPECT_EQ(refusal(""), "failed to decode PEM");
  EXPECT_EQ(refusal(kSec1Private), "unsupported key type: \"EC PRIVATE KEY\"");
  EXPECT_EQ(refusal(kSecp256k1Private),
            "unsupported elliptic curve: expected P-224, P-256, P-384 or P-521");
  EXPECT_EQ(refusal(kRsa512Private), "an RSA key of 512 bits, the least is 1024");
  EXPECT_EQ(refusal(kMadeByYoke[0].public_key), "unsupported key type: \"PUBLIC KEY\"");
  EXPECT_EQ(refusal(std::string(kKeyTextBytesMax + 1, ' ')),
            "failed to decode PEM: it is too large");
}

TEST(Keys, DamagedAtAnyByteAreRefusedOrOthers) {
  const Result<PublicKey> key = PublicKey::parse(kMadeByYoke[1].public_key);
  ASSERT_TRUE(key);
  for (std::size_t at = 0; at < key->der().size(); ++at) {
    std::string der = key->der();
    der[at] = static_cast<char>(der[at] ^ 0x40);
    const Result<PublicKey> other = PublicKey::from_der(der);
    if (other) EXPECT_NE(other->fingerprint(), key->fingerprint()) << at;
  }
}

TEST(Keys, OfASetHaveAnIdOfTheirOwn) {
  PublicKeys one;
  ASSERT_TRUE(one.add(*PublicKey::parse(kMadeByYoke[0].public_key)));
  PublicKeys two = one;
  ASSERT_TRUE(two.add(*PublicKey::parse(kMadeByYoke[1].public_key)));
  PublicKeys same;
  ASSERT_TRUE(same.add(*PublicKey::parse(kMadeByYoke[1].public_key)));
  ASSERT_TRUE(same.add(one));

  EXPECT_NE(one.id(), two.id());
  EXPECT_EQ(two.id(), same.id());
  EXPECT_EQ(two.size(), 2U);
  EXPECT_EQ(two.find("other"), nullptr);
}

}  // namespace
}  // namespace hangar::schematics
