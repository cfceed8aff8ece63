// For tests: lets writes of this process fail as on a full or broken disk.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

namespace hangar::io {

// Until it is destroyed, no write makes a file larger than `bytes_max`; it fails with EFBIG.
// Programs that the process starts may raise the limit again, as hangar-compile does.
class NoRoomForFiles {
 public:
  explicit NoRoomForFiles(rlim_t bytes_max) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{.rlim_cur = bytes_max, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  NoRoomForFiles(const NoRoomForFiles&) = delete;
  NoRoomForFiles& operator=(const NoRoomForFiles&) = delete;
  ~NoRoomForFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace hangar::io
