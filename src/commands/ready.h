// Asks a running host whether it is ready: for `helm test`, in an image that has no other client.
#pragma once

#include "base/result.h"

#include <string>

namespace hangar::commands {

// `url` is where its endpoints are, such as http://hangar.hangar-system.svc:80. Unavailable: it did
// not answer, or it is not ready, with the checks that fail. InvalidInput: no http URL.
[[nodiscard]] Result<> check_ready(const std::string& url);

}  // namespace hangar::commands
