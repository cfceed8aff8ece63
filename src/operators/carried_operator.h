// Sleeping operators on their way from a host to the process that replaces it in place, and the
// bytes in which they travel. docs/formats/carried-operators.md specifies them.
//
// The bytes come from a process of the same user over a file that nobody else can open. They are
// read as an attacker's nevertheless: another version of hangar may have written them, and what is
// read decides about descriptors and about places in a file.
#pragma once

#include "abi/kube_runtime/carried_guest.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/gateway.h"
#include "http/client.h"
#include "io/descriptor.h"
#include "kube/object.h"
#include "operators/operator.h"
#include "operators/operator_ledger.h"
#include "wasm/digest.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hangar::operators {

// What waits for a guest, or will wake it.
struct CarriedRequests {
  struct Call {
    std::uint64_t id = 0;
    bool is_stream = false;
    // Nothing: it has ended, and its end is among the arrivals.
    std::optional<gateway::Continuation> continuation = {};
    // A line that only raises the guest's resourceVersion, for its next turn. Empty: none.
    std::string bookmark = {};
  };
  struct Delay {
    std::uint64_t id = 0;
    Instant due;
  };
  struct Head {
    int status = 0;
    http::Headers headers;
  };
  struct End {};
  struct Arrival {
    std::uint64_t id = 0;
    std::variant<std::string, Head, End> what;
  };
  std::vector<Call> calls;  // Ascending, like the delays.
  std::vector<Delay> delays;
  std::vector<Arrival> arrivals;  // In order.
};

struct CarriedOperator {
  kube::ObjectKey key;
  std::string uid;
  std::int64_t generation = 0;
  wasm::Digest module;
  std::uint64_t image = 0;  // SleepableModule::image_number().

  Instant started_at;
  Instant idle_since;
  std::uint64_t start_count = 0;
  bool serves_metrics = false;
  bool takes_webhooks = false;
  OperatorLedger::Figures figures;

  abi::kube_runtime::CarriedGuest guest;
  CarriedRequests requests;
};

// Why the guest does not fit the object and the module of now, for people; nothing if it does.
// `image`: the module's SleepableModule::image_number().
[[nodiscard]] std::optional<std::string> misfit(const CarriedOperator& carried,
                                                const Operator& spec, const wasm::Digest& module,
                                                std::uint64_t image);

// An operator that could not be carried over.
struct LeftOperator {
  kube::ObjectKey key;
  std::string reason;
};

struct CarriedFleet {
  std::vector<CarriedOperator> operators;
  std::vector<LeftOperator> left;
  io::Descriptor snapshots;  // Their file.
};

inline constexpr std::size_t kCarriedOperatorsMax = 200'000;
inline constexpr std::size_t kCarriedBytesMax = std::size_t{512} << 20U;
// Of these, the operators. The rest is room for those that are left.
inline constexpr std::size_t kCarriedOperatorsBytesMax = kCarriedBytesMax / 2;
// What waits for one operator. One with more starts anew.
inline constexpr std::size_t kCarriedArrivalsBytesMax = std::size_t{4} << 20U;
inline constexpr std::size_t kCarriedReasonBytesMax = 512;

// Moves operators that decode() would refuse to `left`, with the reason, and the largest ones while
// the bytes of all are too many: what one guest waits for, and what servers have answered it, costs
// that operator its memory and no other.
void leave_unreadable(CarriedFleet& fleet, Instant now);

// Descriptors are written as their numbers.
[[nodiscard]] std::string encode(const CarriedFleet& fleet);

// Takes a descriptor that is named in the bytes, each number once; an error refuses all.
using TakeDescriptor = std::function<Result<io::Descriptor>(int number)>;
// Corrupt, with the reason: the bytes are damaged, or no host can have written them. InvalidInput:
// another version has. `now`: times after it are refused, except those of delays.
[[nodiscard]] Result<CarriedFleet> decode(std::string_view bytes, Instant now,
                                          const TakeDescriptor& take_descriptor);

}  // namespace hangar::operators
