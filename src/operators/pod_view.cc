#include "operators/pod_view.h"

#include "abi/kube_runtime/guest.h"

#include <fmt/format.h>

#include <string>

namespace hangar::operators {

abi::kube_runtime::Surroundings pod_view(const PodPlace& place) {
  // The host answers requests to this name, and to the address that it has in a cluster.
  constexpr std::string_view kHost = "kubernetes.default.svc";
  constexpr std::string_view kPort = "443";
  constexpr std::string_view kAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";
  abi::kube_runtime::Surroundings view;
  view.environment = {fmt::format("KUBERNETES_SERVICE_HOST={}", kHost),
                      fmt::format("KUBERNETES_SERVICE_PORT={}", kPort),
                      fmt::format("KUBERNETES_SERVICE_PORT_HTTPS={}", kPort),
                      fmt::format("KUBERNETES_PORT=tcp://{}:{}", kHost, kPort),
                      fmt::format("HOSTNAME={}", place.name),
                      fmt::format("POD_NAME={}", place.name),
                      fmt::format("POD_NAMESPACE={}", place.namespace_)};
  view.files[fmt::format("{}namespace", kAccount)] = place.namespace_;
  view.files[fmt::format("{}token", kAccount)] = kTokenOfGuests;
  // client-go works without the file and logs that it is missing.
  if (!place.cluster_ca.empty()) {
    view.files[fmt::format("{}ca.crt", kAccount)] = place.cluster_ca;
  }
  return view;
}

}  // namespace hangar::operators
