#include "sandbox/process.h"

#include "sandbox/in_child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace hangar::sandbox {
namespace {

TEST(Process, CannotBecomeMoreThanItIs) {
  EXPECT_EQ(in_child([] {
              if (!give_up_privileges()) return 255;
              rlimit core{};
              ::getrlimit(RLIMIT_CORE, &core);
              return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && core.rlim_max == 0 ? 0 : 1;
            }),
            0);
}

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
TEST(Process, HasNoMemoryForOthers) {
  EXPECT_EQ(in_child([] {
              if (!hide_memory()) return 255;
              return ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
            }),
            0);
}
#endif

TEST(Process, EndsWithItsParent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);

  // The grandchild holds its end of the pipe until it exits.
  const int parent = in_child([&ends] {
    const pid_t self = ::getpid();
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) return 255;
    if (::fork() == 0) {
      ::close(ends[0]);
      const bool is_bound = die_with(self).has_value();
      if (!is_bound || ::write(ready[1], "x", 1) != 1) ::_exit(255);
      while (true)
        ::pause();
    }
    char byte = 0;
    return ::read(ready[0], &byte, 1) == 1 ? 0 : 1;
  });
  ::close(ends[1]);

  ASSERT_EQ(parent, 0);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // Returns once no process holds the other end.
  ::close(ends[0]);
}

TEST(Process, DoesNotOutliveAParentThatIsGoneAlready) {
  EXPECT_EQ(in_child([] { return die_with(::getpid()).has_value() ? 1 : 0; }), 0);
}

TEST(Process, CannotRaiseALimitOverTheHardOne) {
  EXPECT_EQ(in_child([] {
              if (!limit(RLIMIT_NOFILE, 16)) return 255;
              rlimit files{};
              ::getrlimit(RLIMIT_NOFILE, &files);
              return files.rlim_cur == 16 && files.rlim_max == 16 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace hangar::sandbox
