// Any client's questions to a host about its records, and any server's answers to them.
#include "base/assert.h"
#include "json/value.h"
#include "seeing/messages.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace seeing = hangar::seeing;

namespace {

// A message that was read is written so that it is read again as the same.
void check(const auto& parse, std::string_view text) {
  const auto read = parse(text);
  if (!read) return;
  const std::string written = hangar::json::dump(json_of(*read));
  const auto again = parse(written);
  HANGAR_ASSERT(again.has_value(), "what was written can be read");
  HANGAR_ASSERT(hangar::json::dump(json_of(*again)) == written, "and is the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(seeing::parse_turns_question, text);
  check(seeing::parse_writes_question, text);
  check(seeing::parse_found_turns, text);
  check(seeing::parse_found_writes, text);
  check(seeing::parse_uses_question, text);
  check(seeing::parse_found_uses, text);
  check(seeing::parse_top_question, text);
  check(seeing::parse_found_top, text);
  check(seeing::parse_cost_question, text);
  check(seeing::parse_found_cost, text);
  return 0;
}
