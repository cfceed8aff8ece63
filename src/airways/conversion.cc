#include "airways/conversion.h"

#include "admission/conversion_review.h"
#include "airways/airway.h"
#include "base/result.h"
#include "json/value.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

void keep_status(const json::Value& original, json::Value& converted) {
  const json::Value* const status = json::find(original, {"status"});
  if (status != nullptr && converted.is_object()) converted.get_object()["status"] = *status;
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
    const std::size_t count = std::min(made.size(), asked.objects.size());
    for (std::size_t i = 0; i < count; ++i)
      keep_status(asked.objects[i], made[i]);
  }
  return admission::conversion_answer(std::move(*response));
}

}  // namespace hangar::airways
