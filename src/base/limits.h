// Every bound in the host, in one place, each with the reason for its number.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hangar::limits {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// etcd refuses requests over 1.5 MiB, so a larger object can never have been stored.
inline constexpr std::uint64_t kObjectBytesMax = 3 * kMiB / 2;

// A response body that is not a stream: a list page of 500 objects of the size above would not fit,
// but the API server itself refuses to build much more than this for one page in practice.
inline constexpr std::uint64_t kResponseBytesMax = 256 * kMiB;

// Headers of one response, and of one request to our own server. Larger ones are an attack or a
// loop of cookies.
inline constexpr std::uint64_t kHeaderBytesMax = 256 * kKiB;
inline constexpr std::uint64_t kServerHeaderBytesMax = 64 * kKiB;

// A server that does not acknowledge what is sent, or answers no probe, for so long is gone. Longer
// than a failover of a load balancer takes, shorter than anybody wants to act on old news.
inline constexpr std::chrono::seconds kDeadPeerMax{30};

// Ours; the server has its own bound (kube-apiserver: 100 to 1000), beyond which another connection
// is opened.
inline constexpr long kStreamsPerConnectionMax = 10'000;

// Connections to one server that speaks HTTP/2: even at 100 streams each enough for every watch and
// request of a host, and no storm of handshakes when a thousand requests are made at once.
inline constexpr long kHttp2ConnectionsMax = 16;

// Idle connections kept per Transport: a burst of HTTP/1.1 requests leaves many.
inline constexpr long kIdleConnectionsMax = 32;

// Connections to our own server: kubelet's probes, a few Prometheus, the API server's webhooks.
inline constexpr std::size_t kServerConnectionsMax = 512;

// A slow client of our own server: for its request, for taking the response, and in between.
inline constexpr std::chrono::seconds kServerReadMax{10};
inline constexpr std::chrono::seconds kServerWriteMax{30};
inline constexpr std::chrono::seconds kServerIdleMax{90};

// Nesting of JSON and YAML documents. Deeper input is an attack on the parser's stack; the deepest
// CRD schemas in the wild stay below 60.
inline constexpr std::uint32_t kDocumentDepthMax = 128;

// What the aliases of one YAML text may add to it when they are written out. Manifests share a few
// labels and environments that way; a few lines of nested aliases make gigabytes.
inline constexpr std::uint64_t kAliasBytesMax = 16 * kMiB;

// Differing lines up to which a diff is the smallest possible: its memory grows with their square.
inline constexpr std::size_t kDiffLinesMax = 2000;

// A flight's stdout: what one module may ask us to apply. The largest published flight (the ArgoCD
// chart) prints 635 kB.
inline constexpr std::uint64_t kFlightOutputBytesMax = 16 * kMiB;

// A flight's stderr ends up in an error message; the rest is dropped with a note.
inline constexpr std::uint64_t kFlightErrorBytesMax = 64 * kKiB;

// What one evaluation may ask us to apply: each is a request and a record of ours. Large charts
// have a few hundred.
inline constexpr std::uint64_t kFlightResourcesMax = 5000;

// A shorter fixDriftInterval would keep a core busy with one idle instance.
inline constexpr std::chrono::milliseconds kFixDriftIntervalMin{100};

// metav1.Condition's schema allows no longer message.
inline constexpr std::uint64_t kConditionMessageBytesMax = 32 * kKiB;

// The API server's bound on the data of one Secret: a revision of a release's history.
inline constexpr std::uint64_t kSecretBytesMax = kMiB;

// A revision after decompression: a flight's output and what we add to each of its resources.
inline constexpr std::uint64_t kRevisionBytesMax = 2 * kFlightOutputBytesMax;

// Uncompressed module. The largest published flight (Helm-embedding PostgreSQL) has 81.8 MB.
inline constexpr std::uint64_t kModuleBytesMax = 256 * kMiB;

// Fetching one module: 82 MB over a slow line of 3 Mbit/s. A source that is silent for the second
// time is as good as gone.
inline constexpr std::chrono::seconds kModuleDownloadMax{240};
inline constexpr std::chrono::seconds kModuleDownloadIdleMax{30};

// Manifests, token answers and docker configs. The distribution specification asks registries to
// take manifests of up to 4 MiB.
inline constexpr std::uint64_t kRegistryAnswerBytesMax = 4 * kMiB;

// Fetched modules on disk, gzipped: some 250 Go flights of 4 MB.
inline constexpr std::uint64_t kModuleStoreBytesMax = 1024 * kMiB;
// References whose last known digest is remembered; a line of some 400 bytes each.
inline constexpr std::uint32_t kModuleReferencesMax = 4096;

// What one guest may allocate when its Airway does not say.
inline constexpr std::uint64_t kGuestMemoryBytesMax = 512 * kMiB;

// yoke's default for one evaluation.
inline constexpr std::chrono::seconds kGuestCallMax{10};

// client-go's defaults for leader election: lease 15 s, renew deadline 10 s, retry 2 s.
inline constexpr std::chrono::seconds kLeaseDuration{15};
inline constexpr std::chrono::seconds kLeaseRenewDeadline{10};
inline constexpr std::chrono::seconds kLeaseRetryPeriod{2};

// Kubeconfig files and what they name. Fleets of hundreds of clusters with embedded certificates
// make files of a few MiB; tokens and certificates are some KiB.
inline constexpr std::uint64_t kKubeconfigBytesMax = 16 * kMiB;
inline constexpr std::uint64_t kCredentialFileBytesMax = kMiB;

// client-go re-reads token files once a minute; kubelet renews them minutes before they expire.
inline constexpr std::chrono::seconds kCredentialFileAge{60};

// An exec plugin may have to ask an identity provider; nobody can answer a prompt.
inline constexpr std::chrono::seconds kExecPluginMax{60};
inline constexpr std::uint64_t kExecPluginOutputBytesMax = kMiB;

// One request to the API server that is no watch. The server itself gives up after 60 s; its own
// answer about that says more than ours.
inline constexpr std::chrono::seconds kRequestMax{70};

// Repeating a request that the server put off, or a read that lost its connection. client-go stops
// after 10; whoever asked has a back-off of its own and wants to know before it looks stuck.
inline constexpr std::uint32_t kRequestRetriesMax = 10;
inline constexpr std::chrono::seconds kRequestRetryTimeMax{30};

// The API server sends a bookmark a minute on a watch where nothing happens. One that is silent for
// longer than two is a connection whose other end is gone.
inline constexpr std::chrono::seconds kWatchIdleMax{150};

// What is kept of the server's own words in an error.
inline constexpr std::uint64_t kServerMessageBytesMax = 8 * kKiB;

// Different texts of the server's warnings that are remembered, so that each is logged once.
inline constexpr std::uint32_t kServerWarningsMax = 1000;

// Graceful shutdown: what has not ended by then is abandoned; the next leader repeats it.
inline constexpr std::chrono::seconds kShutdownMax{10};

// Imports, exports, types or custom sections of one module. The largest published flight
// (Helm-embedding) has fewer than a hundred of each.
inline constexpr std::uint32_t kModuleItemsMax = 10'000;

// The browsers' limit; a Go program of 80 MB has 120,000.
inline constexpr std::uint32_t kModuleFunctionsMax = 1'000'000;

// Of an import or export; the browsers' limit.
inline constexpr std::uint32_t kModuleNameBytesMax = 100'000;

// Segments of data of one module; wasmtime's own bound. A Go program of 4 MB has 37,000.
inline constexpr std::uint32_t kModuleDataSegmentsMax = 100'000;

// What the data segments of one module may take on disk once they lie in pages. More than the
// largest module has as bytes is an attack: a segment of one byte makes a page of 4 KiB.
inline constexpr std::uint64_t kImageBytesMax = 512 * kMiB;

// One compilation. A Go controller of 67 MB takes 16 s on two quiet cores and 1.1 GB; the room is
// for modules of 256 MB, and for the address space that is reserved without being used. Processor
// time is what a module is judged by: a busy machine makes it no larger. The clock only ends a
// compiler that waits for ever; until then a third of a core will do.
inline constexpr std::chrono::seconds kCompileProcessorMax{600};
inline constexpr std::chrono::seconds kCompileMax{1800};
inline constexpr std::uint64_t kCompileMemoryBytesMax = 6 * 1024 * kMiB;

// Native code is about 2.3 times the module.
inline constexpr std::uint64_t kCompiledBytesMax = 2048 * kMiB;

// What the cache of native code may take on disk: 100 flights of 16 MB.
inline constexpr std::uint64_t kCodeCacheBytesMax = 4096 * kMiB;

// Guests that have begun and not ended. Those that run are as many as workers; the rest wait for an
// answer of the host, each with its memory (10 MB for a Go flight).
inline constexpr std::uint32_t kGuestRunsMax = 64;

// Of WebAssembly frames on one stack. Go and Rust programs that parse deep documents recurse.
inline constexpr std::uint64_t kGuestStackBytesMax = kMiB;

// Pages of files that may be resident when a guest has run: the program and its libraries (16 MiB),
// and code of the modules that ran last (for a Go flight of 16 MB, 12 MiB, or 28 in large pages).
// Code of whoever has not run for longest leaves beyond it, and is back within 0.3 ms when it comes
// in large pages, 2 ms otherwise. What runs at this moment comes on top: some 80 MiB on two cores.
inline constexpr std::uint64_t kFilePagesBytesMax = 48 * kMiB;

// Code of guests that can sleep is unloaded when all of them have slept for so long: it is loaded
// again, unless the disk has to be asked, within 0.2 ms.
inline constexpr std::chrono::seconds kSleepingCodeKept{2};

// Instances that have gone back to a checkpoint, kept for the next turn from there: as many as a
// few machines have turns at a time. A step of a JavaScript machine writes to half a MiB; going
// back copies that, which beyond some MiB is no cheaper than a new instance.
inline constexpr std::size_t kWarmInstancesMax = 16;
inline constexpr std::uint64_t kWarmInstanceBytesMax = 4 * kMiB;
inline constexpr std::chrono::seconds kWarmInstanceKept{5};

// Functions that a module can call indirectly: a Go program of 80 MB has 110,000.
inline constexpr std::uint32_t kGuestTableElementsMax = 500'000;

// A trap's backtrace in an error message.
inline constexpr std::uint32_t kBacktraceFramesMax = 20;

// Resources of one stage that are applied at the same time: enough to hide the API server's
// latency, few enough that a release of a thousand objects does not crowd out everybody else's
// requests.
inline constexpr std::size_t kParallelAppliesMax = 16;

// What a stage may take until it is ready, as yoke has it; a prune until everything is gone.
inline constexpr std::chrono::seconds kStageReadyMax{30};
inline constexpr std::chrono::seconds kPruneMax{120};

// One event of a watch: an object of the size above with the spaces, escapes and managedFields that
// JSON adds to what is stored.
inline constexpr std::uint64_t kWatchLineBytesMax = 8 * kMiB;

// client-go's event correlator: a series per object, reason and message, and a spam filter for each
// object, of that many.
inline constexpr std::uint32_t kEventSeriesMax = 4096;

// Events that wait to be written while the server does not answer; what comes beyond is dropped.
inline constexpr std::uint32_t kEventsPendingMax = 1000;

// What sleeping guests may take on disk together: a million of the usual ones.
inline constexpr std::uint64_t kSnapshotBytesMax = 16384 * kMiB;

// What a long-running guest may print in one turn; what is beyond is dropped and counted.
inline constexpr std::uint64_t kOperatorOutputBytesMax = 256 * kKiB;
// One line of that; a longer one is cut into several, as container runtimes do.
inline constexpr std::uint64_t kOperatorLineBytesMax = 16 * kKiB;
// Of its last lines, for `hangar logs`.
inline constexpr std::uint64_t kOperatorLogBytesMax = 64 * kKiB;

// Requests of one guest that are under way, watches included; the next one waits.
inline constexpr std::uint32_t kGuestRequestsMax = 256;
// What one guest may send in a request: an object as the API server takes it, and its headers.
inline constexpr std::uint64_t kGuestRequestBytesMax = 4 * kMiB;
// Requests that one guest has asked for beyond those under way: a controller that starts with a few
// thousand objects asks for each at once. With what they are about to send.
inline constexpr std::uint32_t kGuestRequestsWaitingMax = 16'384;
inline constexpr std::uint64_t kGuestRequestsWaitingBytesMax = 64 * kMiB;
// Delays of one guest that have not ended. A controller that looks at an object a second, and again
// after an hour, has 3600: its timers cannot be taken back.
inline constexpr std::uint32_t kGuestDelaysMax = 16'384;
// Files and directories that one guest has open; a libc's usual bound.
inline constexpr std::uint32_t kGuestDescriptorsMax = 256;

// Answers that wait for a guest which does not take them (it sleeps, or is in a long turn). A guest
// with more is started anew: its lists are shorter than that.
inline constexpr std::uint64_t kGuestAnswersBytesMax = 64 * kMiB;

// Changes of one watch that are remembered, so that a guest's watch goes on from where its list
// ended. One that comes from further back gets 410 and lists again, as the API server has it.
inline constexpr std::uint32_t kGatewayHistoryMax = 4096;
// The same in bytes of objects: a hundred small ones. It stays in memory while all guests sleep,
// and who comes from further back costs a list at the API server.
inline constexpr std::uint64_t kGatewayHistoryBytesMax = 128 * kKiB;
// Lists that broke the history and are remembered as such; each is an API server that went away.
inline constexpr std::size_t kGatewayGapsMax = 64;
// How long the history goes on without a guest's watch: longer than a guest is between two of them.
inline constexpr std::chrono::seconds kGatewayLinger{120};
// How long to leave alone what could not be watched for everybody: longer than a storm of guests,
// shorter than a person waits after changing a permission.
inline constexpr std::chrono::seconds kGatewayRetry{15};
// Of path and query; selectors of a few hundred names fit.
inline constexpr std::size_t kGatewayTargetBytesMax = 32 * kKiB;
// How long an answer of the API server's authorisation is believed, and how many are remembered.
inline constexpr std::chrono::seconds kGatewayDecisionAge{10};
inline constexpr std::size_t kGatewayDecisionsMax = 10'000;
// How often a watch under way is authorised again and gets a bookmark (the API server's own pace),
// and how fast they are asked about: a thousand a minute.
inline constexpr std::chrono::seconds kGatewayRecheck{60};
inline constexpr std::chrono::milliseconds kGatewayRecheckPace{50};

// A guest that failed is started again after 1 s, then twice as long each time, as the kubelet does
// with containers (which begins at 10 s); a guest that ran for so long begins anew.
inline constexpr std::chrono::seconds kOperatorBackoffMin{1};
inline constexpr std::chrono::seconds kOperatorBackoffMax{300};
inline constexpr std::chrono::seconds kOperatorStableMin{600};

// A guest that could not go to sleep (the disk is full) stays in memory for so long: an attempt
// costs a look at all of its memory and a line in the log.
inline constexpr std::chrono::seconds kOperatorSleepRetry{10};
// How long a guest stays in memory for the answer to a request, which the API server usually gives
// within milliseconds: less than sleeping and waking up again would cost.
inline constexpr std::chrono::milliseconds kOperatorAnswerWait{100};
// Operators that start at once. Each holds a guest, requests and their buffers until it has listed
// what it watches; a host that starts a thousand together needs three times the heap, and keeps it,
// for what stays lies between what was needed for a moment. Nor do a thousand lists at once do the
// API server any good. Who is not done after the wait makes room all the same.
inline constexpr std::size_t kOperatorStartsMax = 8;
inline constexpr std::chrono::milliseconds kOperatorStartWait{100};
// Turns that are under way at once, those that wait for a processor included. Each holds a guest's
// memory and its answers as text; of those beyond, only pointers wait.
inline constexpr std::size_t kOperatorTurnsMax = 64;
// Operators with metrics of their own, some sixty series each; the others share one of each.
inline constexpr std::size_t kOperatorSeriesMax = 500;
// Kinds of answers (method and code) that one of them tells apart.
inline constexpr std::size_t kOperatorAnswerKindsMax = 40;

// What a workflow's status may hold. Together with the rest of the object it stays below what etcd
// takes (kObjectBytesMax). A machine's state is a few KiB usually.
inline constexpr std::uint64_t kWorkflowStateBytesMax = 256 * kKiB;
inline constexpr std::uint64_t kWorkflowOutputBytesMax = 64 * kKiB;
// Actions that were asked for and have not ended, and events that nobody has decided about.
inline constexpr std::size_t kWorkflowOutboxMax = 128;
inline constexpr std::uint64_t kWorkflowOutboxBytesMax = 256 * kKiB;
inline constexpr std::size_t kWorkflowInboxMax = 256;
inline constexpr std::uint64_t kWorkflowInboxBytesMax = 256 * kKiB;
// One event; the API server takes 256 KiB of annotations, which signals arrive in.
inline constexpr std::uint64_t kWorkflowEventBytesMax = 64 * kKiB;
inline constexpr std::size_t kWorkflowTimersMax = 256;
// Objects that one workflow has made and not deleted.
inline constexpr std::size_t kWorkflowResourcesMax = 512;
inline constexpr std::size_t kWorkflowHistoryMax = 200;
inline constexpr std::uint64_t kWorkflowHistoryBytesMax = 64 * kKiB;
// Ids of signals that were taken, so that none counts twice.
inline constexpr std::size_t kWorkflowSignalsRemembered = 128;
// Steps of one machine in a row; then others have their turn, and a machine that answers itself for
// ever holds nobody up.
inline constexpr std::size_t kWorkflowStepsMax = 64;
// Longer delays are mistakes, and the sum with the time of day must not overflow.
inline constexpr std::chrono::hours kWorkflowDelayMax{24 * 366 * 10};

// One step of a state machine, in processor time. It takes less than a millisecond; the room is for
// machines in slow languages on busy hosts.
inline constexpr std::chrono::seconds kMachineStepMax{2};
// A JavaScript machine has a few MiB; the room is for contexts with large documents in them.
inline constexpr std::uint64_t kMachineMemoryBytesMax = 128 * kMiB;
// What a machine answers: its state and what it asks for, and as much again for what of the state
// is not kept (XState's activities and metadata).
inline constexpr std::uint64_t kMachineAnswerBytesMax = kMiB;
// A JavaScript bundle. XState and a machine are 100 KB; its image takes some 20 times its size.
inline constexpr std::uint64_t kMachineBundleBytesMax = 8 * kMiB;
// What one step prints (console.log), for people.
inline constexpr std::uint64_t kMachineLogBytesMax = 16 * kKiB;
// Machines that are loaded; an image of some 2 MB on disk each, and what of it is in the page
// cache.
inline constexpr std::size_t kMachinesKeptMax = 256;

// Nodes that are worked on at the same time, whatever share of the fleet is allowed: their names
// are in one ConfigMap.
inline constexpr std::size_t kNodesInProgressMax = 1000;
// How long a node is given to stop being Ready after its container runtime was restarted, and how
// long to be Ready again. The kubelet notices a runtime that is gone within some seconds.
inline constexpr std::chrono::seconds kNodeReadyMin{10};
inline constexpr std::chrono::seconds kNodeReadyMax{300};
// Between attempts on one node. Each restarts its container runtime.
inline constexpr std::chrono::seconds kNodeRetryMin{60};
inline constexpr std::chrono::seconds kNodeRetryMax{1800};
// One install or uninstall, the pull of its image included; and how long its Job is kept to be
// looked at.
inline constexpr std::chrono::seconds kNodeJobMax{600};
inline constexpr std::chrono::seconds kNodeJobKept{3600};

static_assert(kGuestMemoryBytesMax >= 2 * kFlightOutputBytesMax,
              "a flight holds its output twice: as objects and as the encoded text");
static_assert(kGuestCallMax < kLeaseDuration,
              "a stuck guest is stopped before the leader can lose its lease over it");
static_assert(kLeaseRenewDeadline < kLeaseDuration,
              "a leader that cannot renew stops acting before another may start");

}  // namespace hangar::limits
