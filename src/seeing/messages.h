// Requests of commands to a host, and its answers, as JSON, written and read. Pure.
//
// A request is hostile until its sender is authenticated: a wrong value or one beyond a limit is
// InvalidInput and names the member. An answer comes from a host that has authenticated itself;
// texts in it are escaped (recorder/story_json.h).
#pragma once

#include "base/result.h"
#include "json/value.h"
#include "seeing/cost.h"
#include "seeing/find.h"
#include "seeing/top.h"
#include "seeing/uses.h"

#include <string_view>

namespace hangar::seeing {

// Paths of the requests; all use POST.
inline constexpr std::string_view kTurnsPath = "/v1/turns";
inline constexpr std::string_view kWritesPath = "/v1/writes";
inline constexpr std::string_view kTopPath = "/v1/top";
inline constexpr std::string_view kUsesPath = "/v1/uses";
inline constexpr std::string_view kCostPath = "/v1/cost";

// Replaces names that the caller may not see. No object can have this name.
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

[[nodiscard]] json::Value json_of(const CostQuestion& question);
[[nodiscard]] Result<CostQuestion> parse_cost_question(std::string_view text);
[[nodiscard]] json::Value json_of(const FoundCost& found);
[[nodiscard]] Result<FoundCost> parse_found_cost(std::string_view text);

}  // namespace hangar::seeing
