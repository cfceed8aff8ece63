// The reviews that the API server sends to operators: which operator each is for, and how many
// there may be at a time. They come from the host's webhook server and go to the guests as they
// are; nothing of them is kept or logged.
//
// Guarantees: an answer within the time that the API server waits; a refusal says why. A namespace
// cannot take all places.
// Loop thread only.
#pragma once

#include "admission/server.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "io/task.h"
#include "kube/object.h"
#include "operators/fleet.h"
#include "operators/webhook_configurations.h"
#include "operators/webhook_source.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>

namespace hangar::operators {

// How many reviews are under way, and of whom. One namespace gets a second place only if it then
// leaves as many places, and as many bytes, free as it holds: so others find room, however many
// namespaces take what they can.
class ReviewPlaces {
 public:
  // Held by a review until it is answered.
  class Place {
   public:
    Place(ReviewPlaces& places, std::string tenant, std::uint64_t bytes);
    Place(Place&& other) noexcept;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    ReviewPlaces* places_;  // Null once moved from.
    std::string tenant_;
    std::uint64_t bytes_;
  };
  ReviewPlaces() = default;
  ReviewPlaces(const ReviewPlaces&) = delete;
  ReviewPlaces& operator=(const ReviewPlaces&) = delete;

  // Unavailable: too many, or too much; InvalidInput: too large for any review.
  [[nodiscard]] Result<Place> take(std::string tenant, std::uint64_t bytes);

 private:
  struct Held {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Held> by_tenant_;
  Held all_;
};

class OperatorReviews {
 public:
  // What the host knows of an operator. A host that has just become the leader has not come to all
  // of them yet.
  struct Knowledge {
    // Whether an operator that answers no reviews may answer them later.
    std::function<bool(const kube::ObjectKey& key)> may_answer_later;
    // Whether its configurations have been read, or there is no such operator.
    std::function<bool(const kube::ObjectKey& key)> are_webhooks_read;
  };

  // All of it outlives the reviews.
  OperatorReviews(Metrics& metrics, const Fleet& fleet, const WebhookConfigurations& configurations,
                  Knowledge knowledge);
  OperatorReviews(const OperatorReviews&) = delete;
  OperatorReviews& operator=(const OperatorReviews&) = delete;

  // This host runs the operators from now on. Before, it answers 503.
  void lead() { is_leading_ = true; }
  void leave() { is_leading_ = false; }

  [[nodiscard]] io::Task<Result<http::Response>> answer(admission::Passed passed,
                                                        std::stop_token stop);

 private:
  [[nodiscard]] io::Task<http::Response> hand_over(ReviewTarget target, admission::Passed passed,
                                                   std::stop_token stop);
  [[nodiscard]] http::Response refuse(const char* result, int status, std::string words);
  void count(const char* result);

  Metrics& metrics_;
  Histogram& seconds_;
  const Fleet& fleet_;
  const WebhookConfigurations& configurations_;
  const Knowledge knowledge_;
  ReviewPlaces places_;
  bool is_leading_ = false;
};

}  // namespace hangar::operators
