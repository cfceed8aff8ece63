// What a command asks a host, and what that answers, as JSON: both ways. Pure.
//
// Questions are a stranger's until it is known who asks: what is wrong or beyond a bound is
// InvalidInput and names the member. Answers are of a host that has proved who it is; texts in
// them are escaped (recorder/story_json.h).
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "seeing/find.h"
#include "seeing/top.h"
#include "seeing/uses.h"

#include <string_view>

namespace hangar::seeing {

// Where they are sent to, by POST.
inline constexpr std::string_view kTurnsPath = "/v1/turns";
inline constexpr std::string_view kWritesPath = "/v1/writes";
inline constexpr std::string_view kTopPath = "/v1/top";
inline constexpr std::string_view kUsesPath = "/v1/uses";

// In place of what the caller may not see: a name that no object can have.
inline constexpr std::string_view kWithheld = "(withheld)";

[[nodiscard]] json::Value json_of(const TurnsQuestion& question);
[[nodiscard]] Result<TurnsQuestion> parse_turns_question(std::string_view text);
[[nodiscard]] json::Value json_of(const FoundTurns& found);
[[nodiscard]] Result<FoundTurns> parse_found_turns(std::string_view text);

[[nodiscard]] json::Value json_of(const WritesQuestion& question);
[[nodiscard]] Result<WritesQuestion> parse_writes_question(std::string_view text);
[[nodiscard]] json::Value json_of(const FoundWrites& found);
[[nodiscard]] Result<FoundWrites> parse_found_writes(std::string_view text);

[[nodiscard]] json::Value json_of(const UsesQuestion& question);
[[nodiscard]] Result<UsesQuestion> parse_uses_question(std::string_view text);
[[nodiscard]] json::Value json_of(const FoundUses& found);
[[nodiscard]] Result<FoundUses> parse_found_uses(std::string_view text);

[[nodiscard]] json::Value json_of(const TopQuestion& question);
[[nodiscard]] Result<TopQuestion> parse_top_question(std::string_view text);
[[nodiscard]] json::Value json_of(const FoundTop& found);
[[nodiscard]] Result<FoundTop> parse_found_top(std::string_view text);

}  // namespace hangar::seeing
