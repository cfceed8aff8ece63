#include "commands/takeoff.h"

#include "abi/flight/evaluation.h"
#include "airways/flight_run.h"
#include "airways/instance.h"
#include "airways/limits.h"
#include "airways/lookups.h"
#include "airways/matcher.h"
#include "airways/output.h"
#include "airways/ownership.h"
#include "airways/plan.h"
#include "airways/readiness.h"
#include "airways/rehearsal.h"
#include "airways/release_history.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "airways/terms.h"
#include "airways/tracker.h"
#include "base/consumer.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/flight_runner.h"
#include "commands/lua_session.h"
#include "commands/release_files.h"
#include "commands/release_session.h"
#include "commands/release_steps.h"
#include "commands/release_text.h"
#include "commands/releases.h"
#include "domains/zygote.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "host/guest_parts.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "modules/pin.h"
#include "modules/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::commands {

namespace {

using airways::Release;
using airways::Stages;

// The source of a module in the history: a URL as given, a file as a URL.
std::string source_url(const std::string& module) {
  if (module.contains("://")) return module;
  return "file://" + std::filesystem::path(module).lexically_normal().string();
}

// Whether the command needs no cluster.
bool is_offline(const TakeoffOptions& options) {
  const bool shows = options.end == TakeoffEnd::Stdout || options.end == TakeoffEnd::Files;
  return shows && !options.cluster_access && !options.load_custom_readiness;
}

Result<kube::Login> login_for(const host::Config& config, const TakeoffOptions& options) {
  Result<kube::Login> login = host::find_login(config);
  // Only the namespace of the login would be used; no request is sent.
  if (!login && is_offline(options)) {
    return kube::Login{.source = "no cluster", .cluster = {.server = "https://localhost"}};
  }
  return login;
}

class Takeoff {
 public:
  Takeoff(ReleaseSession& session, FlightRunner& runner, const TakeoffOptions& options,
          const Streams& streams)
      : session_(session),
        runner_(runner),
        options_(options),
        streams_(streams),
        release_{.name = options.release.name,
                 .namespace_ = session.namespace_or_default(options.release.namespace_),
                 .history_name = options.release.name,
                 .cross_namespace = options.cross_namespace,
                 .managed_by = std::string(airways::kManagedByCommand)} {}

  [[nodiscard]] io::Task<Result<Finished>> run() {
    if (options_.load_custom_readiness) HANGAR_CO_TRY(co_await session_.load_custom_readiness());
    std::string printed = HANGAR_CO_TRY(co_await evaluate());
    if (options_.end == TakeoffEnd::Stdout) {
      streams_.out(printed);
      co_return Finished{};
    }
    Stages stages = HANGAR_CO_TRY(co_await parse(std::move(printed)));
    if (options_.end == TakeoffEnd::Files) {
      if (options_.out != "-")
        HANGAR_CO_TRY(write_release_files(options_.out, release_.name, stages));
      if (options_.out == "-") streams_.out(release_tree(stages));
      co_return Finished{};
    }
    if (options_.create_namespace && options_.end == TakeoffEnd::Release) {
      HANGAR_CO_TRY(co_await ensure_namespace());
    }
    HANGAR_CO_TRY(co_await load_history());
    switch (options_.end) {
      case TakeoffEnd::Diff:
        co_return co_await show_difference(stages);
      case TakeoffEnd::Dry:
        co_return co_await rehearse(stages);
      default:
        co_return co_await release_locked(stages);
    }
  }

 private:
  [[nodiscard]] airways::CarryOptions carry_options() const {
    return {
        .prune = options_.prune,
        .adoption = options_.force_ownership ? airways::Adoption::Force : airways::Adoption::Refuse,
        .force_conflicts = options_.force_conflicts,
        .rehearse = options_.rehearse ? airways::Rehearse::All : airways::Rehearse::Nothing};
  }

  [[nodiscard]] io::Task<Result<std::string>> evaluate() {
    if (!options_.flight) {
      if (options_.output.empty()) {
        co_return fail(ErrorKind::InvalidInput,
                       "failed to takeoff: resource provided is either empty or invalid");
      }
      co_return options_.output;
    }
    const auto terms = std::make_shared<airways::Terms>();
    terms->cluster_access = options_.cluster_access;
    terms->lookup_watch = airways::LookupWatch::None;
    for (const std::string& text : options_.resource_access_matchers) {
      terms->resource_access_matchers.push_back(HANGAR_CO_TRY(airways::Matcher::parse(text)));
    }
    airways::Tracker tracker;
    airways::ReleaseLookups lookups(terms, release_, release_.instance, session_.view, tracker,
                                    std::nullopt, unnamed_consumer(), session_.stop());
    Result<RanFlight> ran =
        co_await runner_.run(*options_.flight, release_, lookups,
                             is_offline(options_) ? nullptr : &session_.client, session_.stop());
    if (!ran) co_return std::unexpected(not_run(std::move(ran).error()));
    if (!ran->output.stderr_bytes.empty()) streams_.say(ran->output.stderr_bytes + "---\n");
    if (ran->output.exit_code != 0) {
      co_return fail(ErrorKind::GuestFault,
                     fmt::format("failed to evaluate flight: failed to instantiate module: module "
                                 "closed with exit_code({})",
                                 ran->output.exit_code));
    }
    source_ = {.url = source_url(options_.flight->module.reference), .checksum = ran->module.sha1};
    co_return std::move(ran->output.stdout_bytes);
  }

  // In yoke's words: a module that is not the expected one is not evaluated.
  [[nodiscard]] Error not_run(Error error) const {
    const auto reference = modules::Reference::parse(options_.flight->module.reference);
    if (reference) {
      Error bare = modules::without_reference(error, *reference);
      const bool is_other = bare.message().starts_with("cannot verify module ") ||
                            bare.message().starts_with("failed to verify module: ");
      if (is_other) return bare;
    }
    return std::move(error).in("failed to evaluate flight");
  }

  [[nodiscard]] io::Task<Result<Stages>> parse(std::string printed) {
    Result<airways::Output> parsed = co_await session_.workers.run(
        unnamed_consumer(),
        [printed = std::move(printed)] { return airways::parse_output(printed); });
    if (!parsed) {
      co_return std::unexpected(
          std::move(parsed).error().in("failed to parse output into valid flight output"));
    }
    co_return std::move(parsed->stages);
  }

  [[nodiscard]] io::Task<Result<>> ensure_namespace() {
    const kube::ObjectKey key{.name = release_.namespace_};
    Result<json::Value> found =
        co_await session_.client.get(kube::namespace_resource(), key, session_.stop());
    if (!found && found.error().kind() == ErrorKind::NotFound) {
      found = co_await session_.client.create(
          kube::namespace_resource(),
          json::Object{{"apiVersion", "v1"},
                       {"kind", "Namespace"},
                       {"metadata", json::Object{{"name", release_.namespace_}}}},
          {.field_manager = std::string(airways::kFieldManager)}, session_.stop());
    }
    // Another client has created it in the meantime.
    if (!found && kube::reason_of(found.error()) == "AlreadyExists") co_return Result<>();
    if (!found) {
      co_return std::unexpected(std::move(found).error().in("failed to ensure namespace"));
    }
    if (const airways::Readiness ready = airways::readiness_of(*found); !ready.is_ready()) {
      co_return fail(ErrorKind::Unavailable,
                     fmt::format("failed to wait for namespace {} to be ready: {}",
                                 release_.namespace_, ready.why));
    }
    co_return Result<>();
  }

  [[nodiscard]] io::Task<Result<>> load_history() {
    memory_.history.emplace(session_.workers, session_.client, release_);
    Result<> loaded = co_await memory_.history->load(session_.stop());
    if (!loaded) {
      co_return std::unexpected(std::move(loaded).error().in(
          fmt::format("failed to get revision history for release \"{}\"", release_.name)));
    }
    co_return check_source();
  }

  // A URL or a version tag must always lead to the same module, whatever checksum is given.
  [[nodiscard]] Result<> check_source() const {
    if (!options_.flight) return {};
    const modules::Reference reference =
        HANGAR_TRY(modules::Reference::parse(options_.flight->module.reference));
    if (modules::upgrade_of(reference, "") != modules::Upgrade::Deliberate) return {};
    return airways::check_pinned(memory_.history->history(), source_);
  }

  [[nodiscard]] io::Task<Result<Finished>> show_difference(Stages& stages) {
    airways::ReleaseWork work(session_.parts(), session_.client, release_, memory_, carry_options(),
                              session_.stop());
    HANGAR_CO_TRY(co_await work.prepare(stages));
    const std::string before = release_yaml(memory_.history->active());
    const std::string after = release_yaml(stages);
    streams_.out(release_difference({.name = "current", .text = before},
                                    {.name = "next", .text = after}, options_.context_lines,
                                    options_.color));
    co_return Finished{};
  }

  [[nodiscard]] io::Task<Result<Finished>> rehearse(Stages& stages) {
    std::set<std::string> to_come;
    if (options_.create_namespace) to_come.insert(release_.namespace_);
    const airways::Rehearsed rehearsed = HANGAR_CO_TRY(
        co_await airways::rehearse(session_.parts(), session_.client, release_, stages,
                                   carry_options(), std::move(to_come), session_.stop()));
    for (const std::string& sentence : rehearsed.not_rehearsed)
      streams_.say(sentence + "\n");
    streams_.say(fmt::format("successful dry-run takeoff of {}\n", release_.name));
    co_return Finished{};
  }

  [[nodiscard]] io::Task<Result<Finished>> release_locked(Stages& stages) {
    if (!options_.lock) co_return co_await release(stages);
    const Result<> locked =
        co_await lock_release(session_, release_.history_name, release_.namespace_);
    if (!locked) co_return std::unexpected(Error(locked.error()).in("failed to lock release"));
    Result<Finished> finished = co_await release(stages);
    const Result<> unlocked =
        co_await unlock_release(session_, release_.history_name, release_.namespace_);
    if (finished && !unlocked) {
      co_return std::unexpected(Error(unlocked.error()).in("failed to unlock release"));
    }
    co_return finished;
  }

  [[nodiscard]] io::Task<Result<Finished>> release(Stages& stages) {
    airways::ReleaseHistory& history = *memory_.history;
    airways::ReleaseWork work(session_.parts(), session_.client, release_, memory_, carry_options(),
                              session_.stop());
    HANGAR_CO_TRY(co_await work.prepare(stages));
    const bool has_active = history.history().active() != nullptr;
    const bool is_same = !history.is_interrupted() && (has_active || stages.empty()) &&
                         airways::same_resources(history.newest(), stages);
    HANGAR_CO_TRY(co_await make_own_namespace(work, stages));
    HANGAR_CO_TRY(co_await apply_release(session_, work, stages, source_, options_.waiting));
    if (is_same) co_return nothing_new();
    // apply_release() records the revision before the first stage that applies something. If none
    // did, it is recorded here.
    Result<> recorded =
        co_await history.record(stages, source_, io::Loop::wall_now(), session_.stop());
    if (!recorded) {
      co_return std::unexpected(std::move(recorded).error().in("failed to create revision"));
    }
    HANGAR_CO_TRY(co_await prune(work, history.inventory(), stages));
    const bool is_newest = HANGAR_CO_TRY(co_await meet_others(work, stages));
    Result<> active =
        co_await history.activate(io::Loop::wall_now(), options_.history_max, session_.stop());
    // A takeoff of the same resources has activated its own revision, and removed this one.
    if (!active && active.error().kind() == ErrorKind::NotFound) {
      const bool is_done = HANGAR_CO_TRY(co_await is_active(stages));
      if (is_done) co_return nothing_new();
    }
    if (!active) {
      co_return std::unexpected(std::move(active).error().in("failed to create revision"));
    }
    if (!is_newest) co_return nothing_new();
    streams_.say(fmt::format("successful takeoff of {}\n", release_.name));
    co_return Finished{};
  }

  [[nodiscard]] static Finished nothing_new() {
    return {.warning =
                "resources are the same as previous revision: skipping creation of new revision"};
  }

  // Whether the active revision, as the cluster has it now, has these resources.
  [[nodiscard]] io::Task<Result<bool>> is_active(const Stages& stages) {
    airways::ReleaseHistory& history = *memory_.history;
    HANGAR_CO_TRY(co_await history.reload(session_.stop()));
    co_return !history.is_interrupted() && history.history().active() != nullptr &&
        airways::same_resources(history.active(), stages);
  }

  // The history is stored in the release's namespace. If the release itself creates that namespace,
  // nothing can be recorded before.
  [[nodiscard]] io::Task<Result<>> make_own_namespace(airways::ReleaseWork& work,
                                                      const Stages& stages) {
    const airways::ResourceRef own{
        .kind = {.group = {}, .kind = "Namespace"}, .namespace_ = {}, .name = release_.namespace_};
    const auto makes_it = [&own](const airways::Stage& stage) {
      return std::ranges::any_of(
          stage, [&own](const json::Value& one) { return airways::ref_of(one) == own; });
    };
    const auto found = std::ranges::find_if(stages, makes_it);
    if (found == stages.end()) co_return Result<>();
    const kube::ObjectPtr live = HANGAR_CO_TRY(
        co_await session_.view.read(kube::namespace_resource(), own.key(), session_.stop()));
    if (live) co_return Result<>();
    const Stages first(stages.begin(), std::next(found));
    co_return co_await apply_release(session_, work, first, std::nullopt, {});
  }

  [[nodiscard]] io::Task<Result<>> prune(airways::ReleaseWork& work, const Stages& previous,
                                         const Stages& wanted) {
    Result<> pruned = co_await prune_release(session_, work, previous, wanted);
    if (!pruned) {
      co_return std::unexpected(std::move(pruned).error().in("failed to prune release diff"));
    }
    co_return pruned;
  }

  // Another takeoff of this release may have started meanwhile. The later one wins: resources that
  // only the earlier one has are pruned. Returns whether the newest revision is this takeoff's; if
  // it is not, it has the same resources.
  [[nodiscard]] io::Task<Result<bool>> meet_others(airways::ReleaseWork& work,
                                                   const Stages& stages) {
    airways::ReleaseHistory& history = *memory_.history;
    const std::string own(history.recorded());
    HANGAR_CO_TRY(co_await history.reload(session_.stop()));
    const bool is_own = history.recorded() == own;
    if (is_own || airways::same_resources(history.newest(), stages)) {
      HANGAR_CO_TRY(co_await prune(work, Stages(history.inventory()), stages));
      co_return is_own;
    }
    HANGAR_CO_TRY(co_await prune(work, stages, Stages(history.inventory())));
    co_return fail(
        ErrorKind::Conflict,
        fmt::format("another takeoff of release \"{}\" started in the meantime: inspect its "
                    "result with blackbox; with -lock the later one fails before it changes "
                    "anything",
                    release_.name));
  }

  ReleaseSession& session_;
  FlightRunner& runner_;
  const TakeoffOptions& options_;
  const Streams& streams_;
  const Release release_;
  airways::Instance memory_;
  airways::Source source_;
};

}  // namespace

Result<Finished> takeoff(const host::Config& config, const TakeoffOptions& options,
                         const Streams& streams, const Log& log) {
  // Resources from stdin need no guest.
  const host::Config resolved =
      HANGAR_TRY(options.flight ? host::resolve_for_guests(config) : host::resolve(config));
  // The zygotes must not have a credential in their memory, so the login is read after they have
  // started.
  std::optional<domains::ZygoteProcess> zygote;
  if (options.flight) zygote = HANGAR_TRY(host::start_zygote(resolved));
  std::optional<LuaSession::Start> lua;
  if (options.load_custom_readiness) lua = HANGAR_TRY(LuaSession::prepare(config));
  ReleaseSession session(resolved, HANGAR_TRY(login_for(resolved, options)), log, std::move(lua));
  FlightRunner runner({.config = resolved,
                       .loop = session.loop,
                       .workers = session.workers,
                       .http = session.http,
                       .metrics = session.metrics,
                       .log = log},
                      std::move(zygote));
  Takeoff work(session, runner, options, streams);
  return session.run(work.run());
}

}  // namespace hangar::commands
