#include "commands/release_steps.h"

#include "airways/limits.h"
#include "airways/ownership.h"
#include "airways/readiness.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/release_session.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::commands {

namespace {

using airways::Progress;

constexpr std::chrono::seconds kPrunePoll{2};

// A time limit for each step: it starts again when the next step is waited for.
class Patience {
 public:
  using Show = std::function<void(std::string_view what)>;
  Patience(ReleaseSession& session, Duration time_max, Duration poll, Show show)
      : session_(session), time_max_(time_max), poll_(poll), show_(std::move(show)) {}
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  ~Patience() {
    if (began_) show_({});
  }

  // Sleeps until the next check. `failure`: the beginning of the error, if not with `waiting_for`.
  // Unavailable after the time limit, Cancelled.
  [[nodiscard]] io::Task<Result<>> sleep(std::string_view waiting_for, std::string_view failure,
                                         std::size_t step) {
    const Instant now = io::Loop::now();
    if (!began_ || std::exchange(step_, step) != step) began_ = now;
    const Duration left = *began_ + time_max_ - now;
    if (left <= Duration::zero()) {
      co_return fail(ErrorKind::Unavailable,
                     fmt::format("{}: {} timeout reached", failure.empty() ? waiting_for : failure,
                                 to_go_duration(time_max_)));
    }
    show_(waiting_for);
    co_return co_await session_.loop.sleep(std::min(poll_, left), session_.stop());
  }

 private:
  ReleaseSession& session_;
  const Duration time_max_;
  const Duration poll_;
  const Show show_;
  std::optional<Instant> began_;
  std::size_t step_ = 0;
};

Error not_ready(Error error) {
  if (error.kind() == ErrorKind::Cancelled) return error;
  return std::move(error).in(
      "release did not become ready within wait period: to rollback use `yoke descent`");
}

// With yoke's prefix, unless the error already has it.
Error in_apply(Error error) {
  constexpr std::string_view kDoing = "failed to apply resources";
  if (error.message().starts_with(kDoing)) return error;
  return std::move(error).in(kDoing);
}

std::string lock_name(std::string_view release) {
  return "yoke." + sha1_hex(release);
}

}  // namespace

io::Task<Result<>> apply_release(ReleaseSession& session, airways::ReleaseWork& work,
                                 const airways::Stages& stages,
                                 std::optional<airways::Source> source, Waiting waiting) {
  const Duration stage_max =
      waiting.time_max > Duration::zero() ? waiting.time_max : Duration(limits::kStageReadyMax);
  // The API server serves a kind only some time after its CRD is established.
  const bool makes_kinds = !airways::scopes_defined_in(stages).empty();
  Patience stage_patience(session, stage_max, waiting.poll, waiting.show);
  while (true) {
    Result<Progress> progress = co_await work.apply(stages, source);
    if (!progress && progress.error().reason() == airways::kKindNotServed && makes_kinds) {
      progress = Progress{.done = false, .waiting_for = progress.error().message()};
    }
    if (!progress) co_return std::unexpected(in_apply(progress.error()));
    if (progress->done) break;
    const Result<> slept = co_await stage_patience.sleep(progress->waiting_for, progress->failure,
                                                         work.released_count());
    if (!slept) co_return std::unexpected(not_ready(slept.error()));
  }
  if (waiting.time_max <= Duration::zero()) co_return Result<>();

  Patience patience(session, waiting.time_max, waiting.poll, waiting.show);
  while (true) {
    const airways::ReleaseReadiness readiness = HANGAR_CO_TRY(co_await work.readiness());
    if (readiness.is_ready()) co_return Result<>();
    if (readiness.state == airways::Readiness::State::Failed) {
      co_return std::unexpected(not_ready(Error(ErrorKind::GuestFault, readiness.failure)));
    }
    const Result<> slept = co_await patience.sleep(readiness.why, readiness.failure, 0);
    if (!slept) co_return std::unexpected(not_ready(slept.error()));
  }
}

io::Task<Result<>> prune_release(ReleaseSession& session, airways::ReleaseWork& work,
                                 const airways::Stages& previous, const airways::Stages& wanted) {
  Patience patience(session, limits::kPruneMax, kPrunePoll, [](std::string_view) {});
  while (true) {
    const Progress progress = HANGAR_CO_TRY(co_await work.prune(previous, wanted));
    if (progress.done) co_return Result<>();
    HANGAR_CO_TRY(co_await patience.sleep(progress.waiting_for, {}, 0));
  }
}

// Only the name of the Secret matters to yoke. The Secret must not have yoke's label with the
// release's name: yoke would take it for a revision, and fail.
io::Task<Result<>> lock_release(ReleaseSession& session, std::string release,
                                std::string namespace_) {
  const json::Value secret = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata",
       json::Object{{"name", lock_name(release)},
                    {"namespace", namespace_},
                    {"labels", json::Object{{airways::kRevisionKindLabel, "lock"}}},
                    {"annotations", json::Object{{airways::kReleaseNameAnnotation, release}}}}}};
  const Result<json::Value> created = co_await session.client.create(
      kube::secret_resource(), secret, {.field_manager = std::string(airways::kFieldManager)},
      session.stop());
  if (created) co_return Result<>();
  if (kube::reason_of(created.error()) == "AlreadyExists") {
    co_return fail(ErrorKind::Conflict, "lock is already taken");
  }
  co_return std::unexpected(Error(created.error()).in("failed to create secret"));
}

io::Task<Result<>> unlock_release(ReleaseSession& session, std::string release,
                                  std::string namespace_) {
  // A signal does not cancel this: a command must unlock before it exits.
  const Result<json::Value> removed = co_await session.client.remove(
      kube::secret_resource(), {.namespace_ = std::move(namespace_), .name = lock_name(release)},
      {}, std::stop_token());
  if (!removed && removed.error().kind() != ErrorKind::NotFound) {
    co_return std::unexpected(removed.error());
  }
  co_return Result<>();
}

}  // namespace hangar::commands
