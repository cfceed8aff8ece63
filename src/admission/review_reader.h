// Reads the bodies of reviews: large ones on a worker, few at a time, and no more bytes than the
// host can hold. Anyone who reaches the webhooks may send them, so sources (http::ServerRequest)
// take turns, and one source may hold no more than half of the bound. The thread of its loop only.
#pragma once

#include "admission/review.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/fair_slots.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::admission {

// Bodies that the loop parses itself, within a millisecond.
inline constexpr std::size_t kParsedAtOnceBytesMax = 64 * limits::kKiB;
// How many reviews workers parse at the same time, and how many of one source wait for that.
inline constexpr std::size_t kParsingMax = 2;
inline constexpr std::size_t kParsingWaitingMax = 16;
// Size of one review: the new and the old object, and the fields around them. The API server
// accepts requests of 3 MiB.
inline constexpr std::uint64_t kReviewBytesMax = 2 * 3 * limits::kMiB + limits::kMiB;
// Size of all reviews without an answer. Parsed, they may take kReviewMemoryPerByte times as much
// memory: one that takes more, such as `[1,1,1`, counts as a larger one.
inline constexpr std::uint64_t kReviewMemoryPerByte = 8;
inline constexpr std::uint64_t kReviewsBytesMax = 32 * limits::kMiB;
inline constexpr std::uint64_t kSourceReviewsBytesMax = kReviewsBytesMax / 2;

class ReviewReader {
 public:
  // Holds the bytes of a review that has no answer yet, until this object is destroyed.
  class Bytes {
   public:
    Bytes(Bytes&& other) noexcept
        : reader_(std::exchange(other.reader_, nullptr)),
          source_(std::move(other.source_)),
          count_(other.count_) {}
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    Bytes& operator=(Bytes&&) = delete;
    ~Bytes() {
      if (reader_ != nullptr && count_ > 0) reader_->give_back(source_, count_);
    }

   private:
    friend class ReviewReader;
    Bytes(ReviewReader& reader, std::string source, std::uint64_t count)
        : reader_(&reader), source_(std::move(source)), count_(count) {
      if (count_ == 0) return;
      reader_->bytes_ += count_;
      reader_->source_bytes_[source_] += count_;
    }

    ReviewReader* reader_;  // Null once moved from.
    std::string source_;
    std::uint64_t count_;
  };
  struct Read {
    Review review;
    Bytes bytes;
  };

  // The reader, `loop` and `workers` outlive the results of read().
  ReviewReader(io::Loop& loop, io::Workers& workers);
  ReviewReader(const ReviewReader&) = delete;
  ReviewReader& operator=(const ReviewReader&) = delete;

  // Errors, for the sender: InvalidInput as of parse_review(), or too large for any review;
  // Unavailable: too many reviews are in progress; Cancelled.
  [[nodiscard]] io::Task<Result<Read>> read(std::string body, std::string source,
                                            std::stop_token stop);

 private:
  [[nodiscard]] io::Task<Result<Review>> parse_elsewhere(std::string body, std::string source,
                                                         std::stop_token stop);
  [[nodiscard]] std::uint64_t bytes_of(const std::string& source) const;
  void give_back(const std::string& source, std::uint64_t count);

  io::Workers& workers_;
  budget::FairSlots parsing_;  // A source is a tenant.
  std::uint64_t bytes_ = 0;
  std::map<std::string, std::uint64_t> source_bytes_;  // Only of sources that hold bytes.
};

}  // namespace hangar::admission
