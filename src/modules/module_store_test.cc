#include "modules/module_store.h"

#include "base/digest.h"
#include "base/result.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "io/file.h"
#include "io/test_full_disk.h"
#include "modules/internal/gzip.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {
namespace {

class ModuleStoreTest : public ::testing::Test {
 protected:
  ModuleStoreTest() {
    std::string name = (std::filesystem::temp_directory_path() / "module_store.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~ModuleStoreTest() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::filesystem::path directory() const { return root_ / "modules"; }
  [[nodiscard]] std::unique_ptr<ModuleStore> open(ModuleStore::Bounds bounds = {}) const {
    auto store = ModuleStore::open(directory(), bounds, {});
    EXPECT_TRUE(store.has_value()) << store.error().message();
    return *std::move(store);
  }
  [[nodiscard]] std::filesystem::path file_of(const std::string& sha256) const {
    return directory() / (sha256 + ".wasm.gz");
  }
  [[nodiscard]] std::size_t file_count() const {
    const std::filesystem::directory_iterator files(directory());
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

 private:
  std::filesystem::path root_;
};

std::string stored(ModuleStore& store, const std::string& bytes) {
  EXPECT_TRUE(store.write(sha256_hex(bytes), gzip(bytes)).has_value());
  return sha256_hex(bytes);
}

TEST_F(ModuleStoreTest, GivesBackWhatAnEarlierProcessStored) {
  const std::string digest = stored(*open(), "bytes");

  const auto store = open();

  EXPECT_TRUE(store->has(digest));
  EXPECT_EQ(store->read(digest).value(), "bytes");
}

TEST_F(ModuleStoreTest, HasNothingElse) {
  const auto store = open();

  EXPECT_FALSE(store->has(sha256_hex("bytes")));
  EXPECT_FALSE(store->has("../../etc/passwd"));
  EXPECT_EQ(store->read(sha256_hex("bytes")).error().kind(), ErrorKind::NotFound);
}

TEST_F(ModuleStoreTest, NoticesEveryDamagedByteAndRemovesTheFile) {
  const auto store = open();
  const std::string digest = sha256_hex("bytes");
  const std::string packed = gzip("bytes");
  constexpr std::size_t kHeaderBytes = 10;
  for (std::size_t at = kHeaderBytes; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    ASSERT_TRUE(io::write_file(file_of(digest), damaged).has_value());

    const Result<std::string> read = store->read(digest);

    ASSERT_FALSE(read.has_value()) << at;
    EXPECT_EQ(read.error().kind(), ErrorKind::Corrupt);
    EXPECT_FALSE(store->has(digest));
  }
}

TEST_F(ModuleStoreTest, NoticesAnotherModuleUnderTheName) {
  const auto store = open();
  const std::string digest = sha256_hex("bytes");
  ASSERT_TRUE(io::write_file(file_of(digest), gzip("other")).has_value());

  EXPECT_EQ(store->read(digest).error().kind(), ErrorKind::Corrupt);
}

TEST_F(ModuleStoreTest, IsPrivate) {
  const std::string digest = stored(*open(), "bytes");
  struct stat status{};

  ASSERT_EQ(::stat(directory().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat(file_of(digest).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(ModuleStoreTest, RefusesADirectoryThatOthersMayWriteTo) {
  std::filesystem::create_directory(directory());
  std::filesystem::permissions(directory(), std::filesystem::perms::all);

  const auto store = ModuleStore::open(directory());

  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().kind(), ErrorKind::Denied);
}

TEST_F(ModuleStoreTest, RemovesWhatWasNotUsedForLongest) {
  const std::uint64_t each = gzip("module 0").size();
  const auto store = open({.bytes = 2 * each});
  const std::string first = stored(*store, "module 0");
  const std::string second = stored(*store, "module 1");
  const timespec long_ago[] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  const timespec longer_ago[] = {{.tv_sec = 10, .tv_nsec = 0}, {.tv_sec = 10, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, file_of(first).c_str(), longer_ago, 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, file_of(second).c_str(), long_ago, 0), 0);
  ASSERT_TRUE(store->read(first).has_value());  // Now the second module is the older one.

  const std::string third = stored(*store, "module 2");

  EXPECT_TRUE(store->has(first));
  EXPECT_FALSE(store->has(second));
  EXPECT_TRUE(store->has(third));
}

TEST_F(ModuleStoreTest, KeepsTheNewestEvenIfItAloneIsTooLarge) {
  const auto store = open({.bytes = 1});

  const std::string digest = stored(*store, "bytes");

  EXPECT_TRUE(store->has(digest));
}

constexpr std::uint64_t kBlock = 4096;

budget::Tenant tenant(std::string name) {
  return budget::Tenant::of_namespace(std::move(name));
}

std::string stored_for(const std::string& namespace_name, ModuleStore& store,
                       const std::string& bytes) {
  EXPECT_TRUE(store.write(sha256_hex(bytes), gzip(bytes), tenant(namespace_name)).has_value());
  return sha256_hex(bytes);
}

TEST_F(ModuleStoreTest, ANamespaceBeyondItsLimitLosesItsOwnModulesAndOnlyThose) {
  const auto store = open();
  budget::CacheCharges charges({.namespace_bytes_max = 2 * kBlock});
  store->charge_to(charges);
  const std::string others = stored_for("victim", *store, "module 0");
  const std::string shared = stored_for("greedy", *store, "module 1");
  ASSERT_TRUE(store->charge(shared, tenant("victim")).has_value());
  const std::string first = stored_for("greedy", *store, "module 2");
  const std::string second = stored_for("greedy", *store, "module 3");
  ASSERT_TRUE(store->charge(first, tenant("greedy")).has_value());

  const std::string third = stored_for("greedy", *store, "module 4");

  EXPECT_FALSE(store->has(second));
  for (const std::string& digest : {others, shared, first, third})
    EXPECT_TRUE(store->has(digest));
  EXPECT_EQ(charges.charged_bytes(tenant("greedy")), 2 * kBlock);
}

TEST_F(ModuleStoreTest, AModuleThatIsMoreThanItsNamespaceMayHaveIsNotStored) {
  const auto store = open();
  budget::CacheCharges charges;
  charges.limit_tenants(
      {.namespaces = {{"small", {.bytes_max = kBlock - 1, .set_by = "TenantPolicy a"}}}});
  store->charge_to(charges);
  const std::string digest = sha256_hex("bytes");

  const Result<> refused = store->write(digest, gzip("bytes"), tenant("small"));

  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(budget::is_too_little_disk(refused.error()));
  EXPECT_NE(refused.error().message().find("TenantPolicy a"), std::string::npos);
  EXPECT_FALSE(store->has(digest));
  EXPECT_EQ(stored_for("other", *store, "bytes"), digest);
  EXPECT_FALSE(store->charge(digest, tenant("small")).has_value());
  EXPECT_FALSE(store->accept(digest, "bytes", tenant("small")).has_value());
  EXPECT_TRUE(store->has(digest)) << "another namespace's module stays";
}

TEST_F(ModuleStoreTest, ChargesTheRequestersOfItsIndexAfterARestart) {
  {
    const auto store = open();
    ASSERT_TRUE(store->remember("a ref-1", {.sha256 = stored(*store, "module 1")}).has_value());
    ASSERT_TRUE(store->remember("a ref-2", {.sha256 = stored(*store, "module 2")}).has_value());
    ASSERT_TRUE(store->remember("a again", {.sha256 = stored(*store, "module 2")}).has_value());
    ASSERT_TRUE(store->remember("* ref-2", {.sha256 = sha256_hex("module 2")}).has_value());
    ASSERT_TRUE(store->remember("b gone", {.sha256 = sha256_hex("gone")}).has_value());
  }
  budget::CacheCharges charges;
  const auto store = open();

  store->charge_to(charges);

  EXPECT_EQ(charges.charged_bytes(tenant("a")), 2 * kBlock);
  EXPECT_EQ(charges.charged_bytes(tenant("")), kBlock);
  EXPECT_EQ(charges.charged_bytes(tenant("b")), 0U);
}

TEST_F(ModuleStoreTest, TheNamespaceWithTheMostMakesRoomForAll) {
  const auto store = open({.bytes = 3 * gzip("module 0").size()});
  budget::CacheCharges charges;
  store->charge_to(charges);
  const std::string quiet = stored_for("quiet", *store, "module 0");
  const std::string first = stored_for("greedy", *store, "module 1");
  const std::string second = stored_for("greedy", *store, "module 2");

  const std::string third = stored_for("greedy", *store, "module 3");

  EXPECT_TRUE(store->has(quiet)) << "although it was not used for longest";
  EXPECT_FALSE(store->has(first));
  EXPECT_TRUE(store->has(second));
  EXPECT_TRUE(store->has(third));
}

TEST_F(ModuleStoreTest, AnEntryTooManyIsOneOfTheRequesterWithTheMost) {
  const auto store = open({.references = 3});
  const auto remember = [&store](const std::string& key) {
    ASSERT_TRUE(store->remember(key, {.sha256 = sha256_hex("bytes")}).has_value());
  };
  remember("quiet only");
  remember("greedy first");
  remember("greedy second");

  remember("greedy third");

  EXPECT_TRUE(store->resolution("quiet only").has_value());
  EXPECT_FALSE(store->resolution("greedy first").has_value());
  EXPECT_TRUE(store->resolution("greedy second").has_value());
  EXPECT_TRUE(store->resolution("greedy third").has_value());
}

TEST_F(ModuleStoreTest, RemembersReferencesAcrossProcesses) {
  const Resolution resolution{.sha256 = sha256_hex("bytes"),
                              .size_bytes = 5,
                              .resolved = "oci://r.example/f@sha256:x",
                              .etag = "\"e\"",
                              .last_modified = "Sat, 21 Nov 2026 07:00:00 GMT",
                              .revision = "sha256:x"};
  ASSERT_TRUE(open()->remember("key", resolution).has_value());

  const auto store = open();

  EXPECT_EQ(store->resolution("key"), resolution);
  EXPECT_EQ(store->resolution("other"), std::nullopt);
}

TEST_F(ModuleStoreTest, RemembersTextsOfAnyCharactersAndTheLatestMeaning) {
  const std::string odd("\0\x7f\n\"\xc3\xa9", 6);
  const std::string key = "key" + odd;
  const Resolution resolution{.sha256 = sha256_hex("bytes"),
                              .size_bytes = std::uint64_t{1} << 40U,
                              .resolved = std::string(100'000, 'x'),
                              .etag = odd};
  auto store = open();
  ASSERT_TRUE(store->remember(key, {.sha256 = sha256_hex("before")}).has_value());
  ASSERT_TRUE(store->remember("key", {.sha256 = sha256_hex("other")}).has_value());

  ASSERT_TRUE(store->remember(key, resolution).has_value());

  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(store->resolution(key), resolution);
    EXPECT_EQ(store->resolution("key")->sha256, sha256_hex("other"));
    store = open();
  }
}

TEST_F(ModuleStoreTest, RefusesWhatWouldMakeItsIndexUnreadable) {
  ASSERT_TRUE(open()->remember("key", {.sha256 = sha256_hex("bytes")}).has_value());

  const Result<> odd = open()->remember("odd", {.sha256 = sha256_hex("bytes"), .etag = "\xe9"});

  EXPECT_EQ(odd.error().kind(), ErrorKind::InvalidInput);
  EXPECT_EQ(open()->resolution("odd"), std::nullopt);
  EXPECT_TRUE(open()->resolution("key").has_value());
}

TEST_F(ModuleStoreTest, ReadsNoMoreOfAnIndexThanItMayRememberAndEachKeyOnce) {
  const std::string first = sha256_hex("first");
  const std::string second = sha256_hex("second");
  std::filesystem::create_directory(directory());
  std::filesystem::permissions(directory(), std::filesystem::perms::owner_all);
  const std::string text = R"({"version":2,"references":[{"key":"a","sha256":")" + first +
                           R"("},{"key":"a","sha256":")" + second + R"("},{"key":"b","sha256":")" +
                           second + R"("},{"key":"c","sha256":")" + second + R"("}]})";
  ASSERT_TRUE(io::write_file(directory() / "index.json", text).has_value());

  const auto store = open({.references = 2});

  EXPECT_EQ(store->resolution("a")->sha256, first);
  EXPECT_EQ(store->resolution("b")->sha256, second);
  EXPECT_EQ(store->resolution("c"), std::nullopt);
}

TEST_F(ModuleStoreTest, ForgetsTheReferenceNotUsedForLongest) {
  const Resolution resolution{.sha256 = sha256_hex("bytes")};
  auto store = open({.references = 2});
  ASSERT_TRUE(store->remember("a", resolution).has_value());
  ASSERT_TRUE(store->remember("b", resolution).has_value());
  ASSERT_TRUE(store->resolution("a").has_value());

  ASSERT_TRUE(store->remember("c", resolution).has_value());

  EXPECT_FALSE(store->resolution("b").has_value());
  store = open({.references = 2});
  EXPECT_TRUE(store->resolution("a").has_value());
  EXPECT_TRUE(store->resolution("c").has_value());
}

TEST_F(ModuleStoreTest, TellsWhoProvedWhatApartAcrossProcesses) {
  const std::string digest = sha256_hex("bytes");
  ASSERT_TRUE(open()->remember(proof_key("team", "reference"), {.sha256 = digest}).has_value());

  const auto store = open();

  EXPECT_EQ(store->resolution(proof_key("team", "reference"))->sha256, digest);
  for (const std::string_view other : {"other", "tea", "team2", "", "*"}) {
    EXPECT_EQ(store->resolution(proof_key(other, "reference")), std::nullopt) << other;
  }
  EXPECT_EQ(store->hint("reference")->sha256, digest) << "for its source to confirm";
  EXPECT_EQ(store->hint("erence"), std::nullopt);
}

TEST_F(ModuleStoreTest, AcceptsWhatItIsToldAndNothingElseInItsPlace) {
  const std::string script = "f();";
  const std::string digest = sha256_hex(script);
  const auto store = open();
  EXPECT_EQ(store->accept(digest, gzip("g();")).error().kind(), ErrorKind::Corrupt);
  EXPECT_FALSE(store->has(digest));
  ASSERT_TRUE(store->accept(digest, gzip(script)).has_value());

  EXPECT_EQ(store->accept(digest, "g();").error().kind(), ErrorKind::Corrupt);
  EXPECT_EQ(store->accept(digest, "").error().kind(), ErrorKind::Corrupt);

  EXPECT_EQ(store->read(digest).value(), script) << "others go on with it";
}

TEST_F(ModuleStoreTest, RemembersHowAndWhenAModuleWasProven) {
  const Resolution resolution{
      .sha256 = sha256_hex("bytes"), .credential = "identity", .proven_at = 1'700'000'000};
  ASSERT_TRUE(open()->remember("key", resolution).has_value());

  EXPECT_EQ(open()->resolution("key"), resolution);
}

// Each check confirms the entry again: that must not write the index each time.
TEST_F(ModuleStoreTest, ALaterTimeAloneIsNotWrittenToDisk) {
  const auto store = open();
  ASSERT_TRUE(store->remember("key", {.sha256 = sha256_hex("bytes"), .proven_at = 1}).has_value());
  ASSERT_TRUE(store->remember("key", {.sha256 = sha256_hex("bytes"), .proven_at = 2}).has_value());

  EXPECT_EQ(store->resolution("key")->proven_at, 2U);
  EXPECT_EQ(open()->resolution("key")->proven_at, 1U) << "the source is asked once more";
  ASSERT_TRUE(
      store
          ->remember("key",
                     {.sha256 = sha256_hex("bytes"), .credential = "another", .proven_at = 3})
          .has_value());
  EXPECT_EQ(open()->resolution("key")->proven_at, 3U);
}

TEST_F(ModuleStoreTest, ForgetsOnDiskToo) {
  const auto store = open();
  for (const std::string key : {"a", "b"})
    ASSERT_TRUE(store->remember(key, {.sha256 = sha256_hex("bytes")}).has_value());

  const auto is_a = [](std::string_view key, const Resolution& /*any*/) { return key == "a"; };
  EXPECT_TRUE(store->forget(is_a).value());
  EXPECT_FALSE(store->forget(is_a).value());

  const auto reopened = open();
  EXPECT_EQ(reopened->resolution("a"), std::nullopt);
  EXPECT_TRUE(reopened->resolution("b"));
}

TEST_F(ModuleStoreTest, StartsWithoutAnIndexThatItCannotRead) {
  for (const std::string_view text :
       {"", "{", "[]", R"({"version":1,"references":[{"key":"key"}]})",
        R"({"version":2,"references":[{"key":"key","sha256":"../x"}]})",
        R"({"version":3,"references":{"key":{"sha256":"of a later hangar"}}})",
        R"({"version":2,"references":7})"}) {
    ASSERT_TRUE(open()->remember("key", {.sha256 = sha256_hex("bytes")}).has_value());
    ASSERT_TRUE(io::write_file(directory() / "index.json", text).has_value());

    EXPECT_FALSE(open()->resolution("key").has_value()) << text;
  }
}

// Each file may have lost its last data, or contain zeros in their place.
TEST_F(ModuleStoreTest, ComesBackOrIsMadeAnewAfterPowerWasLostWhileItWrote) {
  const std::string bytes(10'000, 'x');
  const std::string digest = stored(*open(), bytes);
  ASSERT_TRUE(open()->remember("key", {.sha256 = digest}).has_value());
  for (const std::filesystem::path& file : {file_of(digest), directory() / "index.json"}) {
    const std::string whole = io::read_file(file, 1 << 20).value();
    for (const std::size_t written : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
      for (const bool has_zeros : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << file << " " << written << (has_zeros ? " and zeros" : ""));
        std::filesystem::resize_file(file, written);
        if (has_zeros) std::filesystem::resize_file(file, whole.size());

        const auto store = open();
        const Result<std::string> read = store->read(digest);
        if (read) EXPECT_EQ(*read, bytes);
        const std::optional<Resolution> resolution = store->resolution("key");
        if (resolution) EXPECT_EQ(resolution->sha256, digest);

        EXPECT_EQ(stored(*store, bytes), digest);
        ASSERT_TRUE(store->remember("key", {.sha256 = digest}).has_value());
        EXPECT_EQ(open()->read(digest).value(), bytes);
        EXPECT_EQ(open()->resolution("key")->sha256, digest);
        ASSERT_TRUE(io::write_file(file, whole).has_value());
      }
    }
  }
}

TEST_F(ModuleStoreTest, KeepsWhatItHasWhenTheDiskTakesNoMoreAndGoesOnLater) {
  const auto store = open();
  const std::string kept = stored(*store, "kept");
  ASSERT_TRUE(store->remember("kept", {.sha256 = kept}).has_value());
  const std::string other = sha256_hex("other");
  {
    const io::NoRoomForFiles full(8);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const Result<> refused = store->write(other, gzip("other"));
      ASSERT_FALSE(refused.has_value());
      EXPECT_EQ(refused.error().kind(), ErrorKind::Unavailable) << "it may be tried again";
      EXPECT_THAT(refused.error().message(), testing::HasSubstr(file_of(other).string()));
    }
    EXPECT_FALSE(store->remember("other", {.sha256 = other}).has_value());
    EXPECT_FALSE(store->has(other));
    EXPECT_EQ(store->read(kept).value(), "kept");
  }
  EXPECT_EQ(file_count(), 2U) << "nothing is left of what was not written";
  EXPECT_EQ(open()->resolution("kept")->sha256, kept);

  EXPECT_EQ(stored(*store, "other"), other);
  ASSERT_TRUE(store->remember("other", {.sha256 = other}).has_value());

  EXPECT_EQ(open()->read(other).value(), "other");
  EXPECT_EQ(open()->resolution("other")->sha256, other) << "although it was known already";
}

TEST_F(ModuleStoreTest, MakesItsDirectoryAgainWhenSomebodyHasRemovedIt) {
  const auto store = open();
  const std::string gone = stored(*store, "gone");
  ASSERT_TRUE(store->remember("gone", {.sha256 = gone}).has_value());
  std::filesystem::remove_all(directory());

  EXPECT_EQ(store->read(gone).error().kind(), ErrorKind::NotFound) << "it is fetched again";
  EXPECT_EQ(stored(*store, "gone"), gone);
  std::filesystem::remove_all(directory());
  ASSERT_TRUE(store->remember("other", {.sha256 = gone}).has_value());

  EXPECT_EQ(open()->resolution("other")->sha256, gone);
  EXPECT_EQ(open()->resolution("gone")->sha256, gone);
}

TEST_F(ModuleStoreTest, ClearsAwayOnlyWhatAnInterruptedWriteLeft) {
  const std::string digest = stored(*open(), "bytes");
  const std::filesystem::path left = file_of(digest).string() + ".aB3xYz";
  const std::filesystem::path others = directory() / "notes.aB3xYz";
  const std::filesystem::path being_written = file_of(digest).string() + ".cD4wVu";
  const auto two_hours_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const std::filesystem::path& file : {left, others}) {
    ASSERT_TRUE(io::write_file(file, "half").has_value());
    std::filesystem::last_write_time(file, two_hours_ago);
  }
  ASSERT_TRUE(io::write_file(being_written, "another process's").has_value());

  const auto store = open();

  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(others));
  EXPECT_TRUE(std::filesystem::exists(being_written));
  EXPECT_TRUE(store->has(digest));
}

}  // namespace
}  // namespace hangar::modules
