// What a program finds in a pod besides what its manifest says: where the API server is, the files
// of its ServiceAccount, its own name. Programs with a scheduler of their own, such as those of
// controller-runtime, look for it there, and are the ones that get it.
#pragma once

#include "abi/kube_runtime/guest.h"

#include <string>
#include <string_view>

namespace hangar::operators {

// The file "token" of a guest. It is the same for all, and opens nothing anywhere: the host sends
// the guest's requests, as its ServiceAccount.
inline constexpr std::string_view kTokenOfGuests =
    "not-a-credential: hangar sends the requests of this program as its service account";

struct PodPlace {
  std::string namespace_;
  std::string name;
  std::string cluster_ca;  // What the API server's certificate is checked with; empty: unknown.
};

[[nodiscard]] abi::kube_runtime::Surroundings pod_view(const PodPlace& place);

}  // namespace hangar::operators
