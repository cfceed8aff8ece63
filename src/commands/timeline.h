// `hangar timeline`: what a guest did, turn by turn, as the recorder has it.
#pragma once

#include "base/result.h"
#include "commands/records.h"
#include "io/task.h"
#include "recorder/story.h"
#include "seeing/find.h"

#include <string>
#include <vector>

namespace hangar::commands {

struct TimelineOptions {
  seeing::TurnsQuestion question;
  bool json = false;
};

// Errors as of Records::turns(). `records` outlives it.
[[nodiscard]] io::Task<Result<std::string>> timeline(TimelineOptions options, Records& records);

// As people read it. `stories`: the oldest first.
[[nodiscard]] std::string timeline_text(const std::vector<recorder::Story>& stories,
                                        const recorder::ReadDirectory& read);

}  // namespace hangar::commands
