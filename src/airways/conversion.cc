#include "airways/conversion.h"

#include "admission/conversion_review.h"
#include "airways/airway.h"
#include "base/assert.h"
#include "base/result.h"
#include "json/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

constexpr std::string_view kNoMetadata = R"({"metadata": {}})";

// While the API server merges an apply in another version, it has objects converted whose metadata
// it has taken out. It refuses the answer if that lacks the member `metadata`, which converters
// leave out or print as null when it is empty.
void add_metadata(json::Value& converted) {
  if (!converted.is_object()) return;
  json::Value& metadata = converted.get_object()["metadata"];
  if (metadata.is_null()) metadata = json::Object();
}

Result<> keep_status(std::string_view status, json::Value& converted) {
  if (status.empty() || !converted.is_object()) return {};
  converted.get_object()["status"] = HANGAR_TRY(json::parse(status));
  return {};
}

Result<json::Value> response_in(std::string_view printed) {
  Result<json::Value> review = json::parse(printed);
  if (!review) {
    return fail(ErrorKind::GuestFault,
                "the converter printed no ConversionReview: " + review.error().message());
  }
  json::Value* const response = json::find(*review, {"response"});
  if (response == nullptr || !response->is_object()) {
    return fail(ErrorKind::GuestFault, "the converter printed a ConversionReview without response");
  }
  return std::move(*response);
}

// Null when there are none.
json::Array* converted_objects(json::Value& response) {
  json::Value* const objects = json::find(response, {"convertedObjects"});
  return objects == nullptr ? nullptr : objects->if_array();
}

Result<> mend(json::Array& objects, std::span<const std::string> statuses) {
  const std::size_t count = std::min(objects.size(), statuses.size());
  for (std::size_t i = 0; i < count; ++i) {
    add_metadata(objects[i]);
    HANGAR_TRY(keep_status(statuses[i], objects[i]));
  }
  return {};
}

}  // namespace

std::string conversion_path(const Airway& airway) {
  return std::string(kConversionPath) + airway.name;
}

bool has_conversion(const Airway& airway) {
  const json::Array* const versions = json::array_at(airway.template_, {"versions"});
  return !airway.converter_url.empty() && versions != nullptr && versions->size() > 1;
}

Result<std::string> converted(const admission::ConversionReview& asked,
                              std::span<const std::string> printed) {
  if (asked.parts.empty()) {
    json::Value response = HANGAR_TRY(response_in(printed.front()));
    if (json::Array* const objects = converted_objects(response)) {
      HANGAR_TRY(mend(*objects, asked.statuses));
    }
    return admission::conversion_answer(std::move(response));
  }
  HANGAR_ASSERT(printed.size() == asked.parts.size(), "a converter ran for each part");
  json::Value whole;
  std::span<const std::string> statuses = asked.statuses;
  for (std::size_t part = 0; part < printed.size(); ++part) {
    json::Value response = HANGAR_TRY(response_in(printed[part]));
    // The API server refuses such a response, whatever objects are in it.
    if (json::string_at(response, {"uid"}) != asked.uid ||
        json::string_at(response, {"result", "status"}) != "Success") {
      return admission::conversion_answer(std::move(response));
    }
    json::Array* const objects = converted_objects(response);
    const std::size_t expected = asked.parts[part].object_count;
    const std::size_t found = objects == nullptr ? 0 : objects->size();
    if (objects == nullptr || found != expected) {
      return fail(ErrorKind::GuestFault,
                  fmt::format("the converter printed {} objects for {}", found, expected));
    }
    HANGAR_TRY(mend(*objects, statuses.first(expected)));
    statuses = statuses.subspan(expected);
    if (part == 0) {
      whole = std::move(response);
      continue;
    }
    json::Array& all = *converted_objects(whole);
    std::ranges::move(*objects, std::back_inserter(all));
  }
  return admission::conversion_answer(std::move(whole));
}

std::uint64_t converted_bytes_max(const admission::ConversionReview& asked,
                                  std::span<const std::string> printed) {
  // The answer is text beside the values that it is made of.
  std::uint64_t bytes = 0;
  for (const std::string& text : printed)
    bytes += json::parsed_bytes_max(text) + text.size();
  for (const std::string& status : asked.statuses) {
    bytes += json::parsed_bytes_max(status) + status.size();
    bytes += json::parsed_bytes_max(kNoMetadata) + kNoMetadata.size();
  }
  return bytes;
}

}  // namespace hangar::airways
