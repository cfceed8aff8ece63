// What the recorder is told of flights: each run, and what is asked for because of it.
//
// To the recorder an instance or a Flight is a guest whose name says its resource:
// "backends.examples.com/web". A run is a turn; what it was woken by is the instance as it was
// then. Lookups are not recorded, nor are reviews.
#pragma once

#include "abi/flight/evaluation.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/object.h"
#include "recorder/record.h"
#include "recorder/recorder.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::airways {

// Of all flights of a host. Loop thread.
class FlightRecorder {
 public:
  // Null: nothing is recorded.
  explicit FlightRecorder(recorder::Recorder* recorder) : recorder_(recorder) {}

 private:
  friend class FlightRecording;
  recorder::Recorder* const recorder_;
  std::uint64_t last_turn_ = 0;  // Both ascend over all of them.
  std::uint64_t last_request_ = 0;
};

// Of one reconcile of one instance.
class FlightRecording {
 public:
  // `instance`: its state when the reconcile began.
  FlightRecording(FlightRecorder& recorder, const kube::Resource& resource,
                  const json::Value& instance);

  // The flight ran. `user`: as whom its release is carried out; empty: as the host.
  void ran(Instant began, std::string_view user, std::string_view module_sha256,
           const Result<abi::flight::Output>& output);
  // Its release is taken down, without a run.
  void taken_down(std::string_view user);

  // One request, of the turn before; its number. Nothing is recorded without a turn.
  struct Request {
    recorder::Verb verb = recorder::Verb::Other;
    const kube::Resource& resource;
    const kube::ObjectKey& key;
    std::string_view field_manager = {};
    bool is_dry_run = false;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] std::uint64_t asked(const Request& request);
  void answered(std::uint64_t request, const Result<json::Value>& answer);

 private:
  [[nodiscard]] recorder::Guest guest() const;
  void record(recorder::Turn turn);

  FlightRecorder& recorder_;
  const kube::Resource resource_;
  const kube::ObjectKey key_;
  const std::string name_;
  const std::string uid_;
  const std::uint64_t version_;
  std::uint64_t turn_ = 0;  // Zero: none yet.
};

}  // namespace hangar::airways
