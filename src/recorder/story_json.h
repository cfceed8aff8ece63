// Stories as JSON, for programs and between a host and a command, and read again. Guests choose
// some of the texts in there: all but printable ASCII is escaped, and stays so.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "recorder/story.h"

#include <optional>
#include <string_view>

namespace hangar::recorder {

[[nodiscard]] std::string_view name_of(Waking::Cause cause);
[[nodiscard]] std::string_view name_of(Verb verb);
[[nodiscard]] std::string_view name_of(Contract contract);
// Nothing for other words.
[[nodiscard]] std::optional<Contract> contract_of(std::string_view name);
[[nodiscard]] std::optional<Verb> verb_of(std::string_view name);
[[nodiscard]] std::string_view name_of(Turn::Outcome outcome);

[[nodiscard]] json::Value json_of(const ObjectVersion& object);
[[nodiscard]] json::Value json_of(const Request& request);
[[nodiscard]] json::Value json_of(const Story& story);
// What the files do not say, and since when they say anything.
[[nodiscard]] json::Value json_of(const ReadDirectory& read);

// What json_of() made, but for the ids of timers; numbers beyond any bound are cut to it.
// InvalidInput names the member that is wrong.
[[nodiscard]] Result<Story> parse_story(const json::Value& value);
[[nodiscard]] Result<ReadDirectory> parse_read_directory(const json::Value& value);

}  // namespace hangar::recorder
