// `hangar timeline`: prints the recorded turns of a guest.
#pragma once

#include "base/result.h"
#include "commands/records.h"
#include "io/task.h"
#include "recorder/story.h"
#include "seeing/find.h"

#include <string>
#include <string_view>
#include <vector>

namespace hangar::commands {

struct TimelineOptions {
  seeing::TurnsQuestion question;
  bool json = false;
};

// Errors: those of Records::turns(). `records` must outlive the task.
[[nodiscard]] io::Task<Result<std::string>> timeline(TimelineOptions options, Records& records);

// Text for people. `stories`: oldest first. `instances`: the resource of an Airway's instances; a
// column then names the instance of each turn.
[[nodiscard]] std::string timeline_text(const std::vector<recorder::Story>& stories,
                                        const recorder::ReadDirectory& read,
                                        std::string_view instances = {});

}  // namespace hangar::commands
