// Limits of the server that shows records, each with the reason for its value.
#pragma once

#include "base/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::seeing {

// Size of a request and of each text in it; it has only names and numbers.
inline constexpr std::uint64_t kQuestionBytesMax = 16 * limits::kKiB;
inline constexpr std::size_t kTextBytesMax = 512;
// Turns and writes in an answer, and all entries in it: turns, causes, requests and timers. A cause
// takes about 200 bytes, so an answer takes a few MiB at most. A body counts as one for each piece.
inline constexpr std::size_t kTurnsMax = 1000;
inline constexpr std::size_t kWritesMax = 1000;
inline constexpr std::size_t kEntriesMax = 20'000;
inline constexpr std::size_t kBodyPieceBytes = 200;
// Period that a table of guests may cover. Its guests are limited to kEntriesMax.
inline constexpr std::chrono::seconds kWindowMax{3600};
// Time to read. 256 MiB of records take a few seconds; on a busy machine older records are left
// out, and the answer says so.
inline constexpr std::chrono::seconds kReadMax{15};

// Rights that one guest has used, and names of objects for each. A guest chooses its requests, so
// both are limited.
inline constexpr std::size_t kUsesMax = 2000;
inline constexpr std::size_t kNamesPerUseMax = 32;

// Rows of the table of costs: pairs of a namespace and a module. A row takes some 300 bytes.
inline constexpr std::size_t kCostRowsMax = 10'000;
// Rows of one namespace: a user who changes the module of an Operator again and again takes no rows
// from namespaces that come later.
inline constexpr std::size_t kCostModulesMax = 100;
// Guests with requests whose turn is not recorded yet.
inline constexpr std::size_t kCostPendingMax = 1000;

// Requests that are answered at the same time: one reads, the other is authorised or sent.
inline constexpr std::size_t kAnswersMax = 2;
// Requests of one user, or of the ServiceAccounts of one namespace, that wait to be answered.
inline constexpr std::size_t kWaitingPerUserMax = 4;
inline constexpr std::size_t kConnectionsMax = 64;
// Rate of one user, or of the ServiceAccounts of one namespace. A live table sends a request every
// two seconds; following writes, one every second.
inline constexpr double kQuestionsPerSecond = 5;
inline constexpr double kQuestionsBurst = 30;
inline constexpr std::size_t kSharersMax = 1000;

// Instances of an Airway whose turns a user may ask for who may not get all of them. Each needs a
// review, unless one for its namespace allows it.
inline constexpr std::size_t kInstancesMax = 1000;

// Size of a bearer token; tokens of ServiceAccounts take about 1 KiB.
inline constexpr std::size_t kTokenBytesMax = 16 * limits::kKiB;
// TokenReviews at the same time. Senders of wrong tokens delay only other callers with tokens.
inline constexpr std::size_t kTokenReviewsMax = 8;
inline constexpr std::size_t kTokenReviewsWaitingMax = 64;
// SubjectAccessReviews for the Secrets in an answer, for the guests of one resource, or for the
// rows of a table. Names and rows beyond that are withheld.
inline constexpr std::size_t kReviewsPerAnswerMax = 100;
// Time for all reviews of one answer.
inline constexpr std::chrono::seconds kAuthorisationMax{20};

}  // namespace hangar::seeing
