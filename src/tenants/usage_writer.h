// Keeps the TenantUsages up to date while this process leads. A host that may not write them logs
// this once, and continues.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/client.h"
#include "tenants/usage.h"
#include "tenants/usage_plan.h"

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

namespace hangar::tenants {

// Loop thread only.
class UsageWriter {
 public:
  // The references outlive this object.
  struct Parts {
    io::Loop& loop;
    const kube::Client& client;
    // The usage of all namespaces that have a consumer; std::nullopt: it is not known yet.
    std::function<std::optional<std::map<std::string, Usage>>()> read;
    Log log;
  };
  explicit UsageWriter(Parts parts);
  UsageWriter(const UsageWriter&) = delete;
  UsageWriter& operator=(const UsageWriter&) = delete;
  ~UsageWriter();  // Call stop() before, unless it never started.

  void start();
  [[nodiscard]] io::Task<void> stop();

 private:
  [[nodiscard]] io::Task<void> work();
  [[nodiscard]] io::Task<bool> find_objects();
  [[nodiscard]] io::Task<void> look();
  [[nodiscard]] io::Task<Result<>> carry_out(const UsagePlan::Due& due);
  void tell(const Error& error);

  const Parts parts_;
  UsagePlan plan_;
  std::stop_source stop_;
  bool is_working_ = false;
  bool has_warned_ = false;
  io::Event ended_;
};

}  // namespace hangar::tenants
