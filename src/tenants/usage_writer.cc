#include "tenants/usage_writer.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "kube/scope.h"
#include "tenants/usage.h"
#include "tenants/usage_plan.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace hangar::tenants {

namespace {

constexpr std::string_view kFieldManager = "hangar-usage";

// Time between two measurements of the usage; due objects are then written.
constexpr std::chrono::seconds kLookInterval{5};

}  // namespace

UsageWriter::UsageWriter(Parts parts) : parts_(std::move(parts)), ended_(parts_.loop) {}

UsageWriter::~UsageWriter() {
  HANGAR_ASSERT(!is_working_, "stop it before");
}

void UsageWriter::start() {
  is_working_ = true;
  parts_.loop.spawn(work());
}

io::Task<void> UsageWriter::stop() {
  stop_.request_stop();
  while (is_working_)
    (void)co_await ended_.wait({});
}

io::Task<void> UsageWriter::work() {
  const std::stop_token stop = stop_.get_token();
  bool are_found = false;
  while (!stop.stop_requested()) {
    if (!are_found) are_found = co_await find_objects();
    co_await look();
    if (!co_await parts_.loop.sleep(are_found ? Duration(kLookInterval) : Duration(kUsageRetry),
                                    stop)) {
      break;
    }
  }
  is_working_ = false;
  ended_.notify_all();
}

// Finds the objects of an earlier host. If that fails, the only harm is that unneeded objects stay.
io::Task<bool> UsageWriter::find_objects() {
  const Result<kube::List> listed = co_await parts_.client.list(
      tenant_usage_resource(), {.detail = kube::Detail::Metadata}, stop_.get_token());
  if (!listed) {
    tell(listed.error());
    co_return false;
  }
  for (const kube::ObjectPtr& object : listed->items)
    plan_.found(object->key().namespace_);
  co_return true;
}

io::Task<void> UsageWriter::look() {
  const std::optional<std::map<std::string, Usage>> usages = parts_.read();
  if (!usages) co_return;
  std::map<std::string, json::Value> documents;
  for (const auto& [namespace_name, usage] : *usages)
    documents.emplace(namespace_name, usage_document(namespace_name, usage));
  for (const UsagePlan::Due& due : plan_.look(std::move(documents), io::Loop::now())) {
    const Result<> done = co_await carry_out(due);
    if (done) {
      plan_.done(due, io::Loop::now());
      has_warned_ = false;
      continue;
    }
    plan_.failed(due, io::Loop::now());
    if (stop_.stop_requested()) co_return;
    tell(done.error());
  }
}

io::Task<Result<>> UsageWriter::carry_out(const UsagePlan::Due& due) {
  const kube::ObjectKey key{.namespace_ = due.namespace_name, .name = std::string(kUsageName)};
  const Result<json::Value> answer =
      due.document.is_null()
          ? co_await parts_.client.remove(tenant_usage_resource(), key, {}, stop_.get_token())
          : co_await parts_.client.apply(
                tenant_usage_resource(), due.document,
                {.field_manager = std::string(kFieldManager), .force = true}, stop_.get_token());
  const bool is_gone =
      due.document.is_null() && !answer && answer.error().kind() == ErrorKind::NotFound;
  if (!answer && !is_gone) co_return std::unexpected(answer.error());
  co_return Result<>();
}

void UsageWriter::tell(const Error& error) {
  if (error.kind() == ErrorKind::Cancelled || std::exchange(has_warned_, true)) return;
  parts_.log.warning(
      "cannot write a TenantUsage: the usage of namespaces is visible in the metrics only",
      {{"error", error.message()}});
}

}  // namespace hangar::tenants
