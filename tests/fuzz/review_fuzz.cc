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
#include <vector>

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

// What converters printed, one for each part of a review: pieces between zero bytes.
std::vector<std::string> pieces_of(std::string_view printed) {
  constexpr std::size_t kPiecesMax = 4;
  std::vector<std::string> pieces;
  while (pieces.size() + 1 < kPiecesMax) {
    const std::size_t end = printed.find('\0');
    if (end == std::string_view::npos) break;
    pieces.emplace_back(printed.substr(0, end));
    printed.remove_prefix(end + 1);
  }
  pieces.emplace_back(printed);
  return pieces;
}

// As if the review had been large enough to be split.
void split(hangar::admission::ConversionReview& review, std::size_t part_count) {
  const std::size_t count = review.statuses.size();
  review.parts.clear();
  for (std::size_t part = 0; part < part_count; ++part) {
    const std::size_t begin = count * part / part_count;
    const std::size_t end = count * (part + 1) / part_count;
    review.parts.push_back({.body = {}, .object_count = end - begin});
  }
}

// The review, a zero byte, and what the converters printed.
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
  if (auto review = hangar::admission::parse_conversion_review(body)) {
    check_answer(hangar::admission::conversion_failure(review->uid, "no"), review->uid);
    const std::vector<std::string> pieces = pieces_of(printed);
    if (pieces.size() > 1) split(*review, pieces.size());
    if (const auto answer = hangar::airways::converted(*review, pieces)) {
      const auto document = hangar::json::parse(*answer);
      HANGAR_ASSERT(document && hangar::json::find(*document, {"response"}) != nullptr,
                    "an answer without response");
    }
  }
  return 0;
}
