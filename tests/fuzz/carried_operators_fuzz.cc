// A manifest of sleeping operators that is damaged, or was made by another program. The fuzzer
// corrects the checksum, so that the input reaches the code behind it.
#include "abi/kube_runtime/carried_guest.h"
#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "base/varint.h"
#include "io/descriptor.h"
#include "operators/carried_operator.h"
#include "wasm/digest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace operators = hangar::operators;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  constexpr hangar::Instant kNow{std::chrono::hours(1)};
  // A descriptor that is not open: the numbers are those of the fuzzer's own files.
  const auto take = [](int number) -> hangar::Result<hangar::io::Descriptor> {
    HANGAR_ASSERT(number > 2, "the standard ones are refused");
    return hangar::io::Descriptor();
  };
  (void)operators::decode(input, kNow, take);

  std::string bytes = "hangarca";
  hangar::append_varint(bytes, 1);
  hangar::append_varint(bytes, hangar::abi::kube_runtime::kPackedGuestVersion);
  const hangar::wasm::Digest digest = hangar::wasm::Digest::of(input);
  bytes.append(reinterpret_cast<const char*>(digest.bytes().data()), digest.bytes().size());
  bytes += input;
  const auto fleet = operators::decode(bytes, kNow, take);
  if (!fleet) {
    HANGAR_ASSERT(!fleet.error().message().empty(), "a refusal has a reason");
    return 0;
  }
  HANGAR_ASSERT(fleet->operators.size() <= size && fleet->left.size() <= size, "bounded");
  for (const operators::CarriedOperator& carried : fleet->operators) {
    HANGAR_ASSERT(carried.guest.asleep_since <= kNow, "it fell asleep before");
    HANGAR_ASSERT(carried.guest.snapshot_bytes > 0, "it has a snapshot");
  }
  return 0;
}
