// What the recorder receives about guests that run from time to time for an object of the cluster:
// flights for their instances, machines for their workflows.
//
// The recorder names such a guest by its resource, "backends.examples.com/web"; the guest does not
// stay alive between its turns. Loop thread.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "recorder/record.h"
#include "recorder/recorder.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::reconcile {

// Shared by all such guests of one contract.
class GuestRecorder {
 public:
  // Null: nothing is recorded.
  GuestRecorder(recorder::Recorder* recorder, recorder::Contract contract)
      : recorder_(recorder), contract_(contract) {}

  [[nodiscard]] bool is_on() const { return recorder_ != nullptr; }
  // Whether requests and wakings name traces.
  [[nodiscard]] bool is_tracing() const { return is_on() && recorder_->trace_ids() != nullptr; }

 private:
  friend class GuestRecording;
  recorder::Recorder* const recorder_;
  const recorder::Contract contract_;
  std::uint64_t last_turn_ = 0;  // Both count over all guests.
  std::uint64_t last_request_ = 0;
};

// Records one reconcile of one guest.
class GuestRecording {
 public:
  // `object`: its state when the reconcile began.
  GuestRecording(GuestRecorder& recorder, const kube::Resource& resource,
                 const json::Value& object);
  // Since when the reconcile had been queued; std::nullopt: it was not. For its first turn.
  void queued_at(std::optional<Instant> at) { queued_at_ = at; }

  [[nodiscard]] bool is_on() const { return recorder_.is_on(); }

  // One request, made by the current turn. Without a turn nothing is recorded.
  struct Request {
    recorder::Verb verb = recorder::Verb::Other;
    const kube::Resource& resource;
    const kube::ObjectKey& key;
    std::string_view subresource = {};
    std::string_view field_manager = {};
    bool is_dry_run = false;
    std::uint64_t version = 0;  // As recorder::Asked has it.
  };
  // Records a request as its client sends it. Objects that the request refers to outlive this.
  class Exchange final : public kube::RequestObserver {
   public:
    Exchange(GuestRecording& recording, const Request& request)
        : recording_(recording), request_(request) {}
    // Returns the traceparent of the request. A further request is another attempt.
    [[nodiscard]] std::string on_request(std::uint64_t body_bytes) override;
    void on_response(int status, std::uint64_t body_bytes) override;
    // Records the answer.
    void end(const Result<json::Value>& result);

   private:
    [[nodiscard]] recorder::Answered answered() const;

    GuestRecording& recording_;
    const Request request_;
    std::uint64_t id_ = 0;      // Zero: none is recorded.
    std::uint64_t status_ = 0;  // Zero: there is no answer.
    std::uint64_t bytes_ = 0;
  };
  // A read of the current turn that has been answered.
  struct Read {
    const kube::Resource& resource;
    const kube::ObjectKey& key;
    Instant asked_at;
    Instant answered_at;
    std::uint64_t status = 0;  // As recorder::Answered has it.
    std::uint64_t bytes = 0;
    std::uint64_t version = 0;  // Of the object that was read; zero: there is none.
  };
  void has_read(const Read& read);
  // Sends a request with its observer. Null: not recorded.
  using Send = std::function<kube::Client::ValueTask(kube::RequestObserver* observer)>;
  // Sends it, waits for the answer, and records both. Objects that `request` refers to outlive the
  // task.
  [[nodiscard]] kube::Client::ValueTask recorded(Request request, Send send);

 protected:
  // The object that the guest runs for, as it was when the reconcile began; a view into this
  // object.
  [[nodiscard]] recorder::Object object() const;
  // The trace that its annotation names, while there are traces; empty: none.
  [[nodiscard]] std::string_view traceparent() const { return traceparent_; }
  // A change of that object.
  [[nodiscard]] recorder::Waking woken_by_object(recorder::Waking::Cause cause) const {
    return {.cause = cause, .object = object(), .traceparent = traceparent_};
  }
  // From now on requests belong to this turn. Fills in the turn's guest, uid, number and arrival,
  // and returns the number. Call it only if a recorder is set.
  std::uint64_t record(recorder::Turn turn);
  // From now on requests belong to an earlier turn again.
  void go_back_to(std::uint64_t turn) { turn_ = turn; }
  // Zero: none yet.
  [[nodiscard]] std::uint64_t turn() const { return turn_; }
  // Zero: none since then.
  [[nodiscard]] std::uint64_t last_request() const { return last_request_; }
  void forget_request() { last_request_ = 0; }

 private:
  [[nodiscard]] recorder::Guest guest() const;
  // Returns the number of the request; zero: it is not recorded.
  [[nodiscard]] std::uint64_t asked(const Request& request, Instant at, std::uint64_t bytes);

  GuestRecorder& recorder_;
  const kube::Resource resource_;
  const kube::ObjectKey key_;
  const std::string name_;
  const std::string uid_;
  const std::uint64_t version_;
  const std::string traceparent_;
  std::optional<Instant> queued_at_;  // Until the first turn.
  std::uint64_t turn_ = 0;
  std::uint64_t last_request_ = 0;  // Of this turn, until it is forgotten.
};

// Zero where it is not known.
[[nodiscard]] std::uint64_t version_of(const json::Value& object);

}  // namespace hangar::reconcile
