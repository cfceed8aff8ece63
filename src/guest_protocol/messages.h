// The messages between the host and a guest process, and their encoding.
//
// The host sends a run with its input, and the process answers with the result. In between the
// process may ask for data that only the host has. A long-lived guest has a run for each of its
// turns, and one to fall asleep. docs/formats/guest-messages.md describes the bytes.
#pragma once

#include "base/limits.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::guest_protocol {

// A name, namespace, kind or API version.
inline constexpr std::size_t kNameBytesMax = 4096;
// The number of arguments or environment variables, and the bytes of each list.
inline constexpr std::size_t kTextsMax = 1024;
inline constexpr std::size_t kTextBytesMax = 128 * limits::kKiB;
// The reason of a run's failure.
inline constexpr std::size_t kReasonBytesMax = 16 * limits::kKiB;
// The largest input that a guest reads is a conversion review of a list of instances.
inline constexpr std::size_t kStdinBytesMax = 64 * limits::kMiB;
inline constexpr std::size_t kAnswerBytesMax = 8 * limits::kMiB;
// The stdout of a flight.
inline constexpr std::size_t kOutputBytesMax = 16 * limits::kMiB;
// The part of stderr that is kept, and a note about what was cut.
inline constexpr std::size_t kErrorOutputBytesMax = 65 * limits::kKiB;

// How many modules a process holds at a time; the least recently used ones are dropped. A mapping
// costs it a few KiB and a descriptor.
inline constexpr std::size_t kModulesMax = 32;

// One file of a long-lived guest (from a ConfigMap or Secret), and all its files together.
inline constexpr std::size_t kFileBytesMax = 2 * limits::kMiB;
inline constexpr std::size_t kFilesMax = 4096;
inline constexpr std::size_t kPathBytesMax = 4096;
// An answer to a long-lived guest: the host's own limit for all waiting answers.
inline constexpr std::size_t kWakeupBytesMax = 64 * limits::kMiB;
// A request or an answer of a guest (kGuestRequestBytesMax of its contract), and the number of them
// after which the turn ends.
inline constexpr std::size_t kRequestBytesMax = 4 * limits::kMiB;
inline constexpr std::size_t kTurnCallsMax = 256;
inline constexpr std::size_t kTurnAnswersMax = 8;
// Twice the limit for a guest's waiting requests: headers may take half as much again as is counted
// for them.
inline constexpr std::size_t kTurnCallBytesMax = 128 * limits::kMiB;
inline constexpr std::size_t kTurnDelaysMax = 16'384;
inline constexpr std::size_t kTurnCancelledMax = kTurnDelaysMax + kTurnCallsMax;
// The output of a guest in one turn, and one line of it.
inline constexpr std::size_t kTurnOutputBytesMax = 2 * limits::kMiB;
inline constexpr std::size_t kLineBytesMax = 16 * limits::kKiB;
inline constexpr std::size_t kTurnLinesMax = 65'536;
// Snapshots of sleeping guests are sent in pieces of this size; only the last one is shorter.
inline constexpr std::size_t kPieceBytes = limits::kMiB;
// A layer (wasm/snapshot/page_layer.h): its pieces, the pages of it that one message has, and the
// ranges that these are in. Larger messages would need fresh memory on both sides each time.
inline constexpr std::size_t kLayerPiecesMax = 32;
inline constexpr std::size_t kLayerPageBytes = 4096;
inline constexpr std::size_t kLayerBytesMax = 128 * limits::kKiB;
inline constexpr std::size_t kLayerRangesMax = kLayerBytesMax / kLayerPageBytes;
// The description of a module: at worst, each page of its image is a separate range.
inline constexpr std::size_t kDigestBytes = 32;
inline constexpr std::size_t kImageRangesMax = 1'048'576;

// Machines of workflows: the size of one JavaScript bundle, the number of machines in one process,
// and the size of all their bundles together.
inline constexpr std::size_t kBundleBytesMax = 8 * limits::kMiB;
inline constexpr std::size_t kMachinesMax = 32;
inline constexpr std::size_t kBundlesBytesMax = 16 * limits::kMiB;
// A question to a machine (its state and an event, from an object that etcd can store), and
// its answer.
inline constexpr std::size_t kQuestionBytesMax = 4 * limits::kMiB;
inline constexpr std::size_t kMachineAnswerBytesMax = limits::kMiB;
// The part of a machine's output that is kept, and a note about what was cut.
inline constexpr std::size_t kMachineLogBytesMax = 17 * limits::kKiB;

enum class Contract : std::uint8_t { Flight, Converter };
// The interface of a machine, the form of its results, and the kind of question, as in the contract
// of state machines (abi/statemachine/program.h).
enum class MachineShape : std::uint8_t { HandleEvent, Command, Bundle };
enum class MachineReturns : std::uint8_t { Nothing, Address, AddressAndSize };
enum class MachineRequest : std::uint8_t { Start, Step, Definition, Actors, Begin };

// A range of pages.
struct Pages {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const Pages&, const Pages&) = default;
};

// To the guest process ---------------------------------------------------------------------------

// Comes with a read-only descriptor of the native code.
struct LoadModule {
  std::uint64_t module = 0;
  friend bool operator==(const LoadModule&, const LoadModule&) = default;
};
// No further run of the module starts.
struct DropModule {
  std::uint64_t module = 0;
  friend bool operator==(const DropModule&, const DropModule&) = default;
};
struct BeginRun {
  std::uint64_t run = 0;
  std::uint64_t module = 0;
  Contract contract = Contract::Flight;
  // The tenant that the run works for: tenants share the process's threads.
  std::string tenant;
  std::string consumer;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string stdin_bytes;
  std::int64_t timeout_nanoseconds = 0;  // Negative: none.
  std::uint64_t memory_bytes_max = 0;
  std::uint64_t memory_bytes = 0;  // Already reserved for the run; it asks for more.
  friend bool operator==(const BeginRun&, const BeginRun&) = default;
};
// Answers LookUp and MapKind.
struct Found {
  std::uint64_t run = 0;
  std::uint32_t state = 0;
  std::string body;
  friend bool operator==(const Found&, const Found&) = default;
};
// Answers AskMemory: the reason for a refusal, or empty when granted.
struct MemoryAnswer {
  std::uint64_t run = 0;
  std::string refusal;
  friend bool operator==(const MemoryAnswer&, const MemoryAnswer&) = default;
};
struct CancelRun {
  std::uint64_t run = 0;
  friend bool operator==(const CancelRun&, const CancelRun&) = default;
};
// Comes with the native code, and, if guests of the module can sleep, its image: read-only.
struct LoadSleepable {
  std::uint64_t module = 0;
  std::string digest;    // Digest of the author's bytes: kDigestBytes.
  std::string obstacle;  // Why its guests cannot sleep; empty: they can.
  std::uint32_t global_count = 0;
  bool has_start = false;
  std::uint64_t image_number = 0;
  std::vector<Pages> image_pages;
  friend bool operator==(const LoadSleepable&, const LoadSleepable&) = default;
};
// The bounds of a long-lived guest.
struct Bounds {
  std::uint64_t memory_bytes_max = 0;
  std::int64_t cpu_nanoseconds_max = 0;  // For one turn.
  std::uint64_t output_bytes_max = 0;    // For one turn; up to kTurnOutputBytesMax.
  friend bool operator==(const Bounds&, const Bounds&) = default;
};
struct File {
  std::string path;
  std::string content;
  friend bool operator==(const File&, const File&) = default;
};
// Creates a guest, which starts with its first turn.
struct MakeGuest {
  std::uint64_t guest = 0;
  std::uint64_t module = 0;
  std::string tenant;
  std::string consumer;
  Bounds bounds;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<File> files;
  // Environment of a guest that runs until it is idle.
  std::vector<std::string> pod_environment;
  std::vector<File> pod_files;
  friend bool operator==(const MakeGuest&, const MakeGuest&) = default;
};
// Resumes a guest that fell asleep in this or another process. Its next turn begins with AskPiece.
// Comes with a read-only descriptor of its layer, if it has one: the pages of all its pieces, one
// after the other.
struct ResumeGuest {
  std::uint64_t guest = 0;
  std::uint64_t module = 0;
  std::string tenant;
  std::string consumer;
  Bounds bounds;
  std::uint32_t snapshot_bytes = 0;
  std::int64_t slept_nanoseconds = -1;  // Negative: unknown.
  std::vector<Pages> layer;             // Its pieces in the guest's memory; empty: it has none.
  friend bool operator==(const ResumeGuest&, const ResumeGuest&) = default;
};
// A wakeup for the guest's next turn; they are delivered in order.
struct HandWakeup {
  std::uint64_t guest = 0;
  std::uint64_t id = 0;
  bool finished = false;
  bool is_null = false;
  bool is_event = false;
  std::string bytes;
  friend bool operator==(const HandWakeup&, const HandWakeup&) = default;
};
struct BeginTurn {
  std::uint64_t run = 0;
  std::uint64_t guest = 0;
  std::vector<std::uint64_t> forgotten;  // Earlier requests whose answers are no longer needed.
  std::uint32_t inbound_count = 0;  // How many of its wakeups are inbound requests, with new ids.
  std::uint64_t memory_bytes = 0;   // Already reserved for the guest; it asks for more.
  friend bool operator==(const BeginTurn&, const BeginTurn&) = default;
};
struct SleepGuest {
  std::uint64_t run = 0;
  std::uint64_t guest = 0;
  std::uint32_t layer_pages_max = 0;  // The size of a new layer; zero: it may not have a new one.
  friend bool operator==(const SleepGuest&, const SleepGuest&) = default;
};
// Destroys a guest that has no run in progress.
struct DropGuest {
  std::uint64_t guest = 0;
  friend bool operator==(const DropGuest&, const DropGuest&) = default;
};
// Answers AskPiece.
struct Piece {
  std::uint64_t run = 0;
  std::string bytes;
  friend bool operator==(const Piece&, const Piece&) = default;
};
// Answers KeepPiece, MakeLayer and KeepPages: the reason for a refusal, or empty when it is stored.
struct Kept {
  std::uint64_t run = 0;
  std::string refusal;
  friend bool operator==(const Kept&, const Kept&) = default;
};
// Creates a machine from a module that was handed over with LoadSleepable or, for a command,
// with LoadModule.
struct LoadMachine {
  std::uint64_t machine = 0;
  std::uint64_t module = 0;
  MachineShape shape = MachineShape::Bundle;
  std::string bundle;
  std::string function;
  std::string allocator;
  MachineReturns returns = MachineReturns::Address;
  bool has_initialize = false;
  bool has_initial_state = false;
  MachineReturns initial_state = MachineReturns::Address;
  std::int64_t cpu_nanoseconds_max = 0;  // For one question.
  std::uint64_t memory_bytes_max = 0;
  friend bool operator==(const LoadMachine&, const LoadMachine&) = default;
};
// No further question to the machine follows.
struct DropMachine {
  std::uint64_t machine = 0;
  friend bool operator==(const DropMachine&, const DropMachine&) = default;
};
// A question to a machine. It is a run, which ends with EndRun: the answer is its stdout.
struct AskMachine {
  std::uint64_t run = 0;
  std::uint64_t machine = 0;
  MachineRequest request = MachineRequest::Step;
  std::string first;
  std::string second;
  std::string tenant;
  std::string consumer;
  std::uint64_t memory_bytes = 0;  // Already reserved for the run; it asks for more.
  friend bool operator==(const AskMachine&, const AskMachine&) = default;
};
// The host is short of memory: the process gives back what its machines keep between questions.
struct ForgetBeginnings {
  friend bool operator==(const ForgetBeginnings&, const ForgetBeginnings&) = default;
};
struct Ping {
  friend bool operator==(const Ping&, const Ping&) = default;
};

using ToGuest =
    std::variant<LoadModule, DropModule, BeginRun, Found, MemoryAnswer, CancelRun, Ping,
                 LoadSleepable, MakeGuest, ResumeGuest, HandWakeup, BeginTurn, SleepGuest,
                 DropGuest, Piece, Kept, LoadMachine, DropMachine, AskMachine, ForgetBeginnings>;

// From the guest process -------------------------------------------------------------------------

struct LookUp {
  std::uint64_t run = 0;
  std::string name;
  std::string namespace_;
  std::string kind;
  std::string api_version;
  friend bool operator==(const LookUp&, const LookUp&) = default;
};
struct MapKind {
  std::uint64_t run = 0;
  std::string group_or_api_version;
  std::string kind;
  friend bool operator==(const MapKind&, const MapKind&) = default;
};
// The run's total memory: linear memory, tables, and the fixed cost of each run.
struct AskMemory {
  std::uint64_t run = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const AskMemory&, const AskMemory&) = default;
};
struct EndRun {
  std::uint64_t run = 0;
  bool is_error = false;
  ErrorKind kind = ErrorKind::GuestFault;  // Only for an error, as the reason.
  std::string reason;
  std::uint32_t exit_code = 0;
  std::string stdout_bytes;
  std::string stderr_bytes;
  std::uint64_t cpu_nanoseconds = 0;
  std::uint64_t memory_bytes = 0;
  friend bool operator==(const EndRun&, const EndRun&) = default;
};
// A request of the guest in its turn, in the encoding of its contract.
struct TurnCall {
  std::uint64_t run = 0;
  std::uint64_t id = 0;
  bool is_stream = false;
  std::string request;
  friend bool operator==(const TurnCall&, const TurnCall&) = default;
};
// The guest's answer to an inbound request, in the encoding of its contract.
struct TurnAnswer {
  std::uint64_t run = 0;
  std::uint64_t id = 0;
  std::string answer;
  friend bool operator==(const TurnAnswer&, const TurnAnswer&) = default;
};
// Follows the calls and answers of the turn.
struct EndTurn {
  struct Delay {
    std::uint64_t id = 0;
    std::uint64_t milliseconds = 0;
    friend bool operator==(const Delay&, const Delay&) = default;
  };
  struct Line {
    bool is_stderr = false;
    std::string text;
    friend bool operator==(const Line&, const Line&) = default;
  };
  std::uint64_t run = 0;
  bool is_error = false;  // The guest no longer exists, as after an exit.
  ErrorKind kind = ErrorKind::GuestFault;
  std::string reason;
  bool has_exited = false;
  std::uint32_t exit_code = 0;
  std::vector<Delay> delays;
  std::vector<std::uint64_t> cancelled;
  bool serves_metrics = false;
  std::uint64_t metrics_id = 0;
  bool serves_webhooks = false;
  std::uint64_t webhooks_id = 0;
  std::uint64_t next_id = 0;  // Ids from here on are new.
  std::vector<Line> output;
  std::uint64_t output_dropped_bytes = 0;
  std::uint64_t resume_nanoseconds = 0;
  std::uint64_t resume_cpu_nanoseconds = 0;
  std::uint64_t cpu_nanoseconds = 0;  // Including resuming.
  std::uint64_t resident_bytes = 0;
  friend bool operator==(const EndTurn&, const EndTurn&) = default;
};
// Requests the next piece of the snapshot of this turn's guest.
struct AskPiece {
  std::uint64_t run = 0;
  friend bool operator==(const AskPiece&, const AskPiece&) = default;
};
// The next piece of the snapshot of a guest that falls asleep, which has `total_bytes`.
struct KeepPiece {
  std::uint64_t run = 0;
  std::uint32_t total_bytes = 0;
  std::string bytes;
  friend bool operator==(const KeepPiece&, const KeepPiece&) = default;
};
// A guest that falls asleep gets a new layer of these pieces of its memory, in place of one that it
// has. All its pages follow.
struct MakeLayer {
  std::uint64_t run = 0;
  std::vector<Pages> pieces;
  friend bool operator==(const MakeLayer&, const MakeLayer&) = default;
};
// Pages of its layer that the guest has written to. `pages`: where they are in the layer, which
// begins with page zero.
struct KeepPages {
  std::uint64_t run = 0;
  std::vector<Pages> pages;
  std::string bytes;
  friend bool operator==(const KeepPages&, const KeepPages&) = default;
};
// After an error the guest is still awake in the process.
struct EndSleep {
  std::uint64_t run = 0;
  bool is_error = false;
  std::string reason;
  std::uint64_t memory_bytes = 0;  // The memory of the guest once it is resumed.
  bool is_on_layer = false;        // It needs its layer besides the snapshot.
  std::uint64_t cpu_nanoseconds = 0;
  friend bool operator==(const EndSleep&, const EndSleep&) = default;
};
struct Pong {
  friend bool operator==(const Pong&, const Pong&) = default;
};

using FromGuest = std::variant<LookUp, MapKind, AskMemory, EndRun, Pong, TurnCall, TurnAnswer,
                               EndTurn, AskPiece, KeepPiece, EndSleep, MakeLayer, KeepPages>;

// The header of a message: four bytes for the length of its payload, one for its type.
inline constexpr std::size_t kFrameHeaderBytes = 5;
// The largest payload in each direction.
inline constexpr std::size_t kToGuestBytesMax = kStdinBytesMax + 2 * kTextBytesMax + limits::kMiB;
inline constexpr std::size_t kFromGuestBytesMax =
    kOutputBytesMax + kErrorOutputBytesMax + kReasonBytesMax + limits::kKiB;

// Includes the header. The caller keeps the texts within their bounds.
[[nodiscard]] std::string encode(const ToGuest& message);
[[nodiscard]] std::string encode(const FromGuest& message);

// InvalidInput for everything that encode() does not produce: an unknown type, a text beyond its
// bound, missing or surplus bytes.
[[nodiscard]] Result<ToGuest> decode_to_guest(std::uint8_t type, std::string_view payload);
[[nodiscard]] Result<FromGuest> decode_from_guest(std::uint8_t type, std::string_view payload);

// Cuts a reason to kReasonBytesMax, the most that a message may contain.
[[nodiscard]] std::string cut_reason(std::string reason);

}  // namespace hangar::guest_protocol
