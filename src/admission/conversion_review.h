// A ConversionReview (apiextensions.k8s.io/v1) as a struct, and its answer: the API server requests
// objects in another version of their kind. Pure.
//
// A list of objects may be large, and a converter runs for seconds. So only text is kept meanwhile:
// the whole body for the converter, and the parts of each object that the converter must
// not change.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

struct ConversionReview {
  std::string uid;
  std::string desired_api_version;    // "group/version"
  std::vector<std::string> statuses;  // The status of each object, as JSON; empty: it has none.
};

// InvalidInput says what is wrong with it.
[[nodiscard]] Result<ConversionReview> parse_conversion_review(std::string_view body);

// The bodies of answers. The API server checks the response itself: its uid, the number of objects,
// and that only labels and annotations in their metadata have changed.
[[nodiscard]] std::string conversion_answer(json::Value response);
[[nodiscard]] std::string conversion_failure(std::string_view uid, std::string_view message);

}  // namespace hangar::admission
