// `hangar timeline`: what a guest did, turn by turn, out of the recorder's files.
#pragma once

#include "base/result.h"
#include "recorder/story.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

// Where records are read.
struct RecordsPlace {
  std::filesystem::path directory;
  std::filesystem::path file;  // This one instead; empty: none.
};

struct TimelineOptions {
  RecordsPlace place;
  std::string namespace_;  // Empty: of an operator of `hangar run`.
  std::string name;
  std::size_t turns_max = 20;
  bool slowest = false;  // Those that took longest, instead of the last.
  bool json = false;
};

// NotFound, with what is known, when no turn of that one is held.
[[nodiscard]] Result<std::string> timeline(const TimelineOptions& options);

// As people read it. `stories`: the oldest first.
[[nodiscard]] std::string timeline_text(const std::vector<recorder::Story>& stories,
                                        const recorder::ReadDirectory& read);
[[nodiscard]] std::string timeline_json(const std::vector<recorder::Story>& stories,
                                        const recorder::ReadDirectory& read);

}  // namespace hangar::commands
