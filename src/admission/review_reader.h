// Reads the bodies of reviews: large ones on a worker, few at a time, and no more bytes than the
// host can hold. Whoever reaches the webhooks may send them.
// Loop thread only.
#pragma once

#include "admission/review.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::admission {

// What the loop parses itself: within a millisecond.
inline constexpr std::size_t kParsedAtOnceBytesMax = 64 * limits::kKiB;
// On workers, which run guests, too; and waiting for that.
inline constexpr std::size_t kParsingMax = 2;
inline constexpr std::size_t kParsingWaitingMax = 32;
// Of one review: the object as it is and as it was, and what is said about them. The API server
// takes requests of 3 MiB.
inline constexpr std::uint64_t kReviewBytesMax = 2 * 3 * limits::kMiB + limits::kMiB;
// Of all reviews without an answer. As values they may take a dozen times as much.
inline constexpr std::uint64_t kReviewsBytesMax = 32 * limits::kMiB;

class ReviewReader {
 public:
  // Bytes of a review that has no answer yet, until it is destroyed.
  class Bytes {
   public:
    Bytes(Bytes&& other) noexcept
        : reader_(std::exchange(other.reader_, nullptr)), count_(other.count_) {}
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    Bytes& operator=(Bytes&&) = delete;
    ~Bytes() {
      if (reader_ != nullptr) reader_->bytes_ -= count_;
    }

   private:
    friend class ReviewReader;
    Bytes(ReviewReader& reader, std::uint64_t count) : reader_(&reader), count_(count) {
      reader_->bytes_ += count_;
    }

    ReviewReader* reader_;  // Null once moved from.
    std::uint64_t count_;
  };
  struct Read {
    Review review;
    Bytes bytes;
  };

  // Outlives what it has read. So do the two.
  ReviewReader(io::Loop& loop, io::Workers& workers);
  ReviewReader(const ReviewReader&) = delete;
  ReviewReader& operator=(const ReviewReader&) = delete;

  // Errors, for the sender: InvalidInput as of parse_review(), or too large for any review;
  // Unavailable: too much is under way; Cancelled.
  [[nodiscard]] io::Task<Result<Read>> read(std::string body, std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<Review>> parse_elsewhere(std::string body, std::stop_token stop);

  io::Workers& workers_;
  io::Semaphore parsing_;
  std::size_t waiting_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace hangar::admission
