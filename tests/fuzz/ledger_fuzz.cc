// A workflow's status as anybody may have edited it: it is refused with a reason, or what the host
// writes back is read again as the same ledger.
#include "base/assert.h"
#include "base/result.h"
#include "json/value.h"
#include "workflows/ledger.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace workflows = hangar::workflows;
namespace json = hangar::json;

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
  return 0;
}
