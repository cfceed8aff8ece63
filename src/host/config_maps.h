// Reads modules in ConfigMaps from the API server. Connects modules/ with kube/.
#pragma once

#include "base/result.h"
#include "io/task.h"
#include "kube/client.h"
#include "modules/config_map.h"
#include "modules/requester.h"

#include <stop_token>
#include <string>

namespace hangar::host {

// `client` must outlive it. Loop thread only.
class ConfigMaps final : public modules::ConfigMapReader {
 public:
  explicit ConfigMaps(const kube::Client& client) : client_(client) {}

  [[nodiscard]] io::Task<Result<modules::ConfigMapContent>> read(modules::ConfigMapAccess access,
                                                                 std::string name,
                                                                 std::stop_token stop) override;

 private:
  const kube::Client& client_;
};

}  // namespace hangar::host
