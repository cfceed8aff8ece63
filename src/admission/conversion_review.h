// A ConversionReview (apiextensions.k8s.io/v1) as a struct, and its answer: the API server requests
// objects in another version of their kind. Pure.
//
// A list of objects may be large, and a converter runs for seconds. So no document is made of it,
// and only text is kept meanwhile: what the converter reads, and the parts of each object that the
// converter must not change.
//
// A converter does not read `metadata.managedFields`, which may be half of an object: of the
// metadata, the API server takes only labels and annotations from the answer.
//
// A large review can be split into parts, each a review of some of the objects, which converters
// answer at the same time. That is sound because an object is converted without regard to others:
// the API server sends one object or many, as clients get, list or page.
#pragma once

#include "base/limits.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

// A part has at least this much text. Starting a converter in Go costs as much as it needs for a
// tenth of that.
inline constexpr std::size_t kConversionPartBytesMin = 96 * limits::kKiB;

struct ConversionReview {
  std::string uid;
  std::string desired_api_version;    // "group/version"
  std::vector<std::string> statuses;  // The status of each object, as JSON; empty: it has none.

  struct Part {
    std::string body;  // A ConversionReview with the same uid.
    std::size_t object_count = 0;
  };
  std::vector<Part> parts;  // In the order of the objects. At least one.
};

// Splits a large review into at most `parts_max` parts, which together take about as much text as
// the body. InvalidInput says what is wrong with it.
[[nodiscard]] Result<ConversionReview> parse_conversion_review(std::string_view body,
                                                               std::size_t parts_max = 1);
// An upper bound of the memory that parse_conversion_review() takes for a body of that size,
// including its result.
[[nodiscard]] std::uint64_t conversion_review_bytes_max(std::uint64_t body_bytes);

// The bodies of answers. `response`: JSON. The API server checks the response itself: its uid, the
// number of objects, and that only labels and annotations in their metadata have changed.
[[nodiscard]] std::string conversion_answer(std::string_view response);
[[nodiscard]] std::string conversion_failure(std::string_view uid, std::string_view message);

}  // namespace hangar::admission
