#include "commands/release_drift.h"

#include "airways/limits.h"
#include "airways/ownership.h"
#include "airways/release_catalog.h"
#include "airways/release_history.h"
#include "airways/request_view.h"
#include "airways/resource_ref.h"
#include "airways/revision.h"
#include "base/consumer.h"
#include "base/result.h"
#include "base/utf8.h"
#include "commands/drift.h"
#include "commands/limits.h"
#include "commands/release_text.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/go_text.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace {

constexpr std::size_t kContextLines = 4;  // As `hangar turbulence` by default.

std::string_view name_of(Drift drift) {
  switch (drift) {
    case Drift::None:
      return "none";
    case Drift::Differs:
      return "differs";
    case Drift::Missing:
      return "missing";
    case Drift::Unknown:
      break;
  }
  return "unknown";
}

// Whole lines if there are any: half a line would look like a change.
std::string beginning_of(std::string text, std::size_t bytes_max) {
  text = utf8_beginning(text, bytes_max);
  if (const std::size_t end = text.rfind('\n'); end != std::string::npos) text.resize(end + 1);
  return text;
}

// The release of an instance of which only the name is known.
airways::Release release_named(const airways::ResourceRef& instance) {
  const kube::GroupKind& kind = instance.kind;
  // Any version: names of releases have none.
  return airways::release_of(json::Object{
      {"apiVersion", kind.group.empty() ? "v1" : kind.group + "/v1"},
      {"kind", kind.kind},
      {"metadata", json::Object{{"namespace", instance.namespace_}, {"name", instance.name}}}});
}

class DriftWork {
 public:
  DriftWork(const kube::Client& client, io::Workers& workers, std::stop_token stop)
      : client_(client),
        view_(client_),
        workers_(workers),
        stop_(std::move(stop)),
        passed_on_(stop_, [this] { ended_.request_stop(); }),
        timer_(client_.loop().after(limits::kConsoleDriftMax, [this] {
          is_late_ = true;
          ended_.request_stop();
        })) {}

  io::Task<Result<ReleaseDrift>> run(airways::ResourceRef instance) {
    const airways::Release release = release_named(instance);
    ReleaseDrift found{.release = release.history_name, .namespace_ = release.namespace_};
    // Not by ReleaseHistory, which writes to the Secrets of older versions of yoke.
    Result<airways::Catalog> catalog = co_await airways::read_catalog(
        client_, {.namespace_ = found.namespace_, .release = found.release}, ended_.get_token());
    if (!catalog) co_return std::unexpected(in_words(catalog.error(), found.namespace_));
    const auto entry =
        std::ranges::find(catalog->entries, found.release, &airways::CatalogEntry::name);
    if (entry == catalog->entries.end()) {
      co_return fail(ErrorKind::NotFound,
                     fmt::format("namespace {} has no history of the release {}: its flight has "
                                 "printed nothing yet",
                                 found.namespace_, found.release));
    }
    found.interrupted = entry->history.interrupted().size();
    const airways::Revision* const active = entry->history.active();
    if (active == nullptr) co_return found;
    found.revision = entry->history.active_number();
    Result<airways::UnpackedRevision> unpacked =
        co_await airways::read_revision(workers_, unnamed_consumer(), client_,
                                        {.namespace_ = found.namespace_, .name = active->secret},
                                        limits::kRevisionBytesMax, ended_.get_token());
    if (!unpacked) co_return std::unexpected(in_words(unpacked.error(), found.namespace_));
    co_await compare(std::move(unpacked->stages), found);
    if (stop_.stop_requested()) co_return fail(ErrorKind::Cancelled, "the console ends");
    co_return found;
  }

 private:
  [[nodiscard]] Error in_words(const Error& error, std::string_view namespace_) const {
    if (is_late_) {
      return {ErrorKind::Unavailable, fmt::format("the cluster did not answer within {} s",
                                                  limits::kConsoleDriftMax.count())};
    }
    if (error.kind() == ErrorKind::Denied) {
      return Error(error).in(fmt::format(
          "the flight's output is in Secrets of the namespace {}, which you may not list",
          namespace_));
    }
    return Error(error).in("read the flight's output");
  }

  io::Task<> compare(airways::Stages stages, ReleaseDrift& found) {
    std::size_t bytes_left = limits::kConsoleDriftBytesMax;
    for (airways::Stage& stage : stages) {
      for (json::Value& resource : stage) {
        if (ended_.stop_requested() ||
            found.resources.size() == limits::kConsoleDriftResourcesMax) {
          ++found.left_out;
          continue;
        }
        ResourceDrift one = co_await compare_one(std::move(resource), bytes_left);
        if (ended_.stop_requested() && one.drift == Drift::Unknown) {
          ++found.left_out;
          continue;
        }
        bytes_left -= std::min(bytes_left, one.difference.size());
        found.resources.push_back(std::move(one));
      }
    }
  }

  io::Task<ResourceDrift> compare_one(json::Value resource, std::size_t bytes_max) {
    const airways::ResourceRef ref = airways::ref_of(resource);
    const Result<kube::GroupVersionKind> gvk = kube::gvk_of(resource);
    if (!gvk) co_return ResourceDrift{.ref = ref, .error = gvk.error().message()};
    const Result<kube::ObjectPtr> live =
        co_await view_.look_at_child(*gvk, ref, ended_.get_token());
    if (!live) co_return ResourceDrift{.ref = ref, .error = live.error().message()};
    co_return co_await workers_.run(
        unnamed_consumer(), [resource = std::move(resource), object = *live, bytes_max] {
          return drift_of(resource, object ? std::optional(object->to_value()) : std::nullopt,
                          bytes_max);
        });
  }

  const kube::Client client_;
  airways::RequestView view_;
  io::Workers& workers_;
  const std::stop_token stop_;
  bool is_late_ = false;
  std::stop_source ended_;  // Also when it takes too long.
  const std::stop_callback<std::function<void()>> passed_on_;
  const io::Loop::Timer timer_;
};

}  // namespace

ResourceDrift drift_of(const json::Value& resource, std::optional<json::Value> live,
                       std::size_t bytes_max) {
  ResourceDrift one{.ref = airways::ref_of(resource), .drift = Drift::Missing};
  if (!live) return one;
  ComparedResource compared = compare_resource(resource, std::move(live), ComparedFields::Set);
  one.drift = compared.differs() ? Drift::Differs : Drift::None;
  if (one.drift == Drift::None) return one;
  withhold_secret_values(compared);
  const std::string expected = json::to_yaml_as_go(compared.expected);
  const std::string actual = json::to_yaml_as_go(*compared.actual);
  one.difference =
      release_difference({.name = "the flight's output", .text = expected},
                         {.name = "the cluster", .text = actual}, kContextLines, Color::None);
  one.is_cut = one.difference.size() > bytes_max;
  if (one.is_cut) one.difference = beginning_of(std::move(one.difference), bytes_max);
  return one;
}

io::Task<Result<ReleaseDrift>> release_drift(kube::Client client, io::Workers& workers,
                                             airways::ResourceRef instance, std::stop_token stop) {
  DriftWork work(client, workers, std::move(stop));
  co_return co_await work.run(std::move(instance));
}

json::Value json_of(const ReleaseDrift& drift) {
  json::Array resources;
  for (const ResourceDrift& one : drift.resources) {
    json::Object out{{"resource", one.ref.to_string()}, {"drift", name_of(one.drift)}};
    if (one.drift == Drift::Differs) {
      out["difference"] = one.difference;
      out["isCut"] = one.is_cut;
    }
    if (one.drift == Drift::Unknown) out["error"] = one.error;
    resources.push_back(std::move(out));
  }
  return json::Object{{"release", drift.release},          {"namespace", drift.namespace_},
                      {"revision", drift.revision},        {"interrupted", drift.interrupted},
                      {"resources", std::move(resources)}, {"leftOut", drift.left_out}};
}

}  // namespace hangar::commands
