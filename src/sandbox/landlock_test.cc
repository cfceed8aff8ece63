#include "sandbox/landlock.h"

#include "base/result.h"
#include "sandbox/in_child.h"
#include "sandbox/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

namespace hangar::sandbox {
namespace {

// A sanitized build has no walls to test.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

constexpr int kNoLandlock = 200;

// The result of `attempt` in a process that Landlock restricts.
int behind_landlock(int version_min, const std::function<int()>& attempt) {
  return in_child([&attempt, version_min] {
    if (!give_up_privileges()) return 255;
    const Result<int> version = deny_files_and_others();
    if (!version) return 255;
    return *version < version_min ? kNoLandlock : attempt();
  });
}

TEST(Landlock, OpensNoFileWhateverItsRights) {
  const int code = behind_landlock(
      1, [] { return ::open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0; });
  if (code == kNoLandlock) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(code, EACCES);
}

TEST(Landlock, LeavesDescriptorsThatAreOpen) {
  const int code =
      behind_landlock(1, [] { return ::write(STDOUT_FILENO, "", 0) == 0 ? 0 : errno; });
  if (code == kNoLandlock) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(code, 0);
}

TEST(Landlock, SignalsNobodyElse) {
  constexpr int kScopes = 6;
  const int code = behind_landlock(kScopes, [] { return ::kill(::getppid(), 0) < 0 ? errno : 0; });
  if (code == kNoLandlock) GTEST_SKIP() << "this kernel's Landlock knows no scopes";
  EXPECT_EQ(code, EPERM);
}

#endif

}  // namespace
}  // namespace hangar::sandbox
