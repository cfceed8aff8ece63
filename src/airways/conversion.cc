#include "airways/conversion.h"

#include "admission/conversion_review.h"
#include "airways/airway.h"
#include "base/result.h"
#include "json/value.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

}  // namespace

std::string conversion_path(const Airway& airway) {
  return std::string(kConversionPath) + airway.name;
}

bool has_conversion(const Airway& airway) {
  const json::Array* const versions = json::array_at(airway.template_, {"versions"});
  return !airway.converter_url.empty() && versions != nullptr && versions->size() > 1;
}

Result<std::string> converted(const admission::ConversionReview& asked, std::string_view printed) {
  Result<json::Value> review = json::parse(printed);
  if (!review) {
    return fail(ErrorKind::GuestFault,
                "the converter printed no ConversionReview: " + review.error().message());
  }
  json::Value* const response = json::find(*review, {"response"});
  if (response == nullptr || !response->is_object()) {
    return fail(ErrorKind::GuestFault, "the converter printed a ConversionReview without response");
  }
  json::Value* const objects = json::find(*response, {"convertedObjects"});
  if (objects != nullptr && objects->is_array()) {
    json::Array& made = objects->get_array();
    const std::size_t count = std::min(made.size(), asked.statuses.size());
    for (std::size_t i = 0; i < count; ++i) {
      add_metadata(made[i]);
      HANGAR_TRY(keep_status(asked.statuses[i], made[i]));
    }
  }
  return admission::conversion_answer(std::move(*response));
}

std::uint64_t converted_bytes_max(const admission::ConversionReview& asked,
                                  std::string_view printed) {
  // The answer is text beside the values that it is made of.
  std::uint64_t bytes = json::parsed_bytes_max(printed) + printed.size();
  for (const std::string& status : asked.statuses) {
    bytes += json::parsed_bytes_max(status) + status.size();
    bytes += json::parsed_bytes_max(kNoMetadata) + kNoMetadata.size();
  }
  return bytes;
}

}  // namespace hangar::airways
