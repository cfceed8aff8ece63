// For tests: writes records and reads them back.
#pragma once

#include "base/assert.h"
#include "base/log.h"
#include "base/metrics.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "recorder/limits.h"
#include "recorder/recorder.h"
#include "recorder/story.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::recorder {

// The stories that `act` has recorded, newest first.
inline std::vector<Story> stories_of(const std::function<void(Recorder& recorder)>& act) {
  std::string root = (std::filesystem::temp_directory_path() / "stories-XXXXXX").string();
  HANGAR_ASSERT(::mkdtemp(root.data()) != nullptr, "there is room for a file");
  {
    io::Loop loop;
    Metrics metrics;
    Recorder recorder(
        loop,
        {.directory = root, .limits = {.bytes_max = kBytesMin, .age_max = std::chrono::hours(24)}},
        metrics, Log());
    act(recorder);
    const auto flushed = [&recorder]() -> io::Task<bool> {
      co_await recorder.flush();
      co_return true;
    };
    HANGAR_ASSERT(io::run_to_end(loop, flushed()), "nothing ends it");
  }
  std::vector<Story> found;
  const auto read = read_directory(root, [&found](Story story) {
    found.push_back(std::move(story));
    return true;
  });
  HANGAR_ASSERT(read && read->problems.empty(), "all of it can be read");
  std::filesystem::remove_all(root);
  return found;
}

}  // namespace hangar::recorder
