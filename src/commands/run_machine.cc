#include "commands/run_machine.h"

#include "abi/statemachine/diagram.h"
#include "abi/statemachine/machine.h"
#include "abi/statemachine/runtime.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/build_machine.h"
#include "commands/shown_step.h"
#include "commands/streams.h"
#include "commands/temporary_directory.h"
#include "domains/guest_processes.h"
#include "domains/zygote.h"
#include "host/config.h"
#include "host/guest_parts.h"
#include "host/module_supply.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "json/yaml.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "wasm/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

using abi::statemachine::Machine;
using abi::statemachine::Step;
using abi::statemachine::Timer;

std::map<std::string, std::string> texts_at(const json::Value& object, std::string_view member) {
  std::map<std::string, std::string> texts;
  const json::Object* const members = json::object_at(object, {member});
  if (members == nullptr) return texts;
  for (const auto& entry : *members)
    if (entry.value().is_string()) texts[entry.key()] = entry.value().get_string();
  return texts;
}

// The parts of a machine that are already here; the fetcher fetches the others.
struct Found {
  std::optional<std::string> module;
  std::optional<std::string> plugin;
};

// The machine of a project's directory or of a file with a ConfigMap; empty for everything else,
// which is left to the fetcher.
Result<Found> bytes_of(const std::string& module, const Say& show) {
  std::error_code ignored;
  if (std::filesystem::is_directory(module, ignored)) {
    return Found{.module = HANGAR_TRY(bundle_project({.directory = module}, show))};
  }
  if (!module.ends_with(".yaml") && !module.ends_with(".yml") && !module.ends_with(".json")) {
    return Found();
  }
  const std::string text = HANGAR_TRY(io::read_file(module, 2 * limits::kObjectBytesMax));
  const json::Value object = HANGAR_TRY(json::parse_yaml(text));
  if (json::string_at(object, {"kind"}) != "ConfigMap") {
    return fail(ErrorKind::InvalidInput, fmt::format("{} is not a ConfigMap", module));
  }
  const modules::ConfigMapContent content{.data = texts_at(object, "data"),
                                          .binary_data = texts_at(object, "binaryData")};
  Found found{.module =
                  HANGAR_TRY(modules::module_bytes(content, "", modules::Content::ModuleOrScript))};
  Result<std::string> plugin = modules::module_bytes(content, modules::kPluginKey);
  if (!plugin && plugin.error().kind() != ErrorKind::NotFound) {
    return std::unexpected(std::move(plugin).error());
  }
  if (plugin) found.plugin = *std::move(plugin);
  return found;
}

// Converts an event from the form that people write to JSON.
Result<std::string> event_of(std::string_view line, const std::map<std::string, Timer>& timers) {
  if (line.starts_with('{')) return std::string(line);
  if (line.starts_with('@')) {
    const auto timer = timers.find(std::string(line.substr(1)));
    if (timer == timers.end()) {
      return fail(ErrorKind::InvalidInput, fmt::format("no timer {} runs", line.substr(1)));
    }
    return timer->second.event;
  }
  const std::size_t space = line.find(' ');
  json::Object event = {{"type", line.substr(0, space)}};
  if (space != std::string_view::npos) {
    Result<json::Value> members = json::parse(line.substr(space + 1));
    if (!members || !members->is_object()) {
      return fail(ErrorKind::InvalidInput,
                  "an event is TYPE, TYPE {\"member\": ...} or {\"type\": ...}");
    }
    for (auto& entry : members->get_object())
      event[entry.key()] = std::move(entry.value());
  }
  return json::dump(event);
}

// Empty for the machine itself.
std::string by(std::string_view actor) {
  return actor.empty() ? std::string() : fmt::format(" ({})", actor);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string shown(const Step& step) {
  std::string text;
  if (!step.log.empty()) text += fmt::format("  prints {}\n", trimmed(step.log));
  if (!step.is_handled) return text + fmt::format("  ignored in {}\n", step.value);
  text += fmt::format("  {}{}\n", step.value, step.is_final ? " (final)" : "");
  for (const std::string& id : step.timers_cancelled)
    text += fmt::format("    cancels @{}\n", id);
  for (const auto& action : step.actions)
    text += fmt::format("    asks for {} {}{}\n", action.type, action.params, by(action.actor));
  for (const Timer& timer : step.timers_started) {
    text += fmt::format("    starts @{}: {} in {}\n", timer.id, timer.event,
                        to_go_duration(timer.delay));
  }
  for (const std::string& actor : step.actors_stopped)
    text += fmt::format("    {} ended\n", actor);
  for (const auto& actor : step.actors)
    text += fmt::format("    {} in {}{}\n", actor.id, actor.value, by(actor.status));
  if (step.output) text += fmt::format("    output {}\n", *step.output);
  return text;
}

Result<std::string> as_json(const Step& step) {
  json::Array actions;
  for (const auto& action : step.actions) {
    json::Object asked{{"type", action.type}, {"params", HANGAR_TRY(json::parse(action.params))}};
    if (!action.actor.empty()) asked["actor"] = action.actor;
    actions.push_back(std::move(asked));
  }
  json::Array started;
  for (const Timer& timer : step.timers_started) {
    started.push_back(json::Object{
        {"id", timer.id},
        {"delay", std::chrono::duration_cast<std::chrono::milliseconds>(timer.delay).count()},
        {"event", HANGAR_TRY(json::parse(timer.event))}});
  }
  json::Array cancelled;
  for (const std::string& id : step.timers_cancelled)
    cancelled.emplace_back(id);
  json::Object object = {{"value", HANGAR_TRY(json::parse(step.value))},
                         {"handled", step.is_handled},
                         {"final", step.is_final},
                         {"actions", std::move(actions)},
                         {"timersStarted", std::move(started)},
                         {"timersCancelled", std::move(cancelled)},
                         {"state", HANGAR_TRY(json::parse(step.state))}};
  if (step.output) object["output"] = HANGAR_TRY(json::parse(*step.output));
  json::Array actors;
  for (const auto& actor : step.actors) {
    json::Object one{{"actor", actor.id}, {"value", HANGAR_TRY(json::parse(actor.value))}};
    if (!actor.status.empty()) one["status"] = actor.status;
    actors.push_back(std::move(one));
  }
  if (!actors.empty()) object["actors"] = std::move(actors);
  if (!step.actors_stopped.empty()) {
    object["actorsStopped"] = json::Array(step.actors_stopped.begin(), step.actors_stopped.end());
  }
  return json::dump(object) + "\n";
}

class MachineSession {
 public:
  // `zygote`: from host::start_zygote().
  MachineSession(const host::Config& config, std::optional<domains::ZygoteProcess> zygote,
                 const Log& log)
      : config_(config), log_(log), zygote_(std::move(zygote)), workers_(loop_, 2), http_(loop_) {}
  MachineSession(const MachineSession&) = delete;
  MachineSession& operator=(const MachineSession&) = delete;

  // `plugin`: a reference; empty: none. `show`: as in RunMachineOptions.
  Result<> open(const std::string& module, std::string plugin, Say show) {
    show_ = std::move(show);
    std::string reference = module;
    const Found found = HANGAR_TRY(bytes_of(module, show_));
    if (found.module) {
      directory_ = HANGAR_TRY(TemporaryDirectory::make());
      reference = (directory_->path() / "machine").string();
      HANGAR_TRY(io::write_file(reference, *found.module));
    }
    if (found.plugin && plugin.empty()) {
      plugin = (directory_->path() / "plugin").string();
      HANGAR_TRY(io::write_file(plugin, *found.plugin));
    }
    const std::filesystem::path images = config_.module_cache_dir / "machines";
    host::ModuleFiles files = HANGAR_TRY(host::ModuleFiles::open(config_, log_));
    supply_.emplace(std::move(files), config_, loop_, workers_, http_, nullptr,
                    host::FileModules::Allowed, log_);
    HANGAR_TRY(supply_->code_cache.open());
    HANGAR_TRY(io::make_private_directory(images));
    guest_processes_ =
        host::make_guest_processes(config_, std::exchange(zygote_, std::nullopt), supply_->engine,
                                   metrics_, log_, domains::TellsOfWalls::No);
    HANGAR_TRY(host::hide_from_guests(config_));
    runtime_.emplace(supply_->code_cache, images, guest_processes_.get());
    machine_ = HANGAR_TRY(io::run_to_end(loop_, load(std::move(reference), std::move(plugin))));
    return {};
  }

  Result<Step> start(std::string input) {
    return io::run_to_end(loop_, machine_->start(std::move(input), stop_));
  }
  Result<Step> step(std::string state, std::string event) {
    return io::run_to_end(loop_, machine_->step(std::move(state), std::move(event), stop_));
  }
  Result<std::string> definition() { return io::run_to_end(loop_, machine_->definition(stop_)); }

 private:
  io::Task<Result<modules::Fetched>> fetch(std::string text, modules::Content content) {
    modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(text));
    co_return co_await supply_->fetcher.fetch(modules::Requester::cluster_wide(),
                                              std::move(reference), {.content = content}, stop_);
  }

  io::Task<Result<std::shared_ptr<Machine>>> load(std::string module, std::string plugin) {
    std::optional<ShownStep> shown(std::in_place, loop_, show_);
    shown->is("fetching");
    modules::Fetched fetched =
        HANGAR_CO_TRY(co_await fetch(std::move(module), modules::Content::ModuleOrScript));
    if (!plugin.empty() && abi::statemachine::missing_plugin(fetched.wasm)) {
      const modules::Fetched its_plugin =
          HANGAR_CO_TRY(co_await fetch(std::move(plugin), modules::Content::Module));
      fetched.wasm = HANGAR_CO_TRY(wasm::carry_plugin(std::as_bytes(std::span(fetched.wasm)),
                                                      std::as_bytes(std::span(its_plugin.wasm))));
    }
    // For the first JavaScript machine this compiles the engine, too.
    shown->is("compiling");
    Result<std::shared_ptr<Machine>> loaded = co_await runtime_->load(
        std::make_shared<const std::string>(std::move(fetched.wasm)), {}, stop_);
    shown.reset();
    if (loaded) {
      const Result<> fit = co_await (*loaded)->try_out(stop_, {});
      if (!fit) loaded = std::unexpected(fit.error());
    }
    if (!loaded) {
      co_return std::unexpected(
          std::move(loaded).error().in(fmt::format("module {}", fetched.resolved)));
    }
    co_return loaded;
  }

  const host::Config& config_;
  const Log& log_;
  const std::stop_token stop_;
  std::optional<domains::ZygoteProcess> zygote_;
  Say show_;
  std::unique_ptr<TemporaryDirectory> directory_;
  Metrics metrics_;
  io::Loop loop_;
  io::Workers workers_;
  http::Client http_;
  std::optional<host::ModuleSupply> supply_;
  std::unique_ptr<domains::GuestProcesses> guest_processes_;  // Null: machines run here.
  std::optional<abi::statemachine::Runtime> runtime_;
  std::shared_ptr<Machine> machine_;
};

// Prints one step.
Result<> show(const Step& step, MachineOutput output, const PrintMachine& print) {
  print(output == MachineOutput::Text ? shown(step) : HANGAR_TRY(as_json(step)));
  return {};
}

void keep_timers(const Step& step, std::map<std::string, Timer>& timers) {
  for (const std::string& id : step.timers_cancelled)
    std::erase_if(timers, [&id](const auto& entry) { return entry.second.id == id; });
  for (const std::string& actor : step.actors_stopped) {
    std::erase_if(timers, [prefix = actor + ":"](const auto& entry) {
      return entry.second.id.starts_with(prefix);
    });
  }
  for (const Timer& timer : step.timers_started) {
    std::string name = timer.id;
    for (int number = 2; !timer.replaces && timers.contains(name); ++number)
      name = fmt::format("{}#{}", timer.id, number);
    timers[name] = timer;
  }
}

// Repeats the same run without printing, and returns the time per step.
Result<std::string> timed(MachineSession& session, const std::string& input,
                          const std::vector<std::string>& events, std::size_t lives) {
  const Instant began = io::Loop::now();
  for (std::size_t life = 0; life < lives; ++life) {
    Step at = HANGAR_TRY(session.start(input));
    for (const std::string& event : events)
      at = HANGAR_TRY(session.step(std::move(at.state), event));
  }
  const std::size_t steps = lives * (events.size() + 1);
  const auto took = std::chrono::duration<double, std::milli>(io::Loop::now() - began).count();
  return fmt::format("{} steps in {:.0f} ms: {:.3f} ms a step\n", steps, took,
                     took / static_cast<double>(std::max<std::size_t>(steps, 1)));
}

}  // namespace

Result<> run_machine(const host::Config& config, const RunMachineOptions& options,
                     const NextEvent& next, const PrintMachine& print, const Log& log) {
  const host::Config resolved = HANGAR_TRY(host::resolve_for_guests(config));
  std::optional<domains::ZygoteProcess> zygote = HANGAR_TRY(host::start_zygote(resolved));
  const std::string input = json::dump(HANGAR_TRY(json::parse_yaml(options.input)));
  MachineSession session(resolved, std::move(zygote), log);
  HANGAR_TRY(session.open(options.module, options.plugin, options.show));
  if (options.output == MachineOutput::Mermaid || options.output == MachineOutput::Tree) {
    const std::string definition = HANGAR_TRY(session.definition());
    print(options.output == MachineOutput::Mermaid
              ? HANGAR_TRY(abi::statemachine::draw_mermaid(definition, ""))
              : HANGAR_TRY(abi::statemachine::draw_tree(definition, "")));
    return {};
  }

  Step at = HANGAR_TRY(session.start(input));
  if (options.output == MachineOutput::Text) print("start\n");
  HANGAR_TRY(show(at, options.output, print));
  std::map<std::string, Timer> timers;
  keep_timers(at, timers);
  std::vector<std::string> events;
  std::size_t failures = 0;
  while (const std::optional<std::string> line = next()) {
    const std::string_view text = trimmed(*line);
    if (text.empty() || text.starts_with('#')) continue;
    if (options.output == MachineOutput::Text) print(fmt::format("{}\n", text));
    Result<std::string> event = event_of(text, timers);
    Result<Step> step = event ? session.step(at.state, *event) : std::unexpected(event.error());
    if (!step) {
      ++failures;
      print(options.output == MachineOutput::Text
                ? fmt::format("  error: {}\n", step.error().message())
                : json::dump(json::Object{{"error", step.error().message()}}) + "\n");
      continue;
    }
    if (text.starts_with('@')) timers.erase(std::string(text.substr(1)));
    events.push_back(*std::move(event));
    at = *std::move(step);
    keep_timers(at, timers);
    HANGAR_TRY(show(at, options.output, print));
  }
  if (options.repeat > 0) print(HANGAR_TRY(timed(session, input, events, options.repeat)));
  if (failures > 0) {
    return fail(ErrorKind::InvalidInput, fmt::format("{} events failed", failures));
  }
  return {};
}

Result<> check_machine(const host::Config& config, const std::string& module, const Say& show,
                       const Log& log) {
  const host::Config resolved = HANGAR_TRY(host::resolve_for_guests(config));
  MachineSession session(resolved, HANGAR_TRY(host::start_zygote(resolved)), log);
  return session.open(module, {}, show);
}

}  // namespace hangar::commands
