// Asks a running host whether it is ready, for `helm test` in an image that contains no other
// client.
#pragma once

#include "base/result.h"

#include <string>

namespace hangar::commands {

// `url` is the host's address, such as http://hangar.hangar-system.svc:80. Unavailable: the host
// did not answer, or is not ready; the message has the checks that fail. InvalidInput: not an http
// URL.
[[nodiscard]] Result<> check_ready(const std::string& url);

}  // namespace hangar::commands
