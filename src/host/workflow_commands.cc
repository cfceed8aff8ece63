#include "host/workflow_commands.h"

#include "abi/statemachine/diagram.h"
#include "base/time.h"
#include "host/cluster_session.h"
#include "host/config_maps.h"
#include "host/module_supply.h"
#include "host/workflow_parts.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"
#include "workflows/ledger.h"
#include "workflows/machine_modules.h"
#include "workflows/module_archive.h"
#include "workflows/signals.h"
#include "workflows/workflow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <iterator>
#include <memory>
#include <random>
#include <stop_token>
#include <string_view>
#include <utility>

namespace hangar::host {

namespace {

kube::ObjectKey key_of(const ClusterSession& session, WorkflowName workflow) {
  if (workflow.namespace_.empty()) workflow.namespace_ = session.credentials->namespace_();
  if (workflow.namespace_.empty()) workflow.namespace_ = "default";
  return {.namespace_ = std::move(workflow.namespace_), .name = std::move(workflow.name)};
}

// The definition of the machine that the workflow goes by.
io::Task<Result<std::string>> definition_of(workflows::MachineModules& modules,
                                            workflows::ModuleArchive& archive,
                                            const workflows::Workflow& workflow,
                                            const workflows::Ledger& ledger) {
  const std::stop_token stop;
  Result<workflows::MachineModule> module = fail(ErrorKind::NotFound, "the workflow has not begun");
  if (!ledger.sha256.empty()) {
    module = co_await workflows::load_pinned(
        modules, archive, {.namespace_ = workflow.key.namespace_, .sha256 = ledger.sha256}, stop);
  }
  if (!module) {
    workflows::MachineSource source = workflow.machine;
    source.pinned_sha256 = ledger.sha256;
    module = co_await modules.prepare(std::move(source), stop);
  }
  if (!module) co_return std::unexpected(std::move(module).error());
  co_return co_await module->machine->definition(stop);
}

std::string header_of(const json::Value& manifest, const workflows::Ledger& ledger) {
  std::string text =
      fmt::format("{}: {}{}\n", kube::key_of(manifest).to_string(),
                  ledger.has_begun() ? ledger.value : std::string("not begun"),
                  ledger.entered_at ? " since " + to_rfc3339(*ledger.entered_at) : std::string());
  if (const json::Array* const conditions = json::array_at(manifest, {"status", "conditions"})) {
    for (const json::Value& condition : *conditions) {
      fmt::format_to(std::back_inserter(text), "{:<12} {:<6} {}: {}\n",
                     json::string_at(condition, {"type"}), json::string_at(condition, {"status"}),
                     json::string_at(condition, {"reason"}),
                     json::string_at(condition, {"message"}));
    }
  }
  return text;
}

std::string history_of(const workflows::Ledger& ledger) {
  std::string text;
  for (const workflows::HistoryEntry& entry : ledger.history) {
    fmt::format_to(std::back_inserter(text), "{:>4}  {}  {} -> {}{}{}\n", entry.sequence,
                   to_rfc3339(entry.time), entry.from.empty() ? "(start)" : entry.from, entry.to,
                   entry.event.empty() ? "" : " on " + entry.event,
                   entry.actions.empty()
                       ? std::string()
                       : fmt::format(", asks for {}", fmt::join(entry.actions, ", ")));
  }
  for (const workflows::RunningTimer& timer : ledger.timers) {
    fmt::format_to(std::back_inserter(text), "   at {}  {}\n", to_rfc3339(timer.due),
                   workflows::type_of(timer.event));
  }
  return text;
}

io::Task<Result<std::string>> show(const kube::Client& client, workflows::MachineModules& modules,
                                   workflows::ModuleArchive& archive, kube::ObjectKey key,
                                   Drawing drawing) {
  const json::Value manifest = HANGAR_CO_TRY(
      co_await client.get(workflows::workflow_resource(), std::move(key), std::stop_token()));
  const workflows::Workflow workflow = HANGAR_CO_TRY(workflows::parse_workflow(manifest));
  const workflows::Ledger ledger =
      HANGAR_CO_TRY(workflows::parse_ledger(json::find(manifest, {"status"})));
  const std::string value = workflows::value_json(ledger.value);
  const Result<std::string> definition = co_await definition_of(modules, archive, workflow, ledger);
  if (drawing == Drawing::Mermaid) {
    if (!definition) co_return std::unexpected(definition.error());
    co_return abi::statemachine::draw_mermaid(*definition, value);
  }
  const Result<std::string> tree = definition
                                       ? abi::statemachine::draw_tree(*definition, value)
                                       : Result<std::string>(std::unexpected(definition.error()));
  const std::string drawn =
      tree ? *tree : fmt::format("(no drawing: {})\n", tree.error().message());
  co_return fmt::format("{}\n{}\n{}", header_of(manifest, ledger), drawn, history_of(ledger));
}

// Later than all that were made before, by whoever has about the same time.
std::string new_signal_id() {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(io::Loop::wall_now().time_since_epoch())
          .count();
  return fmt::format("{:016}.{:08x}", micros, std::random_device()());
}

Result<json::Value> event_of(const WorkflowSignal& signal) {
  json::Value event = HANGAR_TRY(workflows::parse_event(signal.event));
  if (signal.data.empty()) return event;
  Result<json::Value> data = json::parse(signal.data);
  if (!data || !data->is_object()) {
    return fail(ErrorKind::InvalidInput, "--data: must be a JSON object");
  }
  for (auto& member : data->get_object()) {
    if (member.key() != "type") event.as_object()[member.key()] = member.value();
  }
  return event;
}

io::Task<Result<std::string>> signal(const kube::Client& client, kube::ObjectKey key,
                                     std::string id, json::Value event) {
  json::Object annotations;
  annotations[std::string(workflows::kSignalPrefix) + id] = json::dump(event);
  HANGAR_CO_TRY(co_await client.patch(
      workflows::workflow_resource(), std::move(key), kube::PatchType::Merge,
      json::Object{{"metadata", json::Object{{"annotations", std::move(annotations)}}}},
      {.field_manager = "hangar-cli"}, std::stop_token()));
  co_return id;
}

}  // namespace

Result<std::string> show_workflow(const Config& config, WorkflowName workflow, Drawing drawing,
                                  const Log& log) {
  const Config resolved = HANGAR_TRY(resolve(config));
  kube::Login login = HANGAR_TRY(find_login(resolved));
  ModuleFiles files = HANGAR_TRY(ModuleFiles::open(resolved, log));
  HANGAR_TRY(prepare_machine_directory(resolved));
  ClusterSession session(std::move(login), log);
  io::Workers workers(session.loop, 1);
  ConfigMaps config_maps(session.client);
  ModuleSupply supply(std::move(files), resolved, session.loop, workers, session.http, &config_maps,
                      FileModules::Allowed, log);
  HANGAR_TRY(supply.code_cache.open());
  MachineParts machines(resolved, session.loop, workers, supply);
  workflows::ModuleArchive archive(
      {.loop = session.loop, .workers = workers, .client = session.client, .store = *supply.store});
  return session.run(show(session.client, machines.modules, archive,
                          key_of(session, std::move(workflow)), drawing));
}

Result<std::string> signal_workflow(const Config& config, WorkflowName workflow,
                                    WorkflowSignal signal_in, const Log& log) {
  json::Value event = HANGAR_TRY(event_of(signal_in));
  kube::Login login = HANGAR_TRY(find_login(config));
  ClusterSession session(std::move(login), log);
  std::string id = signal_in.id.empty() ? new_signal_id() : std::move(signal_in.id);
  return session.run(signal(session.client, key_of(session, std::move(workflow)), std::move(id),
                            std::move(event)));
}

}  // namespace hangar::host
