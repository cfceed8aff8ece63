// Writes guests' output on its own thread, in the order of the calls: a slow or hanging disk blocks
// neither the loop nor guests.
//
// Output that waits for the disk is bounded, for each namespace and in total; further output is
// dropped, and the log says how much.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/object.h"
#include "output/log_files.h"
#include "output/namespace_allowances.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hangar::output {

// Loop thread.
class LogWriter {
 public:
  LogWriter(io::Loop& loop, LogFiles logs, Log log);
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Like those of LogFiles.
  void begin(LogFiles::Owner owner);
  void append(LogFiles::Owner owner, std::string text);
  void remove(kube::ObjectKey key, std::string resource = {});
  void remove_others(std::vector<kube::ObjectKey> keys, std::string resource = {});
  void remove_other_resources(std::vector<std::string> resources);

  // The rate limits of namespaces. Check them before append().
  [[nodiscard]] NamespaceAllowances& allowances() { return allowances_; }

  // Waits until all output is written, for some seconds at most.
  [[nodiscard]] io::Task<void> flush();

 private:
  void on_appended(const std::string& namespace_name, std::uint64_t bytes, const Result<>& written);

  io::Loop& loop_;
  const LogFiles logs_;
  const Log log_;
  NamespaceAllowances allowances_;
  std::uint64_t waiting_bytes_ = 0;
  std::map<std::string, std::uint64_t> waiting_by_namespace_;  // Non-zero ones only.
  std::uint64_t dropped_bytes_ = 0;                            // Since the disk last kept up.
  io::Workers thread_;                                         // Ends before the members it uses.
};

}  // namespace hangar::output
