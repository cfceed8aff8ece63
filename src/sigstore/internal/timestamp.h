// Timestamps of a signature by an authority (RFC 3161): the time of signing where the transparency
// log does not promise a time.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "sigstore/trust_root.h"

#include <string_view>
#include <vector>

namespace hangar::sigstore::internal {

// When one of the authorities saw the signature, according to its response in DER. Denied;
// InvalidInput for other bytes.
[[nodiscard]] Result<WallTime> verify_timestamp(std::string_view response,
                                                std::string_view signature,
                                                const std::vector<Authority>& authorities);

}  // namespace hangar::sigstore::internal
