// Parts of stories as text for people. Guests choose some of the texts, so everything but printable
// ASCII is escaped.
#pragma once

#include "base/time.h"
#include "recorder/story.h"

#include <string>
#include <string_view>

namespace hangar::commands {

// "Deployment.apps shop/front@4711".
[[nodiscard]] std::string in_words(const recorder::ObjectVersion& object);
// "1.5ms", "20.0s".
[[nodiscard]] std::string in_words(Duration duration);
// "patch deployments.apps shop/front/scale".
[[nodiscard]] std::string in_words(const recorder::Request& request);
// "200 in 3.0ms, 4711 -> 4712".
[[nodiscard]] std::string result_text(const recorder::Request& request);

// The recorded body of a request on one line, or why there is none; empty: none was recorded.
[[nodiscard]] std::string body_text(const recorder::Request& request);

// `what` woke a turn; adds the event of a machine, if there is one: "signal APPROVED: modified
// ...".
[[nodiscard]] std::string with_event(const recorder::Cause& cause, std::string_view what);

// "Those of namespace shop are complete only since 2026-04-07T12:03:11Z: 5 older ones made room."
[[nodiscard]] std::string in_words(const recorder::Shortened& shortened);

// The earliest time of the records, the number of lost ones, and problems; complete lines.
[[nodiscard]] std::string notes_of(const recorder::ReadDirectory& read);

}  // namespace hangar::commands
