// The meaning of HTTP statuses for the fetch of a module.
#pragma once

#include "base/result.h"

#include <string>

namespace hangar::modules {

// 401 and 403: Denied. 404 and 410: NotFound. 408, 429 and 5xx: Unavailable. Others: InvalidInput.
[[nodiscard]] ErrorKind kind_of_status(int status);

// "404 not found", "418".
[[nodiscard]] std::string describe_status(int status);

}  // namespace hangar::modules
