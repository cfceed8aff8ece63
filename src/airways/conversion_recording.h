// Records runs of converters. A run is a turn of its Airway, which needs no request.
#pragma once

#include "abi/flight/evaluation.h"
#include "base/result.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "json/value.h"
#include "reconcile/recording.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace hangar::airways {

// The event of a run: what the API server asked for.
[[nodiscard]] std::string conversion_event(std::string_view kind,
                                           std::string_view desired_api_version,
                                           std::size_t object_count);

// For all Airways. Loop thread only.
class ConversionRecorder {
 public:
  // The API server does not authenticate itself for conversions, so anybody who reaches the
  // webhooks can have a converter run. Without a bound, that could fill the records of guests
  // without a namespace. A record has about 60 bytes.
  static constexpr TokenBucket::Options kRecordedRuns{.per_second = 10, .burst = 1000};

  // `recorder` outlives this object.
  explicit ConversionRecorder(reconcile::GuestRecorder& recorder)
      : recorder_(recorder), runs_(kRecordedRuns) {}

  // A converter has just run for this Airway. Runs beyond kRecordedRuns are not recorded.
  void ran(const json::Value& airway, std::string_view event, Instant began,
           std::string_view module_sha256, const Result<abi::flight::Output>& output);

 private:
  reconcile::GuestRecorder& recorder_;
  TokenBucket runs_;
};

}  // namespace hangar::airways
