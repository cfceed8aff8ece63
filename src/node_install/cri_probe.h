// Whether containerd answers as a container runtime: one call of RuntimeService/Version on its
// socket. A containerd whose CRI plugin could not be loaded listens, and even answers that it knows
// no such service; a node with that one is broken, and only this call tells.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace hangar::node_install {

// What to send: HTTP/2 by hand, the same bytes every time. `service` is runtime.v1 or, for
// containerd before 1.6, runtime.v1alpha2.
[[nodiscard]] std::string version_request(std::string_view service);

enum class CriAnswer : std::uint8_t {
  Incomplete,  // More bytes are needed.
  Yes,         // A message has come: the plugin is there.
  No,          // The call has ended without one.
};
// Of all the bytes received so far. Reads frames, and no headers: an error has headers only.
[[nodiscard]] CriAnswer read_answer(std::string_view received);

// Connects to the Unix socket `path` and asks. Unavailable with what is wrong.
[[nodiscard]] Result<> probe_cri(const std::string& path, std::chrono::milliseconds at_most);

}  // namespace hangar::node_install
