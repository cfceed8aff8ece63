#include "airways/revision.h"

#include "airways/limits.h"
#include "airways/output.h"
#include "base/base64.h"
#include "base/limits.h"
#include "json/yaml.h"
#include "modules/limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <random>
#include <string>
#include <string_view>

namespace hangar::airways {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const WallTime kNow = parse_rfc3339("2026-04-08T12:00:00.123456789Z").value();
const Source kSource = {.url = "oci://registry/flights/app:v1", .checksum = "abc"};
constexpr std::string_view kRelease = "examples.com.App.default.web";

json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}
Stages stages_of(std::string_view text) {
  return parse_output(text).value().stages;
}

const Stages kStages = stages_of(
    "[[{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}], [{apiVersion: v1, "
    "kind: Secret, metadata: {name: b}}]]");

Revision revision(std::string secret, int created, std::optional<int> active = std::nullopt) {
  Revision value = {.secret = std::move(secret), .created_at = WallTime(seconds(created))};
  if (active) value.active_at = WallTime(seconds(*active));
  return value;
}

History history(std::vector<Revision> revisions) {
  History value;
  for (Revision& one : revisions)
    value.add(std::move(one));
  return value;
}

std::vector<std::string> names(const std::vector<const Revision*>& revisions) {
  std::vector<std::string> found;
  found.reserve(revisions.size());
  for (const Revision* one : revisions)
    found.push_back(one->secret);
  return found;
}

TEST(RevisionSecret, IsLaidOutAsYokeDoes) {
  const json::Value secret =
      secret_of(kRelease, "default", kStages, kSource, kNow, kNow + seconds(1)).value();

  EXPECT_EQ(json::string_at(secret, {"apiVersion"}), "v1");
  EXPECT_EQ(json::string_at(secret, {"kind"}), "Secret");
  EXPECT_EQ(json::string_at(secret, {"metadata", "namespace"}), "default");
  EXPECT_THAT(std::string(json::string_at(secret, {"metadata", "name"})),
              testing::MatchesRegex("yoke\\.[0-9a-f]+"));
  EXPECT_EQ(json::string_at(secret, {"metadata", "name"}).size(), std::string("yoke.").size() + 12);
  // printf examples.com.App.default.web | sha1sum
  EXPECT_EQ(*json::find(secret, {"metadata", "labels"}),
            yaml("{internal.yoke/kind: revision, internal.yoke/release: "
                 "2e6f8249b3bc6e3883bffabd488c9f0b13db8bdd}"));
  EXPECT_TRUE(json::equal(*json::find(secret, {"metadata", "annotations"}), yaml(R"(
internal.yoke/created-at: '2026-04-08T12:00:00.123456789Z'
internal.yoke/active-at: '2026-04-08T12:00:01.123456789Z'
internal.yoke/resources: '2'
internal.yoke/source-url: oci://registry/flights/app:v1
internal.yoke/source-checksum: abc
internal.yoke/release-name: examples.com.App.default.web
)")));
  // The magic of gzip in base64.
  EXPECT_THAT(std::string(json::string_at(secret, {"data", "resources"})), StartsWith("H4sI"));
}

TEST(RevisionSecret, IsReadBack) {
  const json::Value secret =
      secret_of(kRelease, "default", kStages, kSource, kNow, kNow + seconds(1)).value();

  const Result<Revision> read = revision_of(secret);
  const Result<UnpackedRevision> unpacked = unpack(secret);

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->secret, json::string_at(secret, {"metadata", "name"}));
  EXPECT_EQ(read->namespace_, "default");
  EXPECT_EQ(read->release, kRelease);
  EXPECT_EQ(read->source, kSource);
  EXPECT_EQ(read->created_at, kNow);
  EXPECT_EQ(read->active_at, kNow + seconds(1));
  EXPECT_EQ(read->resource_count, 2U);
  ASSERT_TRUE(unpacked) << unpacked.error().message();
  EXPECT_TRUE(same_resources(unpacked->stages, kStages));
}

// The output of `echo DATA | base64 -d | gunzip`.
std::string text_of(const json::Value& secret) {
  const std::string data =
      base64_decode(json::string_at(secret, {"data", "resources"})).value_or(std::string());
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string text(limits::kMiB, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(RevisionSecret, HoldsTheTextThatGoWrites) {
  const Stages stages = stages_of(
      R"([[{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"b":"<&>","a":"x"}}]])");

  EXPECT_EQ(text_of(secret_of(kRelease, "default", stages, kSource, kNow).value()),
            R"([[{"apiVersion":"v1","data":{"a":"x","b":"\u003c\u0026\u003e"},)"
            R"("kind":"ConfigMap","metadata":{"name":"a"}}]])");
  EXPECT_EQ(text_of(secret_of(kRelease, "default", {}, kSource, kNow).value()), "null");
}

TEST(RevisionTimes, AreAsTheyWereWritten) {
  const json::Value secret = yaml(
      "{metadata: {annotations: {internal.yoke/created-at: '2026-04-08T12:00:00.5+02:00', "
      "internal.yoke/active-at: '0001-01-01T00:00:00Z'}}}");

  EXPECT_EQ(times_of(secret).created_at, "2026-04-08 12:00:00");
  EXPECT_EQ(times_of(secret).active_at, "0001-01-01 00:00:00");
  EXPECT_EQ(times_of(yaml("{}")).created_at, "");
}

TEST(RevisionSecret, IsNotActiveUntilItIsMadeSo) {
  const json::Value secret = secret_of(kRelease, "default", kStages, kSource, kNow).value();

  EXPECT_EQ(json::string_at(secret, {"metadata", "annotations", "internal.yoke/active-at"}),
            "0001-01-01T00:00:00Z");
  EXPECT_EQ(revision_of(secret)->active_at, std::nullopt);
  EXPECT_EQ(json::dump(activation_patch(kNow)),
            R"({"metadata":{"annotations":{"internal.yoke/active-at":)"
            R"("2026-04-08T12:00:00.123456789Z"}}})");
}

TEST(RevisionSecret, HasANameOfItsOwn) {
  const auto name = [](const Stages& stages, WallTime at, std::string_view release) {
    return std::string(json::string_at(secret_of(release, "default", stages, kSource, at).value(),
                                       {"metadata", "name"}));
  };

  EXPECT_EQ(name(kStages, kNow, kRelease), name(kStages, kNow, kRelease));
  EXPECT_NE(name(kStages, kNow, kRelease), name(kStages, kNow + seconds(1), kRelease));
  EXPECT_NE(name(kStages, kNow, kRelease), name({}, kNow, kRelease));
  EXPECT_NE(name(kStages, kNow, kRelease), name(kStages, kNow, "another"));
}

TEST(RevisionSecret, OfNoResourcesIsReadBack) {
  const json::Value secret = secret_of(kRelease, "default", {}, kSource, kNow).value();

  EXPECT_THAT(unpack(secret).value().stages, IsEmpty());
  EXPECT_EQ(revision_of(secret)->resource_count, 0U);
}

TEST(RevisionSecret, HoldsAMegabyteAndSaysWhatToDoBeyond) {
  // Hex of random bytes compresses to about half.
  std::mt19937_64 random(1);
  std::string text;
  const auto stages = [&](std::size_t bytes) {
    while (text.size() < bytes)
      text += fmt::format("{:016x}", random());
    Stages value = kStages;
    json::set_at(value[0][0], {"data", "big"}, json::Value(text));
    return value;
  };

  EXPECT_TRUE(secret_of(kRelease, "default", stages(limits::kSecretBytesMax), kSource, kNow));
  const Result<json::Value> secret =
      secret_of(kRelease, "default", stages(3 * limits::kSecretBytesMax), kSource, kNow);
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(secret.error().message(), HasSubstr("several Airways"));
}

TEST(Unpack, AcceptsWhatOlderVersionsDidNotCompress) {
  struct Case {
    std::string_view name;
    std::string_view base64;
    std::size_t resources;
  };
  const Case cases[] = {
      // [[{"kind":"A","metadata":{"name":"a"}}]]
      {"plain", "W1t7ImtpbmQiOiJBIiwibWV0YWRhdGEiOnsibmFtZSI6ImEifX1dXQ==", 1},
      {"null", "bnVsbA==", 0},              // null
      {"empty", "W10=", 0},                 // []
      {"empty stages", "W251bGwsW11d", 0},  // [null,[]]
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    json::Value secret = json::Object();
    json::set_at(secret, {"data", "resources"}, json::Value(c.base64));
    const Result<UnpackedRevision> unpacked = unpack(secret);
    ASSERT_TRUE(unpacked) << unpacked.error().message();
    EXPECT_EQ(resource_count(unpacked->stages), c.resources);
  }
}

TEST(Unpack, RefusesWhatIsNoHistory) {
  struct Case {
    std::string_view name;
    std::string_view base64;
  };
  const Case cases[] = {
      {"nothing", ""},
      {"no base64", "!!!!"},
      {"cut base64", "W10"},
      {"no JSON", "aGVsbG8="},                                  // hello
      {"an object", "e30="},                                    // {}
      {"a list of objects", "W3sia2luZCI6IkEifV0="},            // [{"kind":"A"}]
      {"resources without names", "W1t7ImtpbmQiOiJBIn1dXQ=="},  // [[{"kind":"A"}]]
      {"cut gzip", "H4sIAAAAAAAA"},
      {"only the magic", "H4s="},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    json::Value secret = json::Object();
    json::set_at(secret, {"data", "resources"}, json::Value(c.base64));
    EXPECT_FALSE(unpack(secret));
  }
}

TEST(Unpack, RefusesAnyFlippedByteOrReadsResources) {
  const json::Value secret = secret_of(kRelease, "default", kStages, kSource, kNow).value();
  const std::string data(json::string_at(secret, {"data", "resources"}));
  for (std::size_t i = 0; i < data.size(); ++i) {
    std::string flipped = data;
    flipped[i] = flipped[i] == 'A' ? 'B' : 'A';
    json::Value broken = secret;
    json::set_at(broken, {"data", "resources"}, json::Value(flipped));
    const Result<UnpackedRevision> unpacked = unpack(broken);
    // gzip has bytes that do not change the text: the time, the operating system.
    if (unpacked) EXPECT_TRUE(same_resources(unpacked->stages, kStages)) << i;
  }
}

TEST(Unpack, SaysHowLargeTheTextIsAndTakesNoLargerOne) {
  const json::Value secret = secret_of(kRelease, "default", kStages, kSource, kNow).value();
  const std::uint64_t bytes = unpack(secret).value().bytes;

  EXPECT_TRUE(unpack(secret, bytes));
  EXPECT_EQ(unpack(secret, bytes - 1).error().kind(), ErrorKind::LimitExceeded);
}

TEST(Unpack, IsNotABomb) {
  // 64 MiB of blanks are 64 KiB of gzip: too large to decompress, small enough for a Secret.
  Stages stages = kStages;
  json::set_at(stages[0][0], {"data", "blanks"},
               json::Value(std::string(limits::kRevisionBytesMax + 1, ' ')));
  const json::Value secret = secret_of(kRelease, "default", stages, kSource, kNow).value();

  const Result<UnpackedRevision> read = unpack(secret);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::LimitExceeded);
}

// Short values take many times as much memory as text.
TEST(Unpack, RefusesATextThatTakesMuchMemory) {
  std::string text = R"([[{"kind":"A","metadata":{"name":"a"},"x":[[])";
  for (int count = 1; count < 780'000; ++count)
    text += ",[]";
  text += "]}]]";
  json::Value secret = json::Object();
  json::set_at(secret, {"data", "resources"}, json::Value(base64_encode(text)));

  const Result<UnpackedRevision> read = unpack(secret);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(read.error().message(), HasSubstr("of memory"));
}

TEST(RevisionSecret, IsNotMadeOfWhatCouldNotBeReadBack) {
  Stages stages = kStages;
  json::set_at(stages[0][0], {"x"}, json::Array(1'500'000, json::Value(1)));

  const Result<json::Value> secret = secret_of(kRelease, "default", stages, kSource, kNow);

  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(secret.error().message(), HasSubstr("of memory"));
}

TEST(RevisionOf, ReadsWhatYokeWrites) {
  const Result<Revision> read = revision_of(yaml(R"(
metadata:
  name: yoke.0123456789ab
  namespace: apps
  labels: {internal.yoke/kind: revision, internal.yoke/release: plain-name}
  annotations:
    internal.yoke/created-at: '2026-04-08T14:00:00.5+02:00'
    internal.yoke/active-at: '2026-04-08T12:00:01Z'
    internal.yoke/resources: '12'
)"));

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->release, "plain-name");
  EXPECT_EQ(read->created_at, parse_rfc3339("2026-04-08T12:00:00.5Z").value());
  EXPECT_EQ(read->resource_count, 12U);
}

TEST(RevisionOf, RefusesOtherSecrets) {
  EXPECT_FALSE(revision_of(yaml("{metadata: {name: a}}")));
  EXPECT_FALSE(revision_of(yaml("{metadata: {name: a, labels: {internal.yoke/kind: lock}}}")));
  const Result<Revision> read = revision_of(
      yaml("{metadata: {name: yoke.1, labels: {internal.yoke/kind: revision}, annotations: "
           "{internal.yoke/created-at: yesterday}}}"));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), StartsWith("revision yoke.1: internal.yoke/created-at: "));
}

TEST(HistorySelector, IsTheHashAndOlderThePlainName) {
  EXPECT_EQ(
      history_selector(kRelease),
      "internal.yoke/kind=revision,internal.yoke/release=2e6f8249b3bc6e3883bffabd488c9f0b13db8bdd");
  EXPECT_EQ(deprecated_history_selector(kRelease),
            "internal.yoke/kind=revision,internal.yoke/release=examples.com.App.default.web");
  EXPECT_EQ(deprecated_history_selector(std::string(64, 'a')), "");
  EXPECT_EQ(deprecated_history_selector("a/b"), "");
  EXPECT_EQ(deprecated_history_selector(""), "");
}

TEST(MigrationPatch, MovesTheNameToItsAnnotation) {
  const std::optional<json::Value> patch = migration_patch(
      yaml("{metadata: {labels: {internal.yoke/release: examples.com.App.default.web}}}"),
      kRelease);

  ASSERT_TRUE(patch);
  EXPECT_TRUE(json::equal(
      *patch,
      yaml("{metadata: {labels: {internal.yoke/release: 2e6f8249b3bc6e3883bffabd488c9f0b13db8bdd}, "
           "annotations: {internal.yoke/release-name: "
           "examples.com.App.default.web}}}")));
  EXPECT_EQ(migration_patch(secret_of(kRelease, "default", {}, kSource, kNow).value(), kRelease),
            std::nullopt);
}

TEST(History, ActiveIsTheOneActivatedLast) {
  EXPECT_EQ(history({}).active(), nullptr);
  EXPECT_EQ(history({revision("a", 1)}).active(), nullptr);
  // b was activated, then a again, as `yoke descent` does.
  EXPECT_EQ(history({revision("a", 1, 9), revision("b", 2, 5)}).active()->secret, "a");
  EXPECT_EQ(history({revision("a", 1, 1), revision("b", 2, 5), revision("c", 3)}).active()->secret,
            "b");
}

TEST(History, IsInOrderOfCreation) {
  const History value = history({revision("c", 3, 3), revision("a", 1, 1), revision("b", 2, 2)});

  ASSERT_EQ(value.revisions.size(), 3U);
  EXPECT_EQ(value.revisions[0].secret, "a");
  EXPECT_EQ(value.revisions[2].secret, "c");
}

TEST(History, KnowsInterruptedRevisions) {
  EXPECT_THAT(names(history({revision("a", 1), revision("b", 2)}).interrupted()),
              ElementsAre("a", "b"));
  EXPECT_THAT(
      names(history({revision("a", 1), revision("b", 2, 2), revision("c", 3)}).interrupted()),
      ElementsAre("c"));
}

TEST(History, IsCappedOldestActivationFirstAndNeverTheActiveOne) {
  const History value =
      history({revision("a", 1, 9), revision("b", 2, 2), revision("c", 3, 3), revision("d", 4, 4)});

  EXPECT_THAT(value.beyond(std::nullopt), IsEmpty());
  EXPECT_THAT(value.beyond(4), IsEmpty());
  EXPECT_THAT(value.beyond(2), ElementsAre("c", "b"));
  EXPECT_THAT(value.beyond(1), ElementsAre("d", "c", "b"));
  EXPECT_THAT(value.beyond(0), Not(testing::Contains("a")));
}

TEST(History, CapsNoRevisionThatIsBeingApplied) {
  const History value =
      history({revision("never", 1), revision("a", 2, 2), revision("applying", 3)});

  EXPECT_THAT(value.beyond(1), ElementsAre("never"));
}

TEST(CheckPinned, RefusesAnotherModuleUnderTheSameName) {
  Revision before = revision("a", 1, 1);
  before.source = {.url = "https://domain.io/module.wasm", .checksum = "old"};
  const History value = history({before});

  EXPECT_TRUE(check_pinned(value, before.source));
  EXPECT_TRUE(check_pinned(value, {.url = "https://other/", .checksum = "new"}));
  const Result<> pinned = check_pinned(value, {.url = before.source.url, .checksum = "new"});
  ASSERT_FALSE(pinned);
  EXPECT_EQ(pinned.error().message(),
            "module \"https://domain.io/module.wasm\" has changed since last use: got \"new\" but "
            "wanted \"old\"");
}

TEST(SameResources, ComparesValuesAndStagesButNotTheOrderOfKeys) {
  const Stages one = stages_of("[[{apiVersion: v1, kind: A, metadata: {name: a}, x: 1, z: 2}]]");
  EXPECT_TRUE(same_resources(
      one, stages_of("[[{kind: A, apiVersion: v1, z: 2, x: 1.0, metadata: {name: a}}]]")));
  EXPECT_FALSE(same_resources(
      one, stages_of("[[{apiVersion: v1, kind: A, metadata: {name: a}, x: 1, z: 3}]]")));
  EXPECT_FALSE(same_resources(kStages, {kStages[0]}));
  EXPECT_FALSE(same_resources(kStages, {kStages[1], kStages[0]}));
  EXPECT_TRUE(same_resources({}, {}));
}

TEST(IsCovered, LooksAtWhichResourcesNotAtTheirContents) {
  const Stages one = stages_of("[[{apiVersion: v1, kind: A, metadata: {name: a}, x: 1}]]");
  const Stages other = stages_of(
      "[[{apiVersion: v1, kind: B, metadata: {name: b}}], "
      "[{apiVersion: v2, kind: A, metadata: {name: a}, x: 2}]]");

  EXPECT_TRUE(is_covered(one, other));
  EXPECT_FALSE(is_covered(other, one));
  EXPECT_FALSE(is_covered(
      stages_of("[[{apiVersion: v1, kind: A, metadata: {name: a, namespace: elsewhere}}]]"),
      other));
  EXPECT_TRUE(is_covered({}, one));
  EXPECT_FALSE(is_covered(one, {}));
}

TEST(MergeInventory, HasEverythingThatMayBeThere) {
  const Stages merged = merge_inventory({kStages[0]}, {{kStages[1]}, {kStages[0], kStages[1]}});

  EXPECT_EQ(merged.size(), 4U);
  EXPECT_EQ(resource_count(merged), 4U);
  EXPECT_EQ(merged[0], kStages[0]);
}

}  // namespace
}  // namespace hangar::airways
