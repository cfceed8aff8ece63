#include "commands/releases.h"

#include "airways/instance.h"
#include "airways/limits.h"
#include "airways/ownership.h"
#include "airways/plan.h"
#include "airways/release_history.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "base/consumer.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/lua_session.h"
#include "commands/opened_release.h"
#include "commands/release_session.h"
#include "commands/release_steps.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

using airways::History;
using airways::Revision;
using airways::Stages;

class Descent {
 public:
  Descent(ReleaseSession& session, const DescentOptions& options, const Say& say)
      : session_(session), options_(options), say_(say) {}

  [[nodiscard]] io::Task<Result<Finished>> run() {
    if (options_.load_custom_readiness) HANGAR_CO_TRY(co_await session_.load_custom_readiness());
    Result<OpenedRelease> opened = co_await open_release(session_, options_.release);
    if (!opened) {
      co_return std::unexpected(Error(opened.error())
                                    .in(fmt::format("failed to get revisions for release \"{}\"",
                                                    options_.release.name)));
    }
    if (!options_.lock) co_return co_await go_back(*opened);
    const Result<> locked =
        co_await lock_release(session_, opened->name.name, opened->name.namespace_);
    if (!locked) {
      co_return std::unexpected(Error(locked.error()).in("failed to aquire release lock"));
    }
    Result<Finished> finished = co_await go_back(*opened);
    const Result<> unlocked =
        co_await unlock_release(session_, opened->name.name, opened->name.namespace_);
    if (finished && !unlocked) {
      co_return std::unexpected(Error(unlocked.error()).in("failed to unlock release"));
    }
    co_return finished;
  }

 private:
  [[nodiscard]] io::Task<Result<Finished>> go_back(OpenedRelease& opened) {
    const History& history = opened.history().history();
    const std::size_t count = history.revisions.size();
    if (count == 0) {
      co_return fail(ErrorKind::NotFound, fmt::format("no release found \"{}\" in namespace \"{}\"",
                                                      opened.name.name, opened.name.namespace_));
    }
    if (options_.revision < 1 || options_.revision > count) {
      co_return fail(ErrorKind::InvalidInput,
                     fmt::format("requested revision id {} is not within valid range 1 to {}",
                                 options_.revision, count));
    }
    const std::size_t before = history.active_number();
    // After an interrupted takeoff, a descent to the active revision makes sense: it removes
    // leftovers.
    if (options_.revision == before && history.interrupted().empty()) {
      co_return fail(ErrorKind::InvalidInput,
                     fmt::format("can't descend from {} to {}", before, options_.revision));
    }
    const Revision target = history.revisions[options_.revision - 1];
    Result<airways::UnpackedRevision> unpacked = co_await airways::read_revision(
        session_.workers, unnamed_consumer(), session_.client,
        {.namespace_ = opened.name.namespace_, .name = target.secret}, limits::kRevisionBytesMax,
        session_.stop());
    if (!unpacked) {
      co_return std::unexpected(
          Error(unpacked.error()).in("failed to lookup target revision resources"));
    }
    HANGAR_CO_TRY(co_await carry_out(opened, target, std::move(unpacked->stages)));
    say_(fmt::format("successful descent of {} from revision {} to {}\n", opened.name.name, before,
                     options_.revision));
    co_return Finished{};
  }

  [[nodiscard]] io::Task<Result<>> carry_out(OpenedRelease& opened, Revision target,
                                             Stages stages) {
    airways::ReleaseWork work(session_.parts(), session_.client, opened.release, opened.memory,
                              {.prune = options_.prune,
                               .adoption = airways::Adoption::Refuse,
                               .force_conflicts = false,
                               .rehearse = airways::Rehearse::Nothing},
                              session_.stop());
    HANGAR_CO_TRY(co_await apply_release(session_, work, stages, std::nullopt, options_.waiting));
    Result<> pruned = co_await prune_release(session_, work, opened.history().inventory(), stages);
    if (!pruned) {
      co_return std::unexpected(std::move(pruned).error().in("failed to prune release diff"));
    }
    Result<> active = co_await opened.history().activate_again(
        std::move(target), std::move(stages), io::Loop::wall_now(), session_.stop());
    if (!active) {
      co_return std::unexpected(std::move(active).error().in("failed to update revision history"));
    }
    co_return active;
  }

  ReleaseSession& session_;
  const DescentOptions& options_;
  const Say& say_;
};

std::size_t resources_in(const Stages& inventory) {
  std::size_t count = 0;
  for (const auto& group : airways::plan_prune(inventory, {}, {}))
    count += group.size();
  return count;
}

io::Task<Result<Finished>> run_mayday(ReleaseSession& session, const MaydayOptions& options,
                                      const Say& say) {
  Result<OpenedRelease> opened = co_await open_release(session, options.release);
  if (!opened) {
    co_return std::unexpected(
        Error(opened.error()).in("failed to get revision history for release"));
  }
  if (opened->history().history().revisions.empty()) {
    co_return Finished{
        .warning = fmt::format("mayday noop: no history found for release \"{}\" in namespace "
                               "\"{}\"",
                               opened->name.name, opened->name.namespace_)};
  }
  const std::size_t count = resources_in(opened->history().inventory());
  airways::ReleaseWork work(session.parts(), session.client, opened->release, opened->memory,
                            {.prune = options.prune}, session.stop());
  Result<> pruned = co_await prune_release(session, work, opened->history().inventory(), {});
  if (!pruned) {
    co_return std::unexpected(std::move(pruned).error().in("failed to delete resources"));
  }
  say(fmt::format("Removed {} resource(s)...\n\n", count));
  Result<> erased = co_await opened->history().erase(session.stop());
  if (!erased) {
    co_return std::unexpected(std::move(erased).error().in("failed to delete revision history"));
  }
  say(fmt::format("Successfully deleted release {}\n", opened->name.name));
  co_return Finished{};
}

io::Task<Result<Finished>> run_unlatch(ReleaseSession& session, ReleaseName release) {
  HANGAR_CO_TRY(co_await unlock_release(session, release.name,
                                        session.namespace_or_default(release.namespace_)));
  co_return Finished{};
}

}  // namespace

Result<Finished> descent(const host::Config& config, const DescentOptions& options, const Say& say,
                         const Log& log) {
  // Before the login: no guest process may start with a credential in its memory.
  std::optional<LuaSession::Start> lua;
  if (options.load_custom_readiness) lua = HANGAR_TRY(LuaSession::prepare(config));
  ReleaseSession session(config, HANGAR_TRY(host::find_login(config)), log, std::move(lua));
  Descent work(session, options, say);
  return session.run(work.run());
}

Result<Finished> mayday(const host::Config& config, const MaydayOptions& options, const Say& say,
                        const Log& log) {
  ReleaseSession session(config, HANGAR_TRY(host::find_login(config)), log);
  return session.run(run_mayday(session, options, say));
}

Result<Finished> unlatch(const host::Config& config, const ReleaseName& release, const Log& log) {
  ReleaseSession session(config, HANGAR_TRY(host::find_login(config)), log);
  return session.run(run_unlatch(session, release));
}

}  // namespace hangar::commands
