// Whether containerd answers as a container runtime: one call of RuntimeService/Version on its
// socket. A containerd that could not load its CRI plugin still listens, and answers that it does
// not know the service. Such a node is broken, and only this call shows it.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::node_install {

// The request: hand-written HTTP/2, the same bytes every time. `service` is runtime.v1 or, for
// containerd before 1.6, runtime.v1alpha2.
[[nodiscard]] std::string version_request(std::string_view service);

enum class CriAnswer : std::uint8_t {
  Incomplete,  // More bytes are needed.
  Yes,         // A message has arrived: the plugin works.
  No,          // The call has ended without one.
};
// Judges all bytes received so far. Reads frames but not headers: an error has headers only.
[[nodiscard]] CriAnswer read_answer(std::string_view received);

// Connects to the Unix socket `path` and asks. Unavailable says what is wrong.
[[nodiscard]] Result<> probe_cri(const std::string& path, std::chrono::milliseconds at_most);

}  // namespace hangar::node_install
