// Bounds of what a host tells of its records, each with the reason for its number.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::seeing {

// Of a question: names, and numbers.
inline constexpr std::uint64_t kQuestionBytesMax = 16 * limits::kKiB;
inline constexpr std::size_t kTextBytesMax = 512;
// Of an answer: turns that are shown, and these with all their causes and requests. A cause takes
// some 200 bytes, so an answer is a few MiB at most.
inline constexpr std::size_t kTurnsMax = 1000;
inline constexpr std::size_t kWritesMax = 1000;
inline constexpr std::size_t kEntriesMax = 20'000;
// Of a table: that of so long. Guests of one are bounded as entries are.
inline constexpr std::chrono::seconds kWindowMax{3600};
// All 256 MiB are read in a few seconds; on a busy machine what is older is left out, and said.
inline constexpr std::chrono::seconds kReadMax{15};

// Of what one guest has used: rights, and names of objects of each. A guest chooses what it asks
// for.
inline constexpr std::size_t kUsesMax = 2000;
inline constexpr std::size_t kNamesPerUseMax = 32;

// Questions that are answered at a time: one of them reads, the other is authorised or sent.
inline constexpr std::size_t kAnswersMax = 2;
// Those of one user, or of the ServiceAccounts of one namespace, that wait for that.
inline constexpr std::size_t kWaitingPerUserMax = 4;
inline constexpr std::size_t kConnectionsMax = 64;
// Of one user, or the ServiceAccounts of one namespace. A live table asks every two seconds,
// whoever follows writes every second.
inline constexpr double kQuestionsPerSecond = 5;
inline constexpr double kQuestionsBurst = 30;
inline constexpr std::size_t kSharersMax = 1000;

// A bearer token: what an API server's header has room for.
inline constexpr std::size_t kTokenBytesMax = 16 * limits::kKiB;
// TokenReviews under way: whoever sends wrong tokens slows others that send tokens, and no more.
inline constexpr std::size_t kTokenReviewsMax = 8;
inline constexpr std::size_t kTokenReviewsWaitingMax = 64;
// Reviews about what one answer names: Secrets, and operators of others. What is beyond is
// withheld.
inline constexpr std::size_t kReviewsPerAnswerMax = 100;
// All of them together, for one answer.
inline constexpr std::chrono::seconds kAuthorisationMax{20};

}  // namespace hangar::seeing
