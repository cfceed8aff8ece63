#include "admission/conversion_review.h"

#include "base/invalid.h"
#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::admission {

namespace {

constexpr std::string_view kConversionApiVersion = "apiextensions.k8s.io/v1";
constexpr std::string_view kConversionKind = "ConversionReview";

// Divides the objects of the document, which it takes out, evenly by number.
std::vector<ConversionReview::Part> split(json::Value document, std::size_t part_count) {
  json::Value* const place = json::find(document, {"request", "objects"});
  json::Array objects = std::move(place->get_array());
  std::vector<ConversionReview::Part> parts;
  parts.reserve(part_count);
  for (std::size_t part = 0; part < part_count; ++part) {
    const std::size_t begin = objects.size() * part / part_count;
    const std::size_t end = objects.size() * (part + 1) / part_count;
    json::Array some;
    some.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i)
      some.push_back(std::move(objects[i]));
    *place = std::move(some);
    parts.push_back({.body = json::dump(document), .object_count = end - begin});
  }
  return parts;
}

}  // namespace

Result<ConversionReview> parse_conversion_review(std::string_view body, std::size_t parts_max) {
  json::Value document = HANGAR_TRY(json::parse(body));
  if (json::string_at(document, {"apiVersion"}) != kConversionApiVersion ||
      json::string_at(document, {"kind"}) != kConversionKind) {
    return invalid(fmt::format("expected {} {}, not {} {}", kConversionApiVersion, kConversionKind,
                               json::string_at(document, {"apiVersion"}),
                               json::string_at(document, {"kind"})));
  }
  ConversionReview review{.uid = std::string(json::string_at(document, {"request", "uid"})),
                          .desired_api_version = std::string(
                              json::string_at(document, {"request", "desiredAPIVersion"}))};
  if (review.uid.empty()) return invalid("request.uid: is required");
  if (review.desired_api_version.empty()) {
    return invalid("request.desiredAPIVersion: is required");
  }
  const json::Array* const objects = json::array_at(document, {"request", "objects"});
  if (objects == nullptr) return invalid("request.objects: is required");
  review.statuses.reserve(objects->size());
  for (const json::Value& object : *objects) {
    const json::Value* const status = json::find(object, {"status"});
    review.statuses.push_back(status != nullptr ? json::dump(*status) : std::string());
  }
  const std::size_t part_count =
      std::min({parts_max, objects->size(), body.size() / kConversionPartBytesMin});
  if (part_count > 1) review.parts = split(std::move(document), part_count);
  return review;
}

std::string conversion_answer(json::Value response) {
  return json::dump(json::Object{{"apiVersion", kConversionApiVersion},
                                 {"kind", kConversionKind},
                                 {"response", std::move(response)}});
}

std::string conversion_failure(std::string_view uid, std::string_view message) {
  return conversion_answer(
      json::Object{{"uid", uid},
                   {"convertedObjects", json::Array()},
                   {"result", json::Object{{"status", "Failure"}, {"message", message}}}});
}

}  // namespace hangar::admission
