// Parts of stories as people and programs read them. Guests choose some of the texts in there: all
// but printable ASCII is escaped.
#pragma once

#include "base/time.h"
#include "json/value.h"
#include "recorder/story.h"

#include <string>
#include <string_view>

namespace hangar::commands {

[[nodiscard]] std::string printable(std::string_view text);
// "Deployment.apps shop/front@4711".
[[nodiscard]] std::string in_words(const recorder::ObjectVersion& object);
// "1.5ms", "20s".
[[nodiscard]] std::string in_words(Duration duration);
// "patch deployments.apps shop/front/scale".
[[nodiscard]] std::string in_words(const recorder::Request& request);
// "200 in 3ms, 4711 -> 4712".
[[nodiscard]] std::string result_text(const recorder::Request& request);
[[nodiscard]] std::string_view name_of(recorder::Waking::Cause cause);
[[nodiscard]] std::string_view name_of(recorder::Verb verb);
[[nodiscard]] std::string_view name_of(recorder::Contract contract);
[[nodiscard]] std::string_view name_of(recorder::Turn::Outcome outcome);

[[nodiscard]] json::Value json_of(const recorder::ObjectVersion& object);
[[nodiscard]] json::Value json_of(const recorder::Request& request);
[[nodiscard]] json::Value json_of(const recorder::Story& story);

// What the files do not say, and since when they say anything; lines with their ends.
[[nodiscard]] std::string notes_of(const recorder::ReadDirectory& read);
[[nodiscard]] json::Value json_of(const recorder::ReadDirectory& read);

}  // namespace hangar::commands
