#include "wasm/code_cache.h"

#include "base/result.h"
#include "budget/accounts.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/all.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/test_full_disk.h"
#include "wasm/compiler_process.h"
#include "wasm/digest.h"
#include "wasm/internal/code_files.h"
#include "wasm/limits.h"
#include "wasm/module.h"
#include "wasm/prebuilt_code.h"
#include "wasm/snapshot/private_file.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::wasm {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

MATCHER_P(NameEnds, end, "") {
  return arg.filename().string().ends_with(end);
}

class CodeCacheTest : public testing::Test {
 public:
  using Loaded = Result<std::shared_ptr<const Module>>;

  std::unique_ptr<CodeCache> make_cache(CodeCache::Options options = {}) {
    options.directory = directory_.path() / "code";
    if (options.compile_program.empty()) options.compile_program = HANGAR_COMPILE_PROGRAM;
    auto cache = std::make_unique<CodeCache>(rig_.engine(), options);
    EXPECT_TRUE(cache->open().has_value());
    return cache;
  }

  Loaded load(CodeCache& cache, std::shared_ptr<const std::string> bytes,
              std::stop_token stop = {}) {
    return rig_.await(cache.load(Digest::of(*bytes), bytes, std::move(stop)));
  }

  CodeCache::Options sealed(std::string key = "a key, of 32 bytes or even more ") {
    return {.seal = std::make_shared<const CodeCache::Seal>(CodeCache::Seal{
                .key = std::move(key), .private_directory = directory_.path() / "private"})};
  }

  std::vector<fs::path> private_files() {
    std::vector<fs::path> paths;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_.path() / "private"))
      paths.push_back(entry.path());
    return paths;
  }

  std::vector<fs::path> entries() {
    std::vector<fs::path> paths;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_.path() / "code"))
      paths.push_back(entry.path());
    return paths;
  }

 protected:
  GuestRig rig_;
  TemporaryDirectory directory_;
  const std::shared_ptr<const std::string> guest_ = GuestRig::bytes_of("exit_3");
  const std::shared_ptr<const std::string> other_guest_ = GuestRig::bytes_of("exit_0");
};

TEST_F(CodeCacheTest, CompilesOnceAndLoadsWithoutBytesAfterwards) {
  const auto cache = make_cache();
  const Digest digest = Digest::of(*guest_);
  EXPECT_FALSE(cache->has(digest));

  ASSERT_TRUE(load(*cache, guest_).has_value());

  EXPECT_TRUE(cache->has(digest));
  const auto other = make_cache();
  EXPECT_TRUE(other->has(digest));
  const Loaded again = rig_.await(other->load(digest, nullptr, {}));
  ASSERT_TRUE(again.has_value()) << again.error().message();
  EXPECT_EQ(cache->compiled_count(), 1U);
  EXPECT_EQ(other->compiled_count(), 0U);
  EXPECT_THAT(entries(), SizeIs(1));
}

TEST_F(CodeCacheTest, OneDigestIsOneObjectAsLongAsItIsHeld) {
  const auto cache = make_cache();
  auto first = *load(*cache, guest_);
  const auto second = *load(*cache, guest_);
  EXPECT_EQ(first, second);
}

TEST_F(CodeCacheTest, ConcurrentLoadsOfOneModuleShareTheWork) {
  const auto cache = make_cache();
  std::vector<io::Task<Loaded>> tasks;
  for (int index = 0; index < 8; ++index)
    tasks.push_back(cache->load(Digest::of(*guest_), guest_, {}));

  const std::vector<Loaded> loaded = rig_.await(io::all(rig_.loop(), std::move(tasks)));

  for (const Loaded& each : loaded) {
    ASSERT_TRUE(each.has_value());
    EXPECT_EQ(*each, *loaded[0]);
  }
  EXPECT_EQ(cache->compiled_count(), 1U);
}

TEST_F(CodeCacheTest, WithoutBytesAndEntryItIsNotFound) {
  const auto cache = make_cache();
  const Loaded loaded = rig_.await(cache->load(Digest::of(*guest_), nullptr, {}));
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::NotFound);
}

TEST_F(CodeCacheTest, RefusesBytesOfAnotherDigest) {
  const auto cache = make_cache();
  const Loaded loaded = rig_.await(cache->load(Digest::of("something else"), guest_, {}));
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::InvalidInput);
  EXPECT_THAT(entries(), SizeIs(0));
}

// Code of one module, in a file.
class CodeInFile final : public PrebuiltCode {
 public:
  CodeInFile(Digest module, fs::path file) : module_(module), file_(std::move(file)) {}

  [[nodiscard]] Result<std::string> copy_to(const fs::path& output, const Digest& module,
                                            std::uint64_t bytes_max) const override {
    if (module != module_) return fail(ErrorKind::NotFound, "there is none");
    EXPECT_LE(fs::file_size(file_), bytes_max);
    fs::copy_file(file_, output);
    ++copies_;
    return builder;
  }
  [[nodiscard]] bool trusts(std::string_view name) const override { return name == builder; }
  [[nodiscard]] int copies() const { return copies_; }

  std::string builder = "b1";

 private:
  mutable std::atomic<int> copies_ = 0;
  const Digest module_;
  const fs::path file_;
};

TEST_F(CodeCacheTest, TakesPrebuiltCodeInPlaceOfTheCompiler) {
  const CodeInFile code(Digest::of(*guest_), directory_.path() / "prebuilt");
  {
    ASSERT_TRUE(load(*make_cache(), guest_).has_value());
  }
  fs::rename(entries().at(0), directory_.path() / "prebuilt");
  const auto cache = make_cache({.prebuilt = &code});

  ASSERT_TRUE(load(*cache, guest_).has_value());
  EXPECT_EQ(cache->compiled_count(), 0U);
  EXPECT_THAT(entries(), SizeIs(1)) << "the next host finds it";
  ASSERT_TRUE(load(*cache, other_guest_).has_value()) << "and compiles the others";
  EXPECT_EQ(cache->compiled_count(), 1U);
}

TEST_F(CodeCacheTest, WithoutACompilerPrebuiltCodeIsAllThereIs) {
  const CodeInFile code(Digest::of(*guest_), directory_.path() / "prebuilt");
  {
    ASSERT_TRUE(load(*make_cache(), guest_).has_value());
  }
  fs::rename(entries().at(0), directory_.path() / "prebuilt");
  CodeCache cache(rig_.engine(), {.directory = directory_.path() / "code", .prebuilt = &code});
  ASSERT_TRUE(cache.open());

  EXPECT_TRUE(load(cache, guest_).has_value());
  const Loaded other = load(cache, other_guest_);

  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().kind(), ErrorKind::Unavailable);
  EXPECT_EQ(other.error().message(), "this host has no compiler: there is none");
}

class CodeOfABuilderTest : public CodeCacheTest {
 protected:
  // The cache then has code of the builder "b1".
  void fill(CodeCache::Options options = {}) {
    {
      ASSERT_TRUE(load(*make_cache(), guest_).has_value());
    }
    fs::rename(entries().at(0), directory_.path() / "prebuilt");
    options.prebuilt = &code_;
    ASSERT_TRUE(load(*make_cache(options), guest_).has_value());
    ASSERT_EQ(code_.copies(), 1);
    ASSERT_THAT(entries(), ElementsAre(NameEnds("-b1.cwasm")));
  }

  CodeInFile code_{Digest::of(*guest_), directory_.path() / "prebuilt"};
};

TEST_F(CodeOfABuilderTest, IsCachedWhileItsBuilderIsTrusted) {
  fill();
  const auto cache = make_cache({.prebuilt = &code_});

  EXPECT_TRUE(cache->has(Digest::of(*guest_)));
  ASSERT_TRUE(load(*cache, guest_).has_value());
  EXPECT_EQ(code_.copies(), 1) << "that was in the cache";
}

TEST_F(CodeOfABuilderTest, GoesWithTheTrust) {
  fill();
  const auto cache = make_cache();

  EXPECT_FALSE(cache->has(Digest::of(*guest_)));
  ASSERT_TRUE(load(*cache, guest_).has_value());
  EXPECT_EQ(cache->compiled_count(), 1U);
  EXPECT_THAT(entries(), ElementsAre(Not(NameEnds("-b1.cwasm"))));
}

TEST_F(CodeOfABuilderTest, IsAskedForAgainWhenTheTrustIsInAnother) {
  fill();
  code_.builder = "b2";
  CodeCache cache(rig_.engine(), {.directory = directory_.path() / "code", .prebuilt = &code_});
  ASSERT_TRUE(cache.open());

  ASSERT_TRUE(load(cache, guest_).has_value());
  EXPECT_EQ(code_.copies(), 2);
  EXPECT_THAT(entries(), ElementsAre(NameEnds("-b2.cwasm")));
}

// Who can write to a shared volume cannot make code of a builder look like the host's own.
TEST_F(CodeOfABuilderTest, StaysThatUnderAnotherName) {
  fill(sealed());
  const fs::path entry = entries().at(0);
  const std::string name = entry.filename().string();
  fs::rename(entry, entry.parent_path() / (name.substr(0, name.rfind('-')) + ".cwasm"));
  const auto cache = make_cache(sealed());

  ASSERT_TRUE(load(*cache, guest_).has_value());
  EXPECT_EQ(cache->compiled_count(), 1U);
}

// A builder may sign what another version of wasmtime has made.
TEST_F(CodeCacheTest, CompilesWhatPrebuiltCodeThatDoesNotLoadIsFor) {
  const CodeInFile code(Digest::of(*guest_), directory_.path() / "prebuilt");
  std::ofstream(directory_.path() / "prebuilt") << "of another engine";
  const auto cache = make_cache({.prebuilt = &code});

  const Loaded loaded = load(*cache, guest_);

  ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
  EXPECT_EQ(cache->compiled_count(), 1U);
  EXPECT_THAT(entries(), SizeIs(1));
}

TEST_F(CodeCacheTest, CodeForAnyMachineRunsHere) {
  io::make_private_directory(directory_.path()).value();
  PrivateFile input = PrivateFile::open(directory_.path() / "work").value();
  ASSERT_TRUE(input.write(0, std::as_bytes(std::span(*guest_))));
  const Result<> compiled =
      rig_.await(compile(rig_.loop(), rig_.engine().workers(), budget::unnamed_consumer(),
                         {.program = HANGAR_COMPILE_PROGRAM,
                          .input = std::move(input),
                          .output = directory_.path() / "prebuilt",
                          .memory_bytes = limits::kCompileMemoryBytesMax,
                          .is_for_any_machine = true,
                          .deadline = limits::kCompileMax},
                         {}));
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message();
  const CodeInFile code(Digest::of(*guest_), directory_.path() / "prebuilt");
  const auto cache = make_cache({.prebuilt = &code});

  EXPECT_TRUE(load(*cache, guest_).has_value());
  EXPECT_EQ(cache->compiled_count(), 0U);
}

TEST_F(CodeCacheTest, CorruptEntriesAreDeletedAndMadeAgain) {
  {
    ASSERT_TRUE(load(*make_cache(), guest_).has_value());
  }
  const fs::path entry = entries().at(0);
  const auto size = fs::file_size(entry);
  for (const std::uintmax_t at : {std::uintmax_t{0}, size / 2, size - 1}) {
    SCOPED_TRACE(at);
    {
      std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 1));
    }
    const auto cache = make_cache();
    const Loaded loaded = load(*cache, guest_);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
    EXPECT_EQ(cache->compiled_count(), 1U);
    EXPECT_EQ(fs::file_size(entry), size);
  }
}

// What a file system may have after a loss of power: a file without its last data, with zeros in
// their place, or with nothing, under the name that a rename has given it.
TEST_F(CodeCacheTest, IsMadeAnewAfterPowerWasLostWhileItWrote) {
  {
    ASSERT_TRUE(load(*make_cache(), guest_).has_value());
  }
  const fs::path entry = entries().at(0);
  const auto size = fs::file_size(entry);
  for (const std::uintmax_t written :
       {std::uintmax_t{0}, std::uintmax_t{4096}, size / 2, size - 1}) {
    for (const bool has_zeros : {false, true}) {
      // The last byte of the file is a zero anyway.
      if (has_zeros && written == size - 1) continue;
      SCOPED_TRACE(testing::Message() << written << (has_zeros ? " and zeros" : ""));
      fs::resize_file(entry, written);
      if (has_zeros) fs::resize_file(entry, size);
      const auto cache = make_cache();

      const Loaded loaded = load(*cache, guest_);

      ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
      EXPECT_EQ(cache->compiled_count(), 1U);
      EXPECT_THAT(entries(), testing::ElementsAre(entry)) << "nothing else is left";
      EXPECT_EQ(fs::file_size(entry), size);
    }
  }
}

TEST_F(CodeCacheTest, TruncatedEntriesWithoutBytesAreNotFoundAndGone) {
  {
    ASSERT_TRUE(load(*make_cache(), guest_).has_value());
  }
  fs::resize_file(entries().at(0), 100);

  const auto cache = make_cache();
  const Loaded loaded = rig_.await(cache->load(Digest::of(*guest_), nullptr, {}));

  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::NotFound);
  EXPECT_THAT(entries(), SizeIs(0));
}

TEST_F(CodeCacheTest, AFileWithARightChecksumThatIsNoNativeCodeIsCorrupt) {
  {
    ASSERT_TRUE(load(*make_cache(), guest_).has_value());
  }
  const fs::path entry = entries().at(0);
  const std::string name = entry.filename().string();
  const std::string text = "not native code";
  const std::string key = name.substr(0, name.rfind('-'));
  fs::remove(entry);
  std::ofstream(entry.parent_path() / (key + "-" + Digest::of(text).to_hex() + ".cwasm")) << text;

  const auto cache = make_cache();
  ASSERT_TRUE(load(*cache, guest_).has_value());

  EXPECT_EQ(cache->compiled_count(), 1U);
  EXPECT_EQ(entries(), std::vector<fs::path>{entry});
}

// Hosts of two versions share a directory, or the newer one was replaced by the older.
TEST_F(CodeCacheTest, CodeMadeByAnotherVersionIsMadeAgainAndLeftForIt) {
  {
    ASSERT_TRUE(load(*make_cache(), guest_).has_value());
  }
  const fs::path entry = entries().at(0);
  std::string name = entry.filename().string();
  const std::size_t made_by = name.find('-') + 1;
  name.replace(made_by, 16, std::string(16, name[made_by] == '0' ? '1' : '0'));
  const fs::path others = entry.parent_path() / name;
  fs::rename(entry, others);

  const auto cache = make_cache();
  EXPECT_FALSE(cache->has(Digest::of(*guest_)));
  ASSERT_TRUE(load(*cache, guest_).has_value());

  EXPECT_EQ(cache->compiled_count(), 1U);
  EXPECT_THAT(entries(), UnorderedElementsAre(entry, others));
}

// The name of an entry without its checksum.
std::string key_of(const fs::path& entry) {
  const std::string name = entry.filename().string();
  return name.substr(0, name.rfind('-') + 1);
}

int descriptor_of(const Module& module) {
  return module.file()->descriptor();
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Native code of another module, under this one's name and with a correct sha256: what a writer of
// the volume can do.
TEST_F(CodeCacheTest, WithASealCodeThatSomebodyElsePutThereIsRefusedAndMadeAgain) {
  {
    ASSERT_TRUE(load(*make_cache(), other_guest_).has_value());
  }
  const std::string evil = bytes_of(entries().at(0));
  fs::remove(entries().at(0));
  {
    ASSERT_TRUE(load(*make_cache(sealed()), guest_).has_value());
  }
  const fs::path entry = entries().at(0);
  const fs::path forged =
      entry.parent_path() / (key_of(entry) + Digest::of(evil).to_hex() + ".cwasm");
  fs::remove(entry);
  std::ofstream(forged, std::ios::binary) << evil;

  const auto cache = make_cache(sealed());
  ASSERT_TRUE(load(*cache, guest_).has_value());

  EXPECT_EQ(cache->compiled_count(), 1U);
  EXPECT_FALSE(fs::exists(forged));
  EXPECT_EQ(entries(), std::vector<fs::path>{entry});
}

TEST_F(CodeCacheTest, ASealIsOfOneModule) {
  {
    const auto cache = make_cache(sealed());
    ASSERT_TRUE(load(*cache, other_guest_).has_value());
  }
  const fs::path other = entries().at(0);
  {
    const auto cache = make_cache(sealed());
    ASSERT_TRUE(load(*cache, guest_).has_value());
  }
  const std::vector<fs::path> both = entries();
  const fs::path& entry = both[0] == other ? both[1] : both[0];
  // Signed code of the other module, under this module's key and with the signature that belongs to
  // the code.
  const std::string signature = other.filename().string().substr(key_of(other).size());
  fs::rename(other, other.parent_path() / (key_of(entry) + signature));
  fs::remove(entry);

  const auto cache = make_cache(sealed());
  ASSERT_TRUE(load(*cache, guest_).has_value());

  EXPECT_EQ(cache->compiled_count(), 1U);
  EXPECT_EQ(entries(), std::vector<fs::path>{entry});
}

TEST_F(CodeCacheTest, ASealIsOfOneKey) {
  {
    ASSERT_TRUE(load(*make_cache(sealed()), guest_).has_value());
  }
  {
    const auto same = make_cache(sealed());
    ASSERT_TRUE(load(*same, guest_).has_value());
    EXPECT_EQ(same->compiled_count(), 0U);
  }
  const auto other = make_cache(sealed("another key, of 32 bytes or more "));
  ASSERT_TRUE(load(*other, guest_).has_value());

  EXPECT_EQ(other->compiled_count(), 1U);
}

// Loaded code is mapped, so changing the file would change the code.
TEST_F(CodeCacheTest, WithASealWhatIsLoadedIsNotWhatLiesOnTheVolume) {
  const auto cache = make_cache(sealed());
  ASSERT_TRUE(load(*cache, guest_).has_value());
  const fs::path entry = entries().at(0);

  const Loaded loaded =
      rig_.await(cache->load(Digest::of(*guest_), guest_, {}, Module::Allocation::Sleepable));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message();

  EXPECT_NE(fs::read_symlink(fs::path("/proc/self/fd") / std::to_string(descriptor_of(**loaded))),
            entry);
  EXPECT_THAT(private_files(), SizeIs(0));
}

TEST_F(CodeCacheTest, WithASealAPipeInTheDirectoryHoldsNobodyUp) {
  {
    ASSERT_TRUE(load(*make_cache(sealed()), guest_).has_value());
  }
  const fs::path entry = entries().at(0);
  fs::remove(entry);
  ASSERT_EQ(::mkfifo(entry.c_str(), 0600), 0);

  const auto cache = make_cache(sealed());
  ASSERT_TRUE(load(*cache, guest_).has_value());

  EXPECT_EQ(cache->compiled_count(), 1U);
}

TEST_F(CodeCacheTest, InvalidModulesSayWhatIsWrong) {
  const auto cache = make_cache();
  struct Case {
    std::string bytes;
    std::string says;
  };
  using namespace std::string_literals;
  const std::vector<Case> cases = {
      {"not wasm at all", "does not start with"},
      {"\0asm\x0d\0\1\0"s, "is a component"},
      // A function without a body passes the header check, but the compiler refuses it.
      {"\0asm\1\0\0\0\1\4\1\x60\0\0\3\2\1\0"s,
       "invalid module: function section has non-zero count"},
  };
  for (const Case& each : cases) {
    const Loaded loaded = load(*cache, std::make_shared<const std::string>(each.bytes));
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().kind(), ErrorKind::InvalidInput);
    EXPECT_THAT(loaded.error().message(), HasSubstr(each.says));
  }
  EXPECT_THAT(entries(), SizeIs(0));
}

TEST_F(CodeCacheTest, AFailureOfOneLoaderIsNotTheOthers) {
  const auto cache = make_cache();
  std::vector<io::Task<Loaded>> tasks;
  tasks.push_back(cache->load(Digest::of(*guest_), nullptr, {}));
  tasks.push_back(cache->load(Digest::of(*guest_), guest_, {}));

  const std::vector<Loaded> loaded = rig_.await(io::all(rig_.loop(), std::move(tasks)));

  EXPECT_FALSE(loaded[0].has_value());
  EXPECT_TRUE(loaded[1].has_value());
}

TEST_F(CodeCacheTest, ACompilerThatHangsIsKilledAtItsDeadline) {
  // A program that reads no module and never exits.
  const fs::path program = directory_.path() / "hang";
  std::ofstream(program) << "#!/bin/sh\nwhile :; do :; done\n";
  fs::permissions(program, fs::perms::owner_all);
  const auto cache =
      make_cache({.compile_program = program, .compile_deadline = std::chrono::milliseconds(50)});

  const Loaded loaded = load(*cache, guest_);

  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(loaded.error().message(), HasSubstr("compiling exceeded the time limit of 50ms"));
  EXPECT_THAT(entries(), SizeIs(0));
}

TEST_F(CodeCacheTest, ACompilerThatUsedUpItsProcessorTimeIsTheModulesFault) {
  // Ends as hangar-compile does at the limit that it sets itself.
  const fs::path program = directory_.path() / "spin";
  std::ofstream(program) << "#!/bin/sh\nkill -XCPU $$\n";
  fs::permissions(program, fs::perms::owner_all);
  const auto cache = make_cache({.compile_program = program});

  const Loaded loaded = load(*cache, guest_);

  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(loaded.error().message(), HasSubstr("processor time"));
  EXPECT_THAT(entries(), SizeIs(0));
}

TEST_F(CodeCacheTest, StoppingKillsTheCompiler) {
  const fs::path program = directory_.path() / "hang";
  std::ofstream(program) << "#!/bin/sh\nwhile :; do :; done\n";
  fs::permissions(program, fs::perms::owner_all);
  const auto cache = make_cache({.compile_program = program});
  std::stop_source stop;
  const io::Loop::Timer timer =
      rig_.loop().after(std::chrono::milliseconds(50), [&stop] { stop.request_stop(); });

  const Loaded loaded = load(*cache, guest_, stop.get_token());

  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::Cancelled);
}

// A compiler that records the size of each module, and does not exit by itself.
class CompileQueueTest : public CodeCacheTest {
 protected:
  CompileQueueTest() {
    std::ofstream(program_) << "#!/bin/sh\n/usr/bin/stat -Lc %s /proc/self/fd/0 >> "
                            << begun_.string() << "\nwhile :; do /bin/sleep 1; done\n";
    fs::permissions(program_, fs::perms::owner_all);
  }

  // The guest with `more` bytes that have no meaning: another module.
  [[nodiscard]] std::shared_ptr<const std::string> padded(std::size_t more) const {
    std::string bytes = *guest_;
    std::size_t size = more;
    bytes += '\0';  // A custom section: size in LEB128, an empty name, the rest.
    for (std::size_t left = ++size; left > 0 || bytes.back() == '\0'; left >>= 7U) {
      bytes += static_cast<char>((left & 0x7fU) | (left > 0x7fU ? 0x80U : 0U));
      if (left <= 0x7fU) break;
    }
    bytes.append(size, '\0');
    return std::make_shared<const std::string>(std::move(bytes));
  }

  void begin(CodeCache& cache, const std::string& namespace_name, std::size_t more) {
    rig_.loop().spawn(load_later(cache, namespace_name, padded(more)));
  }

  // The sizes of the modules whose compilation has started, once there are `count`.
  std::vector<std::size_t> begun(std::size_t count) {
    return rig_.await(
        [](CompileQueueTest& self, std::size_t at_least) -> io::Task<std::vector<std::size_t>> {
          while (true) {
            std::vector<std::size_t> sizes;
            std::ifstream file(self.begun_);
            for (std::size_t size = 0; file >> size;)
              sizes.push_back(size);
            if (sizes.size() >= at_least) co_return sizes;
            const Result<> slept =
                co_await self.rig_.loop().sleep(std::chrono::milliseconds(5), std::stop_token());
            EXPECT_TRUE(slept.has_value());
          }
        }(*this, count));
  }

  void stop(CodeCache& cache) {
    EXPECT_TRUE(rig_.await([](CodeCache& stopped) -> io::Task<bool> {
      co_await stopped.stop();
      co_return true;
    }(cache)));
  }

  const fs::path program_ = directory_.path() / "compile";
  const fs::path begun_ = directory_.path() / "begun";
  std::vector<ErrorKind> refused_;

  io::Task<void> load_later(CodeCache& cache, std::string namespace_name,
                            std::shared_ptr<const std::string> bytes) {
    const Digest digest = Digest::of(*bytes);
    const Loaded loaded = co_await cache.load(
        digest, std::move(bytes), {}, Module::Allocation::Pooled,
        budget::Consumer{.tenant = budget::Tenant::of_namespace(std::move(namespace_name)),
                         .name = "operator/a"});
    if (!loaded) refused_.push_back(loaded.error().kind());
  }
};

TEST_F(CompileQueueTest, ASmallModuleDoesNotWaitForALargeOne) {
  const auto cache = make_cache({.compile_program = program_});
  begin(*cache, "large", kSmallModuleBytesMax);
  ASSERT_THAT(begun(1), SizeIs(1));

  begin(*cache, "small", 0);

  EXPECT_LT(begun(2).at(1), kSmallModuleBytesMax);
  stop(*cache);
}

TEST_F(CompileQueueTest, WhatWaitsForACompilerIsNotInMemory) {
  const auto cache = make_cache({.compile_program = program_});
  begin(*cache, "team", kSmallModuleBytesMax);
  ASSERT_THAT(begun(1), SizeIs(1));
  std::shared_ptr<const std::string> bytes = padded(kSmallModuleBytesMax + 1);
  const std::weak_ptr<const std::string> waiting = bytes;
  rig_.loop().spawn(load_later(*cache, "team", std::move(bytes)));

  // A worker releases them last, and notifies no one.
  rig_.await([](io::Loop& loop, const std::weak_ptr<const std::string>& bytes) -> io::Task<bool> {
    while (!bytes.expired())
      EXPECT_TRUE((co_await loop.sleep(std::chrono::milliseconds(5), std::stop_token())));
    co_return true;
  }(rig_.loop(), waiting));

  EXPECT_THAT(begun(1), SizeIs(1)) << "it waits for the one before it";
  stop(*cache);
}

TEST_F(CompileQueueTest, ANamespaceHasSoManyBytesInLine) {
  const auto cache = make_cache(
      {.compile_program = program_, .waiting_bytes_max = 2 * kSmallModuleBytesMax + 64 * 1024});
  begin(*cache, "greedy", kSmallModuleBytesMax);
  ASSERT_THAT(begun(1), SizeIs(1));
  begin(*cache, "greedy", kSmallModuleBytesMax + 1);
  begin(*cache, "greedy", kSmallModuleBytesMax + 2);
  begin(*cache, "team", 1);

  EXPECT_THAT(begun(2), SizeIs(2));
  EXPECT_EQ(refused_, std::vector(1, ErrorKind::LimitExceeded));
  stop(*cache);
}

TEST_F(CompileQueueTest, ANamespaceFindsACompilerHoweverManyModulesAnotherHas) {
  const auto cache = make_cache({.compile_program = program_});
  for (std::size_t index = 1; index <= 8; ++index)
    begin(*cache, "greedy", index);
  ASSERT_THAT(begun(1), SizeIs(1));

  begin(*cache, "team", 1000);

  EXPECT_GT(begun(2).at(1), guest_->size() + 1000);
  stop(*cache);
}

TEST_F(CompileQueueTest, AModuleThatTwoNamespacesWantWaitsInTheNameOfBoth) {
  const auto cache = make_cache({.compile_program = program_});
  begin(*cache, "greedy", 1);
  ASSERT_THAT(begun(1), SizeIs(1));
  for (std::size_t index = 2; index <= 8; ++index)
    begin(*cache, "greedy", index);

  begin(*cache, "team", 8);

  EXPECT_EQ(begun(2).at(1), padded(8)->size());
  stop(*cache);
}

TEST_F(CompileQueueTest, ALargeModuleWhoseTurnIsOverGivesWayToAnotherNamespace) {
  const auto cache = make_cache({.compile_program = program_,
                                 .turn_min = std::chrono::nanoseconds(0),
                                 .turn_per_mib = std::chrono::nanoseconds(0),
                                 .turn_step = std::chrono::milliseconds(1)});
  begin(*cache, "greedy", kSmallModuleBytesMax);
  ASSERT_THAT(begun(1), SizeIs(1));
  begin(*cache, "greedy", kSmallModuleBytesMax + 1);

  begin(*cache, "team", kSmallModuleBytesMax + 1000);

  EXPECT_GT(begun(2).at(1), guest_->size() + kSmallModuleBytesMax + 1000);
  EXPECT_EQ(refused_.at(0), ErrorKind::Unavailable) << "it is tried again";
  stop(*cache);
}

TEST_F(CompileQueueTest, ATurnThatIsOverEndsOnlyForANamespaceThatMayTakeItsPlace) {
  const auto cache = make_cache({.compile_program = program_,
                                 .turn_min = std::chrono::nanoseconds(0),
                                 .turn_per_mib = std::chrono::nanoseconds(0),
                                 .turn_step = std::chrono::milliseconds(1)});
  // Both have a small module that is compiled, and another one that waits.
  for (std::size_t index = 1; index <= 2; ++index) {
    begin(*cache, "a", index);
    begin(*cache, "b", 100 + index);
    ASSERT_THAT(begun(2), SizeIs(2));
  }
  begin(*cache, "large", kSmallModuleBytesMax);
  ASSERT_THAT(begun(3), SizeIs(3));

  begin(*cache, "large", kSmallModuleBytesMax + 1);
  rig_.await([](io::Loop& loop) -> io::Task<bool> {
    co_return (co_await loop.sleep(std::chrono::milliseconds(50), std::stop_token())).has_value();
  }(rig_.loop()));

  EXPECT_THAT(begun(3), SizeIs(3));
  EXPECT_THAT(refused_, SizeIs(0));
  stop(*cache);
}

TEST_F(CompileQueueTest, ATurnLastsAsLongAsItsModuleIsLarge) {
  const auto cache = make_cache({.compile_program = program_,
                                 .turn_min = std::chrono::nanoseconds(0),
                                 .turn_per_mib = std::chrono::hours(1),
                                 .turn_step = std::chrono::milliseconds(1)});
  begin(*cache, "greedy", kSmallModuleBytesMax);
  ASSERT_THAT(begun(1), SizeIs(1));

  begin(*cache, "team", kSmallModuleBytesMax + 1000);
  rig_.await([](io::Loop& loop) -> io::Task<bool> {
    co_return (co_await loop.sleep(std::chrono::milliseconds(50), std::stop_token())).has_value();
  }(rig_.loop()));

  EXPECT_THAT(begun(1), SizeIs(1));
  stop(*cache);
}

// Loads in progress, loads that wait for these, and loads that wait for a compiler.
TEST_F(CompileQueueTest, StoppingEndsEveryLoad) {
  auto cache = make_cache({.compile_program = program_});
  begin(*cache, "a", 1);
  begin(*cache, "b", 1);
  // If the other module of "a" came first, this one would be compiled in the turn of "b".
  ASSERT_THAT(begun(1), SizeIs(1));
  begin(*cache, "a", 2);

  stop(*cache);
  EXPECT_EQ(refused_, std::vector(3, ErrorKind::Cancelled));
  begin(*cache, "a", 3);
  stop(*cache);
  EXPECT_EQ(refused_, std::vector(4, ErrorKind::Cancelled));
  cache.reset();
}

// A cache without native code, on a host with this much memory for guests.
struct SmallHost {
  explicit SmallHost(std::uint64_t memory_bytes, CodeCache::Options options = {})
      : memory({.host_bytes_max = memory_bytes}), cache(rig.engine(), in(directory, options)) {
    EXPECT_TRUE(cache.open().has_value());
  }
  static CodeCache::Options in(const TemporaryDirectory& directory, CodeCache::Options options) {
    options.directory = directory.path();
    options.compile_program = HANGAR_COMPILE_PROGRAM;
    return options;
  }

  budget::Accounts memory;
  GuestRig rig{{.memory = &memory}};
  const TemporaryDirectory directory;
  CodeCache cache;
  const std::shared_ptr<const std::string> bytes = GuestRig::bytes_of("exit_3");
};

TEST(CompilerMemory, IsReservedWithTheGuestsAndGivenBack) {
  SmallHost host(64 * limits::kMiB);
  auto guests = host.memory.reserve(budget::unnamed_consumer(), 32 * limits::kMiB);
  bool is_loaded = false;
  host.rig.loop().spawn([](CodeCache& cache, std::shared_ptr<const std::string> bytes,
                           bool& is_loaded) -> io::Task<void> {
    const auto loaded = co_await cache.load(Digest::of(*bytes), bytes, {});
    is_loaded = loaded.has_value();
  }(host.cache, host.bytes, is_loaded));
  host.rig.loop().run_until([&] { return host.rig.engine().memory()->waiting_count() == 1; });
  EXPECT_FALSE(is_loaded);

  ASSERT_TRUE(guests->resize(0).has_value());

  host.rig.loop().run_until([&] { return is_loaded; });
  EXPECT_EQ(host.memory.held_bytes(), 0U);
}

// Two namespaces have a module for the only slot of its kind.
TEST(CompilerMemory, AModuleThatFindsNoneGivesWayToAnotherNamespace) {
  SmallHost host(1024 * limits::kMiB, {.memory_wait_max = std::chrono::nanoseconds(0),
                                       .turn_step = std::chrono::milliseconds(1)});
  const auto guests = host.memory.reserve(budget::unnamed_consumer(), 1000 * limits::kMiB);
  ASSERT_TRUE(guests.has_value());
  std::vector<std::pair<std::string, Error>> ended;
  const auto load = [&](const std::string& namespace_name, char last) {
    std::string module = *host.bytes + std::string({'\0', '\x80', '\x80', '\x80', '\x05', '\0'});
    module.append(10 * limits::kMiB - 1, last);
    host.rig.loop().spawn([](CodeCache& cache, std::shared_ptr<const std::string> bytes,
                             std::string name,
                             std::vector<std::pair<std::string, Error>>& ended) -> io::Task<void> {
      const auto loaded = co_await cache.load(
          Digest::of(*bytes), bytes, {}, Module::Allocation::Pooled,
          budget::Consumer{.tenant = budget::Tenant::of_namespace(name), .name = "operator/a"});
      if (!loaded) ended.emplace_back(std::move(name), loaded.error());
    }(host.cache, std::make_shared<const std::string>(std::move(module)), namespace_name, ended));
  };
  load("first", 'a');
  host.rig.loop().run_until([&] { return host.rig.engine().memory()->waiting_count() == 1; });
  EXPECT_THAT(ended, SizeIs(0)) << "while nobody else waits";

  load("second", 'b');
  load("third", 'c');
  host.rig.loop().run_until([&] { return ended.size() == 2; });

  EXPECT_EQ(ended.at(0).first, "first");
  EXPECT_EQ(ended.at(0).second.kind(), ErrorKind::Unavailable) << "it is tried again";
  EXPECT_THAT(ended.at(0).second.message(), HasSubstr("of memory for compiling in time"));
  host.rig.await([](CodeCache& cache) -> io::Task<bool> {
    co_await cache.stop();
    co_return true;
  }(host.cache));
}

// The sandbox and the sanitizers exclude each other: a sanitized build has no limits to test.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

TEST(CompilerMemory, WhatTakesMoreThanIsReservedSaysHowMuchThereIs) {
  SmallHost host(limits::kMiB);

  const auto loaded = host.rig.await(host.cache.load(Digest::of(*host.bytes), host.bytes, {}));

  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::LimitExceeded) << loaded.error().message();
  EXPECT_THAT(loaded.error().message(), HasSubstr("768 KiB. Give the host more memory"));
}

#endif

TEST_F(CodeCacheTest, ACompilerThatIsMissingOrCrashesIsUnavailable) {
  const fs::path program = directory_.path() / "crash";
  std::ofstream(program) << "#!/bin/sh\necho something broke >&2\nexit 4\n";
  fs::permissions(program, fs::perms::owner_all);
  for (const fs::path& each : {program, directory_.path() / "missing"}) {
    const Loaded loaded = load(*make_cache({.compile_program = each}), guest_);
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().kind(), ErrorKind::Unavailable);
  }
}

TEST_F(CodeCacheTest, KeepsWhatItHasWhenTheDiskTakesNoMoreAndCompilesLater) {
  // With a seal the host itself writes the native code, after the compiler.
  for (const CodeCache::Options& options : {CodeCache::Options{}, sealed()}) {
    const auto cache = make_cache(options);
    ASSERT_TRUE(load(*cache, guest_).has_value());
    const auto before = entries();
    // No room for the module, and room for the module only.
    for (const std::size_t room : {std::size_t{8}, other_guest_->size()}) {
      if (room > 8 && options.seal == nullptr) continue;
      const io::NoRoomForFiles full(room);
      const Loaded refused = load(*cache, other_guest_);
      ASSERT_FALSE(refused.has_value());
      EXPECT_EQ(refused.error().kind(), ErrorKind::Unavailable) << "it may be tried again";
      EXPECT_THAT(refused.error().message(), HasSubstr("File too large"));
      EXPECT_THAT(entries(), UnorderedElementsAreArray(before)) << "nothing is left of it";
    }
    {
      // A copy of the code needs room, too.
      const io::NoRoomForFiles full(options.seal == nullptr ? 8 : limits::kMiB);
      EXPECT_TRUE(load(*cache, guest_).has_value());
    }

    ASSERT_TRUE(load(*cache, other_guest_).has_value());
    EXPECT_EQ(cache->compiled_count(), 2U + (options.seal == nullptr ? 0U : 1U));
    fs::remove_all(directory_.path() / "code");
  }
}

TEST_F(CodeCacheTest, MakesItsDirectoriesAgainWhenSomebodyHasRemovedThem) {
  for (const CodeCache::Options& options : {CodeCache::Options{}, sealed()}) {
    const auto cache = make_cache(options);
    const Loaded held = load(*cache, guest_);
    ASSERT_TRUE(held.has_value());
    for (const std::string name : {"code", "private"})
      fs::remove_all(directory_.path() / name);

    EXPECT_EQ(load(*cache, guest_).value(), *held) << "its file is open";
    const Loaded other = load(*cache, other_guest_);

    EXPECT_TRUE(other.has_value()) << other.error().message();
    EXPECT_TRUE(make_cache(options)->has(Digest::of(*other_guest_)));
    fs::remove_all(directory_.path() / "code");
  }
}

TEST_F(CodeCacheTest, TheLeastRecentlyUsedEntriesMakeRoom) {
  std::uint64_t bytes = 0;
  {
    const auto cache = make_cache();
    ASSERT_TRUE(load(*cache, GuestRig::bytes_of("exit_0")).has_value());
    ASSERT_TRUE(load(*cache, GuestRig::bytes_of("exit_3")).has_value());
    for (const fs::path& entry : entries()) {
      bytes += fs::file_size(entry);
      // exit_0 was used earlier, whatever the clock's resolution.
      const bool is_older =
          entry.filename().string().starts_with(Digest::of(*GuestRig::bytes_of("exit_0")).to_hex());
      fs::last_write_time(entry,
                          fs::file_time_type::clock::now() - std::chrono::hours(is_older ? 2 : 1));
    }
  }
  const auto cache = make_cache({.bytes_max = bytes + bytes / 4});

  ASSERT_TRUE(load(*cache, GuestRig::bytes_of("unreachable")).has_value());

  EXPECT_FALSE(cache->has(Digest::of(*GuestRig::bytes_of("exit_0"))));
  EXPECT_TRUE(cache->has(Digest::of(*GuestRig::bytes_of("exit_3"))));
  EXPECT_TRUE(cache->has(Digest::of(*GuestRig::bytes_of("unreachable"))));
}

TEST_F(CodeCacheTest, CodeThatIsLargerThanOneModuleMayHaveIsNotKept) {
  const auto cache = make_cache({.compiled_bytes_max = 4096});

  const Loaded refused = load(*cache, guest_);

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::LimitExceeded);
  EXPECT_THAT(refused.error().message(), HasSubstr("the native code is too large"));
  EXPECT_THAT(entries(), SizeIs(0));
}

class ChargedCodeTest : public CodeCacheTest {
 protected:
  static budget::Consumer consumer(std::string tenant) {
    return {.tenant = budget::Tenant::of_namespace(std::move(tenant)), .name = "module"};
  }
  Loaded load_for(CodeCache& cache, const std::string& tenant,
                  const std::shared_ptr<const std::string>& bytes) {
    return rig_.await(
        cache.load(Digest::of(*bytes), bytes, {}, Module::Allocation::Pooled, consumer(tenant)));
  }
  Result<std::shared_ptr<const void>> charge(CodeCache& cache, const std::string& tenant,
                                             const std::shared_ptr<const std::string>& bytes,
                                             std::uint64_t image_bytes = 0) {
    return rig_.await(cache.charge(Digest::of(*bytes), image_bytes, consumer(tenant)));
  }
  void limit(std::uint64_t bytes) {
    charges_.limit_tenants(
        {.namespaces = {{"poor", {.bytes_max = bytes, .set_by = "TenantPolicy a"}}}});
  }
  [[nodiscard]] std::uint64_t charged(const std::string& tenant) const {
    return charges_.charged_bytes(budget::Tenant::of_namespace(tenant));
  }

  budget::CacheCharges charges_;
};

TEST_F(ChargedCodeTest, CodeThatIsMoreThanItsNamespaceMayHaveIsNotKeptNorMadeAgain) {
  const auto cache = make_cache({.charges = &charges_});
  limit(4095);

  for (int round = 0; round < 2; ++round) {
    const Loaded refused = load_for(*cache, "poor", guest_);

    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(budget::is_too_little_disk(refused.error()));
    EXPECT_THAT(refused.error().message(), HasSubstr("TenantPolicy a"));
    EXPECT_THAT(entries(), SizeIs(0));
    EXPECT_EQ(cache->compiled_count(), 1U);
  }
  EXPECT_TRUE(load_for(*cache, "rich", guest_).has_value());
  EXPECT_FALSE(charge(*cache, "poor", guest_).has_value());
  EXPECT_TRUE(charge(*cache, "rich", guest_).has_value());
  EXPECT_THAT(entries(), SizeIs(1)) << "it is another namespace's";
  limit(1'000'000'000);
  EXPECT_TRUE(load_for(*cache, "poor", guest_).has_value());
}

TEST_F(ChargedCodeTest, NorIsCodeOfABuilderCopiedAgain) {
  const CodeInFile code(Digest::of(*guest_), directory_.path() / "prebuilt");
  {
    ASSERT_TRUE(load(*make_cache(), guest_).has_value());
  }
  fs::rename(entries().at(0), directory_.path() / "prebuilt");
  CodeCache cache(
      rig_.engine(),
      {.directory = directory_.path() / "code", .prebuilt = &code, .charges = &charges_});
  ASSERT_TRUE(cache.open());
  limit(4095);

  for (int round = 0; round < 2; ++round) {
    const Loaded refused = load_for(cache, "poor", guest_);

    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(budget::is_too_little_disk(refused.error())) << refused.error().message();
    EXPECT_THAT(refused.error().message(), Not(HasSubstr("compiler")));
    EXPECT_EQ(code.copies(), 1);
  }
  EXPECT_TRUE(load_for(cache, "rich", guest_).has_value());
}

TEST_F(ChargedCodeTest, ANamespaceLosesCodeThatDoesNotRunForCodeThatItUses) {
  const auto cache = make_cache({.charges = &charges_});
  ASSERT_TRUE(load_for(*cache, "poor", guest_).has_value());
  ASSERT_TRUE(charge(*cache, "poor", guest_).has_value());
  const std::uint64_t bytes = charged("poor");
  EXPECT_GT(bytes, 0U);
  limit(bytes + 4095);  // Not for both.
  ASSERT_TRUE(load_for(*cache, "poor", other_guest_).has_value());

  Result<std::shared_ptr<const void>> runs = charge(*cache, "poor", other_guest_);

  ASSERT_TRUE(runs.has_value()) << runs.error().message();
  EXPECT_THAT(entries(), SizeIs(1));
  EXPECT_TRUE(load_for(*cache, "poor", guest_).error().kind() == ErrorKind::LimitExceeded)
      << "beside what runs there is no room";
  runs->reset();
  EXPECT_TRUE(load_for(*cache, "poor", guest_).has_value());
}

TEST_F(ChargedCodeTest, ImagesOfWhatRunsAreChargedToo) {
  const auto cache = make_cache({.charges = &charges_});
  ASSERT_TRUE(load_for(*cache, "poor", guest_).has_value());
  limit(1'000'000);

  EXPECT_FALSE(charge(*cache, "poor", guest_, 1'000'001).has_value());
  auto runs = charge(*cache, "poor", guest_, 500'000);

  ASSERT_TRUE(runs.has_value()) << runs.error().message();
  EXPECT_GT(charged("poor"), 500'000U);
  runs->reset();
  EXPECT_LT(charged("poor"), 500'000U) << "its code stays in the cache";
  EXPECT_GT(charged("poor"), 0U);
}

TEST_F(CodeCacheTest, LeftoversOfCrashedProcessesAreRemovedWhenTheyAreOld) {
  make_cache();
  const fs::path old = directory_.path() / "code" / "tmp-1-1";
  const fs::path young = directory_.path() / "code" / "tmp-2-1";
  std::ofstream(old) << "half";
  std::ofstream(young) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));

  make_cache();

  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

TEST_F(CodeCacheTest, RefusesADirectoryThatOthersMayWriteTo) {
  const fs::path directory = directory_.path() / "open";
  fs::create_directory(directory);
  fs::permissions(directory, fs::perms::all);
  CodeCache cache(rig_.engine(),
                  {.directory = directory, .compile_program = HANGAR_COMPILE_PROGRAM});
  const Result<> opened = cache.open();
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().kind(), ErrorKind::Denied);
}

}  // namespace
}  // namespace hangar::wasm
