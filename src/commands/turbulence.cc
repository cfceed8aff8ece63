#include "commands/turbulence.h"

#include "airways/ownership.h"
#include "airways/release_work.h"
#include "airways/resource_ref.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/drift.h"
#include "commands/opened_release.h"
#include "commands/release_session.h"
#include "commands/release_steps.h"
#include "commands/release_text.h"
#include "commands/streams.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "io/task.h"
#include "json/go_text.h"
#include "json/value.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace hangar::commands {

namespace {

using airways::Stage;
using airways::Stages;

class Turbulence {
 public:
  Turbulence(ReleaseSession& session, const TurbulenceOptions& options, const Streams& streams)
      : session_(session), options_(options), streams_(streams) {}

  [[nodiscard]] io::Task<Result<Finished>> run() {
    const std::string& name = options_.release.name;
    Result<OpenedRelease> opened = co_await open_release(session_, options_.release);
    if (!opened) {
      co_return std::unexpected(
          Error(opened.error()).in("failed to get revisions for release " + name));
    }
    if (opened->history().history().revisions.empty()) {
      co_return fail(ErrorKind::NotFound,
                     fmt::format("release not found for \"{}\" in namespace \"{}\"", name,
                                 opened->name.namespace_));
    }
    HANGAR_CO_TRY(co_await compare(opened->history().active()));
    if (options_.fix) co_return co_await fix(*opened);
    const std::string expected = json::to_yaml_as_go(expected_);
    const std::string actual = json::to_yaml_as_go(actual_);
    const std::string difference = release_difference({.name = "expected", .text = expected},
                                                      {.name = "actual", .text = actual},
                                                      options_.context_lines, options_.color);
    if (difference.empty()) co_return Finished{.warning = "no turbulence detected"};
    streams_.out(difference);
    co_return Finished{};
  }

 private:
  // Sequentially, since people rarely run this command.
  [[nodiscard]] io::Task<Result<>> compare(const Stages& wanted) {
    for (const Stage& stage : wanted) {
      Stage drifted;
      for (const json::Value& resource : stage) {
        Result<kube::ObjectPtr> live = co_await session_.view.look_at_child(
            HANGAR_CO_TRY(kube::gvk_of(resource)), airways::ref_of(resource), session_.stop());
        if (!live) {
          co_return std::unexpected(std::move(live).error().in(
              "failed to get in cluster state for resource " + airways::canonical_name(resource)));
        }
        ComparedResource compared = compare_resource(
            resource, *live ? std::optional((*live)->to_value()) : std::nullopt,
            options_.conflicts_only || options_.fix ? ComparedFields::Set : ComparedFields::All);
        if (compared.differs()) drifted.push_back(resource);
        // The form of yoke's output, whose objects have one member.
        const std::string name = airways::canonical_name(resource);
        json::set_at(expected_, {name, "object"}, std::move(compared.expected));
        if (compared.actual) {
          json::set_at(actual_, {name, "object"}, *std::move(compared.actual));
        } else {
          json::set_at(actual_, {name}, nullptr);
        }
      }
      if (!drifted.empty()) drifted_.push_back(std::move(drifted));
    }
    co_return Result<>();
  }

  [[nodiscard]] io::Task<Result<Finished>> fix(OpenedRelease& opened) {
    airways::ReleaseWork work(session_.parts(), session_.client, opened.release, opened.memory,
                              {.adoption = airways::Adoption::Refuse}, session_.stop());
    Result<> applied = co_await apply_release(session_, work, drifted_, std::nullopt, {});
    if (!applied) {
      co_return std::unexpected(
          std::move(applied).error().in("failed to apply desired state to drift"));
    }
    for (const Stage& stage : drifted_) {
      for (const json::Value& resource : stage) {
        streams_.say(fmt::format("fixed drift for: {}\n", airways::canonical_name(resource)));
      }
    }
    co_return Finished{};
  }

  ReleaseSession& session_;
  const TurbulenceOptions& options_;
  const Streams& streams_;
  json::Value expected_ = json::Object();  // By canonical name.
  json::Value actual_ = json::Object();    // Null: the object does not exist.
  Stages drifted_;
};

}  // namespace

Result<Finished> turbulence(const host::Config& config, const TurbulenceOptions& options,
                            const Streams& streams, const Log& log) {
  ReleaseSession session(config, HANGAR_TRY(host::find_login(config)), log);
  Turbulence work(session, options, streams);
  return session.run(work.run());
}

}  // namespace hangar::commands
