// Requests to the webhooks, and a converter's output: whatever they are, the answer is well formed
// and belongs to the same request.
#include "admission/conversion_review.h"
#include "admission/review.h"
#include "airways/conversion.h"
#include "base/assert.h"
#include "base/result.h"
#include "json/value.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using hangar::json::string_at;

void check_answer(const std::string& answer, std::string_view uid) {
  const auto document = hangar::json::parse(answer);
  HANGAR_ASSERT(document.has_value(), "an answer that is not JSON");
  HANGAR_ASSERT(string_at(*document, {"response", "uid"}) == uid, "an answer to another request");
}

// Text for messages must be valid in JSON.
bool is_sendable(std::string_view text) {
  return hangar::json::parse(hangar::json::dump(hangar::json::Value(text))).has_value();
}

}  // namespace

// The review, a zero byte, and the converter's output.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  const std::string_view body = input.substr(0, end);
  const std::string_view printed =
      end == std::string_view::npos ? std::string_view() : input.substr(end + 1);

  const auto review_of_one = hangar::admission::parse_review(body);
  if (review_of_one && is_sendable(printed)) {
    const std::string& uid = review_of_one->uid;
    const hangar::Error error(hangar::ErrorKind::Denied, std::string(printed));
    for (const auto& decision : {hangar::admission::allowed_with(std::string(printed)),
                                 hangar::admission::refusal(error)}) {
      check_answer(hangar::admission::answer_to(uid, decision), uid);
    }
  }
  if (const auto review = hangar::admission::parse_conversion_review(body)) {
    check_answer(hangar::admission::conversion_failure(review->uid, "no"), review->uid);
    if (const auto answer = hangar::airways::converted(*review, printed)) {
      const auto document = hangar::json::parse(*answer);
      HANGAR_ASSERT(document && hangar::json::find(*document, {"response"}) != nullptr,
                    "an answer without response");
    }
  }
  return 0;
}
