#include "host/succession.h"

#include "base/time.h"
#include "io/descriptor.h"
#include "io/loop.h"
#include "operators/carried_operator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::host {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kVariable = "HANGAR_CARRIED_OPERATORS";
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

// A file in memory that an exec would pass on.
io::Descriptor inherited(std::string_view content, int seals = kSeals) {
  io::Descriptor file(::memfd_create("test", MFD_ALLOW_SEALING));
  EXPECT_EQ(io::write_all(file.value(), content), 0);
  EXPECT_EQ(::fcntl(file.value(), F_ADD_SEALS, seals), 0);
  return file;
}

Inheritance take(std::string_view value) {
  ::setenv(kVariable, std::string(value).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  Inheritance taken = take_inheritance();
  EXPECT_EQ(std::getenv(kVariable), nullptr);  // NOLINT(concurrency-mt-unsafe)
  return taken;
}

Inheritance take(io::Descriptor manifest) {
  return take(fmt::format("{}:{}", ::getpid(), std::move(manifest).release()));
}

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

TEST(Inheritance, IsNothingForAProcessThatBeganByItself) {
  const Inheritance none = take_inheritance();
  EXPECT_FALSE(none.fleet.has_value());
  EXPECT_THAT(none.problem, IsEmpty());
}

TEST(Inheritance, IsTheManifestAndTheFilesThatItNames) {
  operators::CarriedFleet fleet;
  fleet.snapshots = inherited("snapshots", 0);
  fleet.left.push_back(
      {.key = {.namespace_ = "team", .name = "left"}, .reason = "it cannot sleep"});
  const int forgotten = inherited("named by nobody", 0).release();
  io::Descriptor rest(::fcntl(fleet.snapshots.value(), F_DUPFD, 0));
  const std::string bytes = operators::encode(fleet);
  const int number = std::move(fleet.snapshots).release();

  const Inheritance taken = take(inherited(bytes));

  ASSERT_TRUE(taken.fleet.has_value()) << taken.problem;
  EXPECT_EQ(taken.fleet->snapshots.value(), number);
  EXPECT_EQ(::fcntl(number, F_GETFD), FD_CLOEXEC) << "no program that this one starts has it";
  EXPECT_EQ(taken.fleet->left.front().reason, "it cannot sleep");
  EXPECT_FALSE(is_open(forgotten));
  EXPECT_FALSE(is_open(std::move(rest).release())) << "nothing needs it";
}

TEST(Inheritance, IsNotForAnotherProcess) {
  const io::Descriptor manifest = inherited("x");
  for (const std::string& value :
       {fmt::format("{}:{}", ::getpid() + 1, manifest.value()),
        fmt::format("{}:{}x", ::getpid(), manifest.value()), fmt::format("{}:1", ::getpid()),
        std::string(":"), std::string()}) {
    const Inheritance none = take(value);
    EXPECT_FALSE(none.fleet.has_value()) << value;
    EXPECT_THAT(none.problem, IsEmpty()) << value;
  }
}

TEST(Inheritance, IsRefusedInWordsWhenItIsDamaged) {
  EXPECT_THAT(take(inherited("garbage")).problem, HasSubstr("do not begin as they must"));
  EXPECT_THAT(take(inherited("", 0)).problem, HasSubstr("not a sealed file"));
  operators::CarriedFleet fleet;
  fleet.snapshots = io::Descriptor(::open("/dev/null", O_RDWR));
  EXPECT_THAT(take(inherited(operators::encode(fleet))).problem,
              HasSubstr("is not one of its files"));
  EXPECT_THAT(take(fmt::format("{}:{}", ::getpid(), 9999)).problem,
              HasSubstr("is not one of its files"));
}

}  // namespace
}  // namespace hangar::host
