// Where a command reads records: files of this machine, or the host of the cluster, which shows
// what the user of the kubeconfig may see.
#pragma once

#include "base/result.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "io/task.h"
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
  // Nobody waits for answers any more: what is asked for ends with Cancelled.
  virtual void give_up() {}
};

// Reading blocks the loop.
[[nodiscard]] std::unique_ptr<Records> local_records(seeing::RecordsPlace place);

// How the host is found: by its address; else as the ConfigMap in its namespace says, which names a
// URL or the pod, to which kubectl forwards a port.
struct HostPlace {
  std::string address;              // "https://host:port"; empty: see above.
  std::filesystem::path authority;  // File that its certificate is checked with; empty: the
                                    // ConfigMap's, or of an address the system's.
  std::string namespace_ = "hangar-system";
};
// `session` outlives it. Errors name what is missing: the right to read the ConfigMap or to forward
// a port, a host that shows records, kubectl.
[[nodiscard]] Result<std::unique_ptr<Records>> host_records(const host::Config& config,
                                                            host::ClusterSession& session,
                                                            const HostPlace& place);

// Which of the two.
struct RecordsAccess {
  std::optional<seeing::RecordsPlace> local;
  HostPlace host;
};
[[nodiscard]] Result<std::unique_ptr<Records>> open_records(const host::Config& config,
                                                            host::ClusterSession& session,
                                                            const RecordsAccess& access);

}  // namespace hangar::commands
