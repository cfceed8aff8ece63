// A workflow's status as anybody may have edited it: it is refused with a reason, or what the host
// writes back is read again as the same ledger, and a workflow goes on from it with a machine that
// accepts every event.
#include "base/assert.h"
#include "base/result.h"
#include "json/value.h"
#include "workflows/decision.h"
#include "workflows/ledger.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

namespace workflows = hangar::workflows;
namespace json = hangar::json;

namespace {

using workflows::Decision;

const hangar::WallTime kNow = *hangar::parse_rfc3339("2026-04-08T12:00:00Z");
constexpr int kStepsMax = 64;

hangar::abi::statemachine::Step step() {
  return {.state = R"({"value":"b"})",
          .actions = {{"EMIT", R"({"reason":"Went"})"}},
          .timers_started = {{.id = "t", .event = R"({"type":"LATER"})", .replaces = true}},
          .actors = {{.id = "w#1", .value = R"("x")"}},
          .value = R"("b")"};
}

void check_is_readable(const workflows::Ledger& ledger) {
  json::Value status = json::Object();
  workflows::put_ledger(status, ledger);
  HANGAR_ASSERT(workflows::parse_ledger(&status).has_value(), "the host refuses its own status");
}

void execute(Decision& decision, std::int64_t id) {
  // Every other action succeeds.
  if (id % 2 == 0) return decision.on_done(id, json::Object{{"type", "DONE"}});
  if (!decision.on_waiting(id, "the cluster", kNow)) return;
  (void)decision.on_failed(id, {.reason = "Gone", .message = "gone"}, {}, 0.5, kNow);
}

void go_on_from(workflows::Ledger ledger) {
  const bool has_foreign_state = ledger.is_foreign;
  Decision decision(std::move(ledger), {.key = {.namespace_ = "t", .name = "w"}, .uid = "u"});
  if (has_foreign_state) {
    decision.adopt({.sha256 = "ab", .resolved = "here"}, R"("a")", step().actors, "r2", kNow);
    decision.take_delays({{.event = "xstate.after.1", .duration = hangar::Duration(1)}}, kNow);
  }
  for (int i = 0; i < kStepsMax; ++i) {
    const Decision::Next next = decision.next(kNow);
    if (std::holds_alternative<Decision::Start>(next)) {
      if (!decision.on_started(step(), {.sha256 = "ab", .resolved = "here"}, "r1", kNow)) return;
    } else if (std::holds_alternative<Decision::Ask>(next)) {
      if (!decision.on_decided(step(), kNow)) decision.on_stuck();
    } else if (std::holds_alternative<Decision::Write>(next)) {
      check_is_readable(decision.ledger());
      decision.on_written();
    } else if (const auto* const action = std::get_if<Decision::Execute>(&next)) {
      execute(decision, action->id);
    } else {
      return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto status = json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!status) return 0;
  const auto ledger = workflows::parse_ledger(&*status);
  if (!ledger) {
    HANGAR_ASSERT(ledger.error().kind() == hangar::ErrorKind::InvalidInput, "the only kind");
    HANGAR_ASSERT(ledger.error().message().starts_with("status"), "an error names its field");
    return 0;
  }
  json::Value written = json::Object();
  workflows::put_ledger(written, *ledger);

  const auto again = workflows::parse_ledger(&written);
  HANGAR_ASSERT(again.has_value(), "the host refuses its own status");
  HANGAR_ASSERT(again->is_foreign == ledger->is_foreign, "another client's state stays foreign");
  HANGAR_ASSERT(workflows::is_kept_in(json::Object{{"status", written}}, *ledger), "all is kept");
  json::Value rewritten = json::Object();
  workflows::put_ledger(rewritten, *again);
  HANGAR_ASSERT(rewritten == written, "a ledger changes when it is read again");

  (void)workflows::active_states(ledger->value);
  go_on_from(*again);
  return 0;
}
