// Bounds of requests, watches and credentials, each with the reason for its number.
#pragma once

#include "base/limits.h"
#include "kube/object_text.h"

#include <chrono>
#include <cstdint>

namespace hangar::limits {

// The size of kubeconfig files and of the files they name. Fleets of hundreds of clusters with
// embedded certificates make files of a few MiB; tokens and certificates are some KiB.
inline constexpr std::uint64_t kKubeconfigBytesMax = 16 * kMiB;
inline constexpr std::uint64_t kCredentialFileBytesMax = kMiB;

// client-go re-reads token files once a minute; kubelet renews them minutes before they expire.
inline constexpr std::chrono::seconds kCredentialFileAge{60};

// An exec plugin may have to ask an identity provider; no one is there to answer a prompt.
inline constexpr std::chrono::seconds kExecPluginMax{60};
inline constexpr std::uint64_t kExecPluginOutputBytesMax = kMiB;

// One request to the API server other than a watch. The server itself times out after 60 s, and its
// own response about that says more than ours.
inline constexpr std::chrono::seconds kRequestMax{70};

// Retries of a request that the server deferred, or of a read that lost its connection. client-go
// stops after 10; our callers have their own back-off and must learn of the failure before they
// look stuck.
inline constexpr std::uint32_t kRequestRetriesMax = 10;
inline constexpr std::chrono::seconds kRequestRetryTimeMax{30};

// The API server sends a bookmark a minute on a watch without changes. If a watch is silent for
// more than two minutes, the other end is gone.
inline constexpr std::chrono::seconds kWatchIdleMax{150};

// How much of the server's own message an error keeps.
inline constexpr std::uint64_t kServerMessageBytesMax = 8 * kKiB;

// Different warnings of the server that are remembered, so that each is logged once.
inline constexpr std::uint32_t kServerWarningsMax = 1000;

// One page of a list that has several items. It is in memory twice while it is parsed, and tenants
// decide how large the objects are. An object that does not fit gets a page of its own, which has
// room for kObjectTextBytesMax.
inline constexpr std::uint64_t kListPageBytesMax = 8 * kMiB + 64 * kKiB;

// A page of more than this makes the list request fewer items from then on. Smaller pages would
// cost more requests than they save memory.
inline constexpr std::uint64_t kListPageBytesWanted = 2 * kMiB;

// How much of a page is read before the rest of the loop has its turn: about a millisecond for the
// densest text. Without a worker, a single item is read at once, however long it is.
inline constexpr std::size_t kListSliceBytes = 128 * kKiB;

// The same for one event of a watch; a worker reads longer ones. And how many bytes of one watch
// may wait for a worker, the longest event (kObjectTextBytesMax) included: the API server hardly
// writes faster than a worker reads.
inline constexpr std::size_t kWatchLineAtOnceBytesMax = kListSliceBytes;
inline constexpr std::size_t kWatchLinesWaitingBytesMax = 16 * kMiB;
static_assert(kWatchLinesWaitingBytesMax >= kObjectTextBytesMax, "the longest event may wait");
// How many bytes a worker reads in one go, unless one line has more: some milliseconds.
inline constexpr std::size_t kWatchLinesReadTogetherBytesMax = 2 * kMiB;

// How many objects of a list are compared, or delivered to one subscriber, before the rest of the
// loop has its turn: about a millisecond, most of it the subscribers'.
inline constexpr std::uint64_t kCacheSliceObjects = 512;

// Freeing an object counts as this many: it may be the last one of a slab, which is then unmapped.
inline constexpr std::uint64_t kCacheFreedObjectCost = 16;

// A kind keeps its objects packed when their texts have so many bytes (kube/packing.h): fewer save
// less than the dictionary takes.
inline constexpr std::size_t kPackedKindBytesMin = kMiB;
// The samples that make a dictionary, and how much of each.
inline constexpr std::size_t kPackSamples = 16;
inline constexpr std::size_t kPackSampleBytesMax = 2 * kKiB;
// Smaller texts save little, and larger ones take the loop more than a millisecond.
inline constexpr std::size_t kPackedTextBytesMin = 512;
inline constexpr std::size_t kPackedTextBytesMax = 128 * kKiB;

// Changes of one scope that wait until its list has been handled, in bytes of their objects. A list
// of 100,000 objects takes about a second, in which a busy cluster changes a thousand of them.
// Beyond the bound, all waiting work is handled at once.
inline constexpr std::uint64_t kCacheWaitingBytesMax = 32 * kMiB;

}  // namespace hangar::limits
