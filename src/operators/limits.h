// Bounds of operators, each with the reason for its number.
#pragma once

#include "abi/kube_runtime/limits.h"
#include "base/limits.h"
#include "gateway/limits.h"
#include "output/limits.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

// Answers that wait for a guest that does not take them (it sleeps, or is in a long turn). A guest
// with more is restarted: its lists are shorter than that.
inline constexpr std::uint64_t kGuestAnswersBytesMax = 64 * kMiB;

// Such answers, and those in a turn, count for the namespace and the host in steps of this size, so
// that small answers cost nothing and none is refused for what others have.
inline constexpr std::uint64_t kAnswersCountedStep = 64 * kKiB;

// What spec.env and spec.files of an Operator name, and what is read for them. The host holds it
// from before the guest starts.
inline constexpr std::size_t kOperatorInputsMax = 256;
inline constexpr std::uint64_t kOperatorInputBytesMax = 8 * kMiB;

// A failed guest is restarted after 1 s, then after twice as long each time, as the kubelet does
// with containers (which begins at 10 s). After kOperatorStableMin without a failure, the back-off
// begins at 1 s again.
inline constexpr std::chrono::seconds kOperatorBackoffMin{1};
inline constexpr std::chrono::seconds kOperatorBackoffMax{300};
inline constexpr std::chrono::seconds kOperatorStableMin{600};

// A guest that could not be suspended (the disk is full) stays in memory for this long: each
// attempt reads all of its memory and writes a line to the log.
inline constexpr std::chrono::seconds kOperatorSleepRetry{10};

// How long a guest stays in memory for the answer to a request, which the API server usually gives
// within milliseconds: suspending and resuming would cost more.
inline constexpr std::chrono::milliseconds kOperatorAnswerWait{100};

// How long an event waits for the answer to a request under way. The API server usually tells of a
// write before it answers: apart, they are two turns, and the guest does not know yet that its
// write has succeeded in the first one.
inline constexpr std::chrono::milliseconds kOperatorEventHold{10};

// How long the resume of a wake may take if the Operator does not say. Guests of 2 MiB resume
// within a millisecond; one that takes longer than this is loaded before it is needed.
inline constexpr std::chrono::milliseconds kOperatorWakeLatency{20};

// Modules whose files are dropped from the page cache at once; each is some system calls.
inline constexpr std::size_t kPageCacheDropsMax = 1000;
// A layer that was used less than this ago stays in the page cache: its guest probably wakes again
// soon, and would read it from the disk.
inline constexpr std::chrono::seconds kLayerFileIdle{30};

// What loading ahead leaves free, for guests that are needed now: the fixed part of a guest, and a
// small one.
inline constexpr std::uint64_t kLoadAheadHeadroom = 4 * kMiB;

// Operators that start at the same time. Each holds a guest, requests and their buffers until it
// has listed what it watches. A host that starts a thousand together needs three times the heap,
// and keeps it, because long-lived allocations lie between short-lived ones. A thousand concurrent
// lists would strain the API server, too. An operator that has not finished after the wait gives up
// its place all the same.
inline constexpr std::size_t kOperatorStartsMax = 8;
inline constexpr std::chrono::milliseconds kOperatorStartWait{100};

// The same of large guests, such as programs in Go: their memory counts more than how fast they
// start, so they keep their places until they have listed, or for this wait. While further ones
// wait, those that have started and been idle for kStartedIdle leave memory if guests in memory
// have more than kStartedBytes together, and do not stay there for sleep.after.
inline constexpr std::uint64_t kLargeGuestBytes = 16 * kMiB;
inline constexpr std::size_t kLargeStartsMax = 4;
inline constexpr std::chrono::seconds kLargeStartWait{2};
inline constexpr std::chrono::milliseconds kStartedIdle{100};
inline constexpr std::uint64_t kStartedBytes = 32 * kMiB;

// Turns at the same time, including those that wait for a processor. Each holds a guest's memory
// and its answers as text; the answers of turns beyond that wait as pointers.
inline constexpr std::size_t kOperatorTurnsMax = 64;

// How long an operator whose requests are refused is not told about again: a guest that repeats its
// request would fill the namespace with Events.
inline constexpr std::chrono::seconds kOperatorBoundTold{300};

// Requests to other servers than the API server: at once of all operators, and of one namespace. A
// slow server holds its place until the time limit, and the namespace that named it only its own.
inline constexpr std::size_t kOutboundRequestsMax = 64;
inline constexpr std::size_t kOutboundRequestsPerTenantMax = 16;

// Those of one operator that wait or are being answered; further ones are refused. Bodies of those
// of one namespace: four of the largest.
inline constexpr std::size_t kOutboundPendingMax = 32;
inline constexpr std::uint64_t kOutboundBodyBytesMax = 16 * kMiB;

// Of one namespace. A certificate's or a secret's server answers some requests per object, and
// limits its clients to about as much.
inline constexpr double kOutboundPerSecond = 20;
inline constexpr double kOutboundBurst = 40;

// The response as a whole, and the time until it is there: an API's answer, not a download.
inline constexpr std::uint64_t kOutboundResponseBytesMax = 8 * kMiB;
inline constexpr std::chrono::seconds kOutboundTimeout{30};

// How long idle connections and the rate of a namespace are kept: longer than the rate takes to be
// as if unused, so that a pause gains nothing.
inline constexpr std::chrono::seconds kOutboundLinger{90};

// The text of a refusal as a header; namespaces with series of their own.
inline constexpr std::size_t kOutboundErrorBytesMax = 1024;
inline constexpr std::size_t kOutboundSeriesMax = 100;

// The text of a guest's own metrics, kept for scrapes while it sleeps. A controller has some 50
// KiB.
inline constexpr std::uint64_t kMetricsBytesMax = kMiB;

// How long a scrape waits for a guest in memory. Prometheus waits ten seconds for the host.
inline constexpr std::chrono::milliseconds kMetricsWait{2000};

// A guest that someone has scraped in this time is asked for its metrics before it goes to sleep.
// Prometheus' default interval is one minute.
inline constexpr std::chrono::minutes kMetricsWanted{5};

// Reviews that wait for one operator, or that it has not answered; of one namespace; of all. A slow
// operator holds its connections of the server that the host's own webhooks use, too: it has some
// five hundred, and the bodies below are half of what it takes. One namespace also leaves as many
// places, and as many bytes of bodies, free as it holds.
inline constexpr std::size_t kReviewsPerOperatorMax = 32;
inline constexpr std::size_t kReviewsPerTenantMax = 64;
inline constexpr std::size_t kReviewsMax = 192;
inline constexpr std::uint64_t kReviewsBodyBytesMax = 32 * kMiB;

// The body of one: the object as it is and as it was. Also that of one answer, and of a conversion
// of a page of objects.
inline constexpr std::uint64_t kReviewBodyBytesMax = 7 * kMiB;

// What a guest is given in one turn, unless one review alone has more: it is in the guest's memory
// twice while it is read.
inline constexpr std::uint64_t kReviewsTurnBytesMax = 4 * kMiB;

// Reviews that a guest has and has not answered. One less than it may have of all requests, the
// last of which is for its metrics.
inline constexpr std::size_t kReviewsAskedMax = kGuestInboundMax - 1;

// Webhook configurations that one Operator names.
inline constexpr std::size_t kWebhookConfigurationsMax = 16;

// How soon a configuration that could not be kept is looked at again: someone may be about to give
// the right, or to make the object. After a write by others, not sooner than the second, so that
// two writers that disagree do not write all the time.
inline constexpr std::chrono::seconds kWebhooksRecheck{15};
inline constexpr std::chrono::seconds kWebhooksRewrite{5};

// Operators that have series of their own, about sixty each; all others share one set.
inline constexpr std::size_t kOperatorSeriesMax = 500;

// When a guest counts as restless: its timer has woken it so often for nothing without a useful
// wake in between, and for so long. Programs that wait for their caches look ten times a second,
// which ends by itself.
inline constexpr int kRestlessWakes = 20;
inline constexpr std::chrono::seconds kRestlessAfter{10};

// Useful wakes among the last 32 that end it: a guest that writes at one wake of fifteen has a
// reason for its timer.
inline constexpr int kRestlessUsefulWakes = 3;

// A timer that lets the guest sleep for longer than this costs next to nothing, and looks like a
// resync.
inline constexpr std::chrono::minutes kRestlessPauseMax{2};

// Kinds of answers (method and code) that an operator's series tell apart.
inline constexpr std::size_t kOperatorAnswerKindsMax = 40;

static_assert(kGatewayRequestsOpenMax >= kGuestRequestsMax &&
                  kGatewayRequestsWaitingMax >= kGuestRequestsWaitingMax,
              "what the contract allows a guest, the gateway takes");
static_assert(kPrintedLineBytesMax >= kOperatorLineBytesMax &&
                  kPrintedAtOnceBytesMax >= kOperatorOutputBytesMax,
              "what a guest prints in a turn is kept without being cut again");

}  // namespace hangar::limits
