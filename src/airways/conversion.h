// Conversion of instances between the versions of their kind: whether it is needed, and the answer
// that is made from a converter's output. Pure.
//
// A converter does not change the status, which is the same in every version, whatever the
// converter prints. A program that reads an instance into a type without a status would lose it.
#pragma once

#include "admission/conversion_review.h"
#include "airways/airway.h"
#include "base/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hangar::airways {

// The path of conversions, and the path for one Airway's instances.
inline constexpr std::string_view kConversionPath = "/crdconvert/";
[[nodiscard]] std::string conversion_path(const Airway& airway);

// Whether the Airway's converter converts instances. A kind with one version needs no conversion,
// and no read of it depends on a host.
[[nodiscard]] bool has_conversion(const Airway& airway);

// The body of the answer: the ConversionReview that the converter printed, with a response.
// `printed`: one text for each part of the review. A failure in it is passed on unchanged.
// GuestFault if the converter printed something else, or if the answer to one of several parts does
// not have as many objects as the part: the objects of other parts would be taken for one another.
[[nodiscard]] Result<std::string> converted(const admission::ConversionReview& asked,
                                            std::span<const std::string> printed);
// An upper bound of the memory that converted() needs for these arguments.
[[nodiscard]] std::uint64_t converted_bytes_max(const admission::ConversionReview& asked,
                                                std::span<const std::string> printed);

}  // namespace hangar::airways
