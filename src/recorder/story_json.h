// Stories as JSON, written and read: for programs, and between a host and a command. Guests choose
// some of the texts, so everything but printable ASCII is escaped, and stays escaped when it is
// read.
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "recorder/story.h"

#include <optional>
#include <string_view>

namespace hangar::recorder {

[[nodiscard]] std::string_view name_of(BodyState state);
[[nodiscard]] std::string_view name_of(Waking::Cause cause);
[[nodiscard]] std::string_view name_of(Verb verb);
[[nodiscard]] std::string_view name_of(Contract contract);
// std::nullopt for an unknown name.
[[nodiscard]] std::optional<Contract> contract_of(std::string_view name);
[[nodiscard]] std::optional<Verb> verb_of(std::string_view name);
[[nodiscard]] std::string_view name_of(Turn::Outcome outcome);

[[nodiscard]] json::Value json_of(const ObjectVersion& object);
[[nodiscard]] json::Value json_of(const Request& request);
[[nodiscard]] json::Value json_of(const Story& story);
// The number of lost records, the namespaces that gave up some, the problems, and the time of the
// oldest block.
[[nodiscard]] json::Value json_of(const ReadDirectory& read);

// Reads the result of json_of(), which does not have the ids of timers. Numbers out of range are
// clamped. InvalidInput names the wrong member.
[[nodiscard]] Result<Story> parse_story(const json::Value& value);
[[nodiscard]] Result<ReadDirectory> parse_read_directory(const json::Value& value);

}  // namespace hangar::recorder
