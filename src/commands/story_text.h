// Parts of stories as people read them. Guests choose some of the texts in there: all but printable
// ASCII is escaped.
#pragma once

#include "base/time.h"
#include "recorder/story.h"

#include <string>
#include <string_view>

namespace hangar::commands {

// "Deployment.apps shop/front@4711".
[[nodiscard]] std::string in_words(const recorder::ObjectVersion& object);
// "1.5ms", "20s".
[[nodiscard]] std::string in_words(Duration duration);
// "patch deployments.apps shop/front/scale".
[[nodiscard]] std::string in_words(const recorder::Request& request);
// "200 in 3ms, 4711 -> 4712".
[[nodiscard]] std::string result_text(const recorder::Request& request);

// `what` woke a turn; with what that was to a machine, if it is one: "signal APPROVED: modified
// ...".
[[nodiscard]] std::string with_event(const recorder::Cause& cause, std::string_view what);

// What the files do not say, and since when they say anything; lines with their ends.
[[nodiscard]] std::string notes_of(const recorder::ReadDirectory& read);

}  // namespace hangar::commands
