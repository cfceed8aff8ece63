// The error that a check returns for input that it refuses.
#pragma once

#include "base/result.h"

#include <expected>
#include <string>
#include <utility>

namespace hangar {

// `message` names the mistake and the valid values.
[[nodiscard]] inline std::unexpected<Error> invalid(std::string message) {
  return fail(ErrorKind::InvalidInput, std::move(message));
}

}  // namespace hangar
