// Writes what guests print, on a thread of its own and in the order of the calls: a disk that is
// slow or hangs holds up neither the loop nor guests.
//
// What waits for the disk is bounded; beyond that output is dropped, and the log says how much.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "kube/object.h"
#include "operators/operator_log.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hangar::operators {

// Loop thread.
class OperatorLogWriter {
 public:
  OperatorLogWriter(io::Loop& loop, OperatorLogs logs, Log log);
  OperatorLogWriter(const OperatorLogWriter&) = delete;
  OperatorLogWriter& operator=(const OperatorLogWriter&) = delete;

  // As those of OperatorLogs.
  void begin(OperatorLogs::Owner owner);
  void append(OperatorLogs::Owner owner, std::string text);
  void remove(kube::ObjectKey key);
  void remove_others(std::vector<kube::ObjectKey> keys);

  // Waits until everything is written, for some seconds at most.
  [[nodiscard]] io::Task<void> flush();

 private:
  void on_appended(std::uint64_t bytes, const Result<>& written);

  io::Loop& loop_;
  const OperatorLogs logs_;
  const Log log_;
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t dropped_bytes_ = 0;  // Since the disk last kept up.
  io::Workers thread_;               // Ends before what it uses.
};

}  // namespace hangar::operators
