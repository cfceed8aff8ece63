// Sources of records for commands: files on this machine, or the host in the cluster, which shows
// what the kubeconfig's user may see.
#pragma once

#include "base/result.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "io/task.h"
#include "seeing/cost.h"
#include "seeing/find.h"
#include "seeing/top.h"
#include "seeing/uses.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace hangar::commands {

class Records {
 public:
  Records() = default;
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  virtual ~Records() = default;

  [[nodiscard]] virtual io::Task<Result<seeing::FoundTurns>> turns(
      seeing::TurnsQuestion question) = 0;
  [[nodiscard]] virtual io::Task<Result<seeing::FoundWrites>> writes(
      seeing::WritesQuestion question) = 0;
  [[nodiscard]] virtual io::Task<Result<seeing::FoundTop>> top(seeing::TopQuestion question) = 0;
  [[nodiscard]] virtual io::Task<Result<seeing::FoundUses>> uses(seeing::UsesQuestion question) = 0;
  // InvalidInput: files do not contain costs.
  [[nodiscard]] virtual io::Task<Result<seeing::FoundCost>> cost(seeing::CostQuestion question) = 0;
  // Pending requests end with Cancelled.
  virtual void give_up() {}
};

// Reads files on this machine; blocks the loop.
[[nodiscard]] std::unique_ptr<Records> local_records(seeing::RecordsPlace place);

// How to find the host: by its address, or by the ConfigMap in its namespace. The ConfigMap has a
// URL, or the pod to which kubectl forwards a port.
struct HostPlace {
  std::string address;  // "https://host:port"; empty: by the ConfigMap.
  // File with the authority of the certificate. Empty: that of the ConfigMap, or the system's with
  // an address.
  std::filesystem::path authority;
  std::string namespace_ = "hangar-system";
};
// `session` must outlive it. Errors name what is missing: the right to read the ConfigMap or to
// forward a port, a host that shows records, kubectl.
[[nodiscard]] Result<std::unique_ptr<Records>> host_records(const host::Config& config,
                                                            host::ClusterSession& session,
                                                            const HostPlace& place);

// The source to use: `local` if it is set, otherwise the host.
struct RecordsAccess {
  std::optional<seeing::RecordsPlace> local;
  HostPlace host;
};
[[nodiscard]] Result<std::unique_ptr<Records>> open_records(const host::Config& config,
                                                            host::ClusterSession& session,
                                                            const RecordsAccess& access);

}  // namespace hangar::commands
