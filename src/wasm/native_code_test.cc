#include "wasm/native_code.h"

#include "base/result.h"
#include "wasm/module.h"
#include "wasm/test_guests.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace hangar::wasm {
namespace {

TEST(NativeCode, IsHandedOverForReadingOnly) {
  GuestRig rig;
  const auto module = rig.load("exit_3");

  const Result<int> descriptor = open_native_code(*module);

  ASSERT_TRUE(descriptor.has_value()) << descriptor.error().message();
  EXPECT_EQ(::fcntl(*descriptor, F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(::write(*descriptor, "x", 1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0), MAP_FAILED);
  ::close(*descriptor);
}

TEST(NativeCode, IsTheSameModuleWhereItArrives) {
  GuestRig rig;
  GuestRig other;
  for (const char* const guest : {"exit_3", "two_tables"}) {
    const auto module = rig.load(guest);

    const auto loaded = load_native_code(other.engine(), open_native_code(*module).value());

    ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
    EXPECT_EQ((*loaded)->allocation(), module->allocation());
    EXPECT_NE((*loaded)->find_export("_start"), nullptr);
    EXPECT_EQ((*loaded)->code_bytes(), module->code_bytes());
  }
}

TEST(NativeCode, ThatIsNoneIsRefused) {
  GuestRig rig;

  const auto loaded = load_native_code(rig.engine(), ::open("/dev/null", O_RDONLY | O_CLOEXEC));

  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::Unavailable);
}

}  // namespace
}  // namespace hangar::wasm
