// A ConversionReview (apiextensions.k8s.io/v1) as a struct, and its answer: the API server asks for
// objects in another version of their kind. Pure.
#pragma once

#include "base/result.h"
#include "json/value.h"

#include <string>
#include <string_view>

namespace hangar::admission {

struct ConversionReview {
  std::string uid;
  std::string desired_api_version;  // "group/version"
  json::Array objects;
};

// InvalidInput says what is wrong with it.
[[nodiscard]] Result<ConversionReview> parse_conversion_review(std::string_view body);

// The bodies of answers. The API server checks the response itself: its uid, the number of objects,
// and that only labels and annotations in their metadata have changed.
[[nodiscard]] std::string conversion_answer(json::Value response);
[[nodiscard]] std::string conversion_failure(std::string_view uid, std::string_view message);

}  // namespace hangar::admission
