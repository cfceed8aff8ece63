// A program's view of its pod, besides the inputs in its manifest: the API server's address, the
// files of its ServiceAccount, its own name. Programs with a scheduler of their own, such as those
// of controller-runtime, look for these there, so only they get them.
#pragma once

#include "abi/kube_runtime/guest.h"

#include <string>
#include <string_view>

namespace hangar::operators {

// The content of a guest's file "token". It is the same for all guests and grants nothing: the host
// sends a guest's requests with the rights of its ServiceAccount.
inline constexpr std::string_view kTokenOfGuests =
    "not-a-credential: hangar sends the requests of this program as its service account";

struct PodPlace {
  std::string namespace_;
  std::string name;
  std::string cluster_ca;  // Verifies the API server; empty: unknown.
};

[[nodiscard]] abi::kube_runtime::Surroundings pod_view(const PodPlace& place);

}  // namespace hangar::operators
