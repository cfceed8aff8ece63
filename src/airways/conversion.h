// What converters are given and what becomes of what they print: an instance is translated between
// the versions of its kind when the API server asks for it. Pure.
//
// The status is not the converter's: it is the same in every version, whatever a converter makes of
// it. A program that reads an instance into a type without a status would lose it.
#pragma once

#include "admission/conversion_review.h"
#include "airways/airway.h"
#include "base/result.h"

#include <string>
#include <string_view>

namespace hangar::airways {

// Where the API server asks for conversions, and for those of one Airway's instances.
inline constexpr std::string_view kConversionPath = "/crdconvert/";
[[nodiscard]] std::string conversion_path(const Airway& airway);

// Whether instances are converted by the Airway's converter. In a kind of one version there is
// nothing to convert, and no read depends on a host.
[[nodiscard]] bool has_conversion(const Airway& airway);

// The body of the answer, from what the converter printed: a ConversionReview with a response. A
// failure that it tells is passed on in its words. GuestFault when it printed something else.
[[nodiscard]] Result<std::string> converted(const admission::ConversionReview& asked,
                                            std::string_view printed);

}  // namespace hangar::airways
