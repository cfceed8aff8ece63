#include "commands/workflow_commands.h"

#include "abi/statemachine/diagram.h"
#include "abi/statemachine/machine.h"
#include "archive/module_archive.h"
#include "base/random.h"
#include "base/text.h"
#include "base/time.h"
#include "commands/workflow_report.h"
#include "domains/guest_processes.h"
#include "domains/zygote.h"
#include "host/cluster_session.h"
#include "host/config_maps.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "host/workflow_parts.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "modules/requester.h"
#include "workflows/ledger.h"
#include "workflows/machine_modules.h"
#include "workflows/signals.h"
#include "workflows/workflow.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

kube::ObjectKey key_of(const host::ClusterSession& session, WorkflowName workflow) {
  if (workflow.namespace_.empty()) workflow.namespace_ = session.credentials->namespace_();
  if (workflow.namespace_.empty()) workflow.namespace_ = "default";
  return {.namespace_ = std::move(workflow.namespace_), .name = std::move(workflow.name)};
}

// Machine and actors, for a caller that draws them itself.
Result<std::string> definitions_of(std::string_view definition, std::string_view value,
                                   const std::vector<abi::statemachine::Actor>& actors) {
  json::Array listed;
  for (const abi::statemachine::Actor& actor : actors) {
    json::Object one{{"id", actor.id}};
    if (Result<json::Value> parsed = json::parse(actor.definition)) {
      one["definition"] = *std::move(parsed);
    }
    if (Result<json::Value> parsed = json::parse(actor.value)) one["value"] = *std::move(parsed);
    listed.push_back(std::move(one));
  }
  json::Object out{{"definition", HANGAR_TRY(json::parse(definition))},
                   {"actors", std::move(listed)}};
  if (Result<json::Value> parsed = json::parse(value)) out["value"] = *std::move(parsed);
  return json::dump(out);
}

// Draws the workflow's machine and its actors in their states.
io::Task<Result<std::string>> drawing_of(workflows::MachineModules& modules,
                                         const workflows::Workflow& workflow,
                                         const workflows::Ledger& ledger, Drawing drawing) {
  const std::stop_token stop;
  const workflows::MachineModule module = HANGAR_CO_TRY(co_await modules.get(
      workflows::MachineModules::wish_for(modules::Requester::in_namespace(workflow.key.namespace_),
                                          workflow.machine, ledger.sha256),
      stop));
  const std::string definition = HANGAR_CO_TRY(co_await module.machine->definition(stop));
  const std::string value = workflows::value_json(ledger.value);
  if (drawing == Drawing::Mermaid) {
    co_return abi::statemachine::draw_mermaid(definition, value);
  }
  if (drawing == Drawing::Definition) {
    const std::vector<abi::statemachine::Actor> actors =
        HANGAR_CO_TRY(co_await module.machine->actors(ledger.state, stop));
    co_return definitions_of(definition, value, actors);
  }
  std::string text = HANGAR_CO_TRY(abi::statemachine::draw_tree(definition, value));
  if (ledger.actors.empty()) co_return text;
  const std::vector<abi::statemachine::Actor> actors =
      HANGAR_CO_TRY(co_await module.machine->actors(ledger.state, stop));
  for (const abi::statemachine::Actor& actor : actors) {
    if (actor.definition.empty()) continue;
    text += fmt::format("\n{}\n{}", printable(actor.id),
                        HANGAR_CO_TRY(abi::statemachine::draw_tree(actor.definition, actor.value)));
  }
  co_return text;
}

// Waits for the result, then stops the work of `modules`.
io::Task<Result<ShownWorkflow>> to_its_end(io::Task<Result<ShownWorkflow>> showing,
                                           workflows::MachineModules& modules) {
  Result<ShownWorkflow> shown = co_await std::move(showing);
  co_await modules.supply().stop();
  co_return shown;
}

// Events also report problems of a workflow; the reason for a failed action is only there.
io::Task<Result<std::vector<json::Value>>> warnings_about(const kube::Client& client,
                                                          const json::Value& manifest) {
  kube::ListOptions options{
      .namespace_ = kube::key_of(manifest).namespace_,
      .field_selector = fmt::format("involvedObject.uid={},type=Warning",
                                    json::string_at(manifest, {"metadata", "uid"}))};
  const kube::List list = HANGAR_CO_TRY(
      co_await client.list(kube::event_resource(), std::move(options), std::stop_token()));
  std::vector<json::Value> events;
  events.reserve(list.items.size());
  for (const kube::ObjectPtr& event : list.items)
    events.push_back(event->to_value());
  co_return events;
}

io::Task<Result<ShownWorkflow>> show(const kube::Client& client, workflows::MachineModules& modules,
                                     kube::ObjectKey key, Drawing drawing) {
  json::Value manifest = HANGAR_CO_TRY(
      co_await client.get(workflows::workflow_resource(), std::move(key), std::stop_token()));
  const Result<workflows::Workflow> workflow = workflows::parse_workflow(manifest);
  Result<workflows::Ledger> ledger = workflows::parse_ledger(json::find(manifest, {"status"}));
  std::optional<Error> trouble;
  if (!workflow) trouble = workflow.error();
  if (!ledger) trouble = ledger.error();
  if (trouble && drawing != Drawing::Tree) co_return std::unexpected(*std::move(trouble));

  Result<std::string> drawn = std::string();
  if (trouble) {
    drawn = std::unexpected(*trouble);
  } else {
    drawn = co_await drawing_of(modules, *workflow, *ledger, drawing);
  }
  if (drawing != Drawing::Tree) {
    co_return ShownWorkflow{.text = HANGAR_CO_TRY(std::move(drawn))};
  }
  Result<std::vector<json::Value>> warnings = co_await warnings_about(client, manifest);
  co_return ShownWorkflow{.text = report_on({.manifest = std::move(manifest),
                                             .ledger = std::move(ledger),
                                             .drawing = std::move(drawn),
                                             .warnings = std::move(warnings)}),
                          .trouble = std::move(trouble)};
}

// Sorts after all earlier ids, also those of other machines if their clocks agree.
std::string new_signal_id() {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(io::Loop::wall_now().time_since_epoch())
          .count();
  return fmt::format("{:016}.{:08x}", micros, static_cast<std::uint32_t>(random_number()));
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

// Conflict when the workflow has finished: the host would accept the event and ignore it.
io::Task<Result<>> check_not_ended(const kube::Client& client, kube::ObjectKey key) {
  const Result<json::Value> manifest =
      co_await client.get(workflows::workflow_resource(), key, std::stop_token());
  // Users who may patch the workflow but not read it may send events.
  if (!manifest && manifest.error().kind() == ErrorKind::Denied) co_return Result<>();
  if (!manifest) co_return std::unexpected(manifest.error());
  const std::string_view finished = json::string_at(*manifest, {"status", "finishedAt"});
  if (finished.empty()) co_return Result<>();
  const Result<WallTime> time = parse_rfc3339(finished);
  co_return fail(ErrorKind::Conflict,
                 fmt::format("{} finished in state {} at {} and accepts no events", key.to_string(),
                             json::string_at(*manifest, {"status", "value"}),
                             time ? to_rfc3339(*time) : std::string(finished)));
}

io::Task<Result<std::string>> signal(const kube::Client& client, kube::ObjectKey key,
                                     std::string id, json::Value event) {
  HANGAR_CO_TRY(co_await check_not_ended(client, key));
  json::Object annotations;
  annotations[std::string(workflows::kSignalPrefix) + id] = json::dump(event);
  HANGAR_CO_TRY(co_await client.patch(
      workflows::workflow_resource(), std::move(key), kube::PatchType::Merge,
      json::Object{{"metadata", json::Object{{"annotations", std::move(annotations)}}}},
      {.field_manager = "hangar-cli"}, std::stop_token()));
  co_return id;
}

}  // namespace

Result<ShownWorkflow> show_workflow(const host::Config& config, WorkflowName workflow,
                                    Drawing drawing, const Log& log) {
  const host::Config resolved = HANGAR_TRY(host::resolve_for_guests(config));
  // Before the login: no guest process may start with a credential in its memory.
  std::optional<domains::ZygoteProcess> zygote = HANGAR_TRY(host::start_zygote(resolved));
  kube::Login login = HANGAR_TRY(host::find_login(resolved));
  host::ModuleFiles files = HANGAR_TRY(host::ModuleFiles::open(resolved, log));
  HANGAR_TRY(host::prepare_machine_directory(resolved));
  host::ClusterSession session(std::move(login), log);
  io::Workers workers(session.loop, 1);
  host::ConfigMaps config_maps(session.client);
  // The console's page requests a drawing without the user: another user's workflow must not make
  // it read a file on this machine.
  const host::FileModules file_modules =
      drawing == Drawing::Definition ? host::FileModules::Refused : host::FileModules::Allowed;
  host::ModuleSupply supply(std::move(files), resolved, session.loop, workers, session.http,
                            &config_maps, file_modules, log);
  HANGAR_TRY(supply.code_cache.open());
  const std::unique_ptr<domains::GuestProcesses> guest_processes = host::make_guest_processes(
      resolved, std::move(zygote), supply.engine, session.metrics, log, domains::TellsOfWalls::No);
  HANGAR_TRY(host::hide_from_guests(resolved));
  host::MachineParts machines(resolved, supply, guest_processes.get());
  archive::ModuleArchive archive({.loop = session.loop,
                                  .workers = workers,
                                  .client = session.client,
                                  .store = *supply.store,
                                  .format = workflows::machine_copies()});
  machines.modules.use_archive(&archive);
  return session.run(to_its_end(
      show(session.client, machines.modules, key_of(session, std::move(workflow)), drawing),
      machines.modules));
}

io::Task<Result<std::string>> send_signal(const kube::Client& client, kube::ObjectKey key,
                                          WorkflowSignal signal_in) {
  json::Value event = HANGAR_CO_TRY(event_of(signal_in));
  std::string id = signal_in.id.empty() ? new_signal_id() : std::move(signal_in.id);
  co_return co_await signal(client, std::move(key), std::move(id), std::move(event));
}

Result<std::string> signal_workflow(const host::Config& config, WorkflowName workflow,
                                    WorkflowSignal signal_in, const Log& log) {
  (void)HANGAR_TRY(event_of(signal_in));  // Before the login.
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  return session.run(
      send_signal(session.client, key_of(session, std::move(workflow)), std::move(signal_in)));
}

}  // namespace hangar::commands
