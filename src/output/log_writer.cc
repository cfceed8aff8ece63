#include "output/log_writer.h"

#include "base/consumer.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"
#include "output/log_files.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hangar::output {

namespace {

// A thousand operators could print more in a second at the default rate; output that the disk does
// not take within seconds is not worth the memory.
constexpr std::uint64_t kWaitingBytesMax = 8 * limits::kMiB;
// So that one namespace does not displace the output of the others.
constexpr std::uint64_t kWaitingBytesOfOneMax = kWaitingBytesMax / 4;

// A part of limits::kShutdownMax.
constexpr std::chrono::seconds kFlushMax{2};

// All output is written in the order of its arrival, as one consumer; the bounds above separate
// the namespaces.
Consumer thread_user() {
  return Consumer::of_host("output");
}

}  // namespace

LogWriter::LogWriter(io::Loop& loop, LogFiles logs, Log log)
    : loop_(loop), logs_(std::move(logs)), log_(std::move(log)), thread_(loop, 1) {}

void LogWriter::begin(LogFiles::Owner owner) {
  thread_.submit(thread_user(), [this, owner = std::move(owner)] { logs_.begin(owner); });
}

void LogWriter::append(LogFiles::Owner owner, std::string text) {
  const std::uint64_t bytes = text.size();
  std::uint64_t& of_namespace = waiting_by_namespace_[owner.key.namespace_];
  if (waiting_bytes_ + bytes > kWaitingBytesMax || of_namespace + bytes > kWaitingBytesOfOneMax) {
    if (of_namespace == 0) waiting_by_namespace_.erase(owner.key.namespace_);
    if (dropped_bytes_ == 0) log_.warning("output is not kept: the disk does not keep up");
    dropped_bytes_ += bytes;
    return;
  }
  waiting_bytes_ += bytes;
  of_namespace += bytes;
  thread_.submit(thread_user(), [this, owner = std::move(owner), text = std::move(text)] {
    loop_.post(
        [this, namespace_name = owner.key.namespace_, bytes = text.size(),
         written = logs_.append(owner, text)] { on_appended(namespace_name, bytes, written); });
  });
}

void LogWriter::remove(kube::ObjectKey key, std::string resource) {
  thread_.submit(thread_user(), [this, key = std::move(key), resource = std::move(resource)] {
    logs_.remove(key, resource);
  });
}

void LogWriter::remove_others(std::vector<kube::ObjectKey> keys, std::string resource) {
  thread_.submit(thread_user(), [this, keys = std::move(keys), resource = std::move(resource)] {
    logs_.remove_others(keys, resource);
  });
}

void LogWriter::remove_other_resources(std::vector<std::string> resources) {
  thread_.submit(thread_user(), [this, resources = std::move(resources)] {
    logs_.remove_other_resources(resources);
  });
}

io::Task<void> LogWriter::flush() {
  if (!co_await thread_.flush(thread_user(), kFlushMax)) {
    log_.warning("output is lost: the disk does not keep up", {{"bytes", waiting_bytes_}});
  }
}

void LogWriter::on_appended(const std::string& namespace_name, std::uint64_t bytes,
                            const Result<>& written) {
  waiting_bytes_ -= bytes;
  const auto of_namespace = waiting_by_namespace_.find(namespace_name);
  of_namespace->second -= bytes;
  if (of_namespace->second == 0) waiting_by_namespace_.erase(of_namespace);
  if (!written) log_.warning("output is not kept", {{"error", written.error().message()}});
  if (dropped_bytes_ == 0 || waiting_bytes_ > 0) return;
  log_.warning("the disk keeps up again", {{"dropped_bytes", std::exchange(dropped_bytes_, 0)}});
}

}  // namespace hangar::output
