// A file of the recorder that is damaged, or was made by another program; and the body of a request
// of any guest, which the recorder redacts.
#include "base/assert.h"
#include "base/random.h"
#include "json/value.h"
#include "recorder/format.h"
#include "recorder/limits.h"
#include "recorder/redaction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace recorder = hangar::recorder;

namespace {

// A record that was read can be written, and is read again as the same.
void check_again(const recorder::Place& place, const recorder::Record& record) {
  const auto written = [&place](const recorder::Record& one) {
    recorder::Block block;
    std::visit([&](const auto& kind) { block.add(kind, place.block); }, one);
    return recorder::encode(recorder::FileHeader()) + block.take();
  };
  const std::string bytes = written(record);
  std::size_t count = 0;
  const auto read = recorder::read(bytes, [&](const recorder::Place&, const auto& again) {
    HANGAR_ASSERT(written(again) == bytes, "one way to write it");
    ++count;
    return true;
  });
  HANGAR_ASSERT(read && read->cut.empty() && count == 1, "what was written can be read");
}

void check_redaction(std::string_view body) {
  static const recorder::Redactor redactor{hangar::RandomKey{}};
  const recorder::RedactedBody redacted = redactor.redact(body);
  HANGAR_ASSERT(redacted.text.size() <= recorder::kBodyBytesMax, "it is bounded");
  HANGAR_ASSERT(
      std::ranges::all_of(redacted.text, [](char one) { return one >= ' ' && one < 0x7f; }),
      "it is printable");
  if (redacted.state != recorder::BodyState::Whole) return;
  HANGAR_ASSERT(hangar::json::parse(redacted.text).has_value(), "it is a document");
}

}  // namespace

// Checksums would stop a fuzzer: its input is the content of the blocks, not their frames.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto nothing = [](const recorder::Place&, const recorder::Record&) { return true; };
  (void)recorder::read(input, nothing);
  (void)recorder::read_backwards(input, nothing);

  const std::string file = recorder::encode(recorder::FileHeader()) + recorder::wrap(input);
  std::size_t forwards = 0;
  const auto read = recorder::read(file, [&](const auto& place, const auto& record) {
    check_again(place, record);
    ++forwards;
    return true;
  });
  HANGAR_ASSERT(read, "the file has a header");
  std::size_t backwards = 0;
  (void)recorder::read_backwards(file, [&](const recorder::Place&, const recorder::Record&) {
    ++backwards;
    return true;
  });
  HANGAR_ASSERT(forwards == backwards, "both orders have the same");
  check_redaction(input);
  return 0;
}
