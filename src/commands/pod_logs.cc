#include "commands/pod_logs.h"

#include "airways/airway.h"
#include "airways/flight.h"
#include "base/time.h"
#include "commands/limits.h"
#include "commands/output_logs.h"
#include "host/cluster_session.h"
#include "host/operator_parts.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/limits.h"
#include "kube/line_splitter.h"
#include "kube/object.h"
#include "kube/urls.h"
#include "operators/operator.h"
#include "output/log_files.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::commands {

namespace {

// The name in the chart.
constexpr std::string_view kContainer = "hangar";
// Pause after the end of a log, which ends with its container or pod.
constexpr std::chrono::seconds kFollowPause{1};

// One line of the host's log.
struct HostLine {
  std::string text;
  WallTime time;
  std::optional<std::string> output;  // The text to print; nothing for other lines.
};

// The guest whose lines to print.
struct Wanted {
  std::string resource;  // Empty: an Operator.
  kube::ObjectKey key;   // No name: all instances of the resource.

  [[nodiscard]] std::string to_string() const {
    if (resource.empty()) return key.to_string();
    return key.name.empty() ? resource : fmt::format("{} {}", resource, key.to_string());
  }
  [[nodiscard]] bool is_meant(const json::Value& line) const {
    const auto is = [&line](std::string_view field, std::string_view text) {
      return json::string_at(line, {field}) == text;
    };
    if (!is("msg", "output") || !is("resource", resource)) return false;
    if (key.name.empty()) return true;
    // An instance may be cluster-scoped, whatever namespace the kubeconfig has.
    return is("name", key.name) &&
           (is("namespace", key.namespace_) || (!resource.empty() && is("namespace", "")));
  }
};

std::optional<HostLine> read_line(std::string line, const Wanted& wanted) {
  const Result<json::Value> read = json::parse(line);
  const Result<WallTime> time =
      read ? parse_rfc3339(json::string_at(*read, {"ts"})) : Result<WallTime>(WallTime());
  if (!read || !time)
    return std::nullopt;  // Not a line of the host: the runtime's, or a part of a split line.
  HostLine host_line{.text = std::move(line), .time = *time};
  if (wanted.is_meant(*read)) {
    host_line.output = output::LogFiles::format({.time = *time,
                                                 .stream = json::string_at(*read, {"stream"}),
                                                 .text = json::string_at(*read, {"text"})});
    if (wanted.key.name.empty()) {
      host_line.output = output::LogFiles::named(
          *host_line.output, {.namespace_ = std::string(json::string_at(*read, {"namespace"})),
                              .name = std::string(json::string_at(*read, {"name"}))});
    }
  }
  return host_line;
}

class PodLogs {
 public:
  PodLogs(const kube::Client& client, LogsOptions options,
          const std::function<bool(std::string_view)>& print)
      : client_(client),
        wanted_{
            .resource = std::move(options.resource),
            .key = {.namespace_ = std::move(options.namespace_), .name = std::move(options.name)}},
        tail_lines_(options.tail_lines),
        follow_(options.follow),
        print_(print) {}

  // "namespace/name", or empty if the status has no pod. All tasks refer to this object.
  [[nodiscard]] io::Task<Result<std::string>> pod_of_host() {
    const std::string& resource = wanted_.resource;
    kube::Resource kind = airways::airway_resource();
    kube::ObjectKey key{.namespace_ = {}, .name = resource};
    if (resource.empty()) {
      kind = operators::operator_resource();
      key = wanted_.key;
    } else if (resource == airways::flight_resource().qualified_plural()) {
      kind = airways::flight_resource();
      key = wanted_.key;
    } else if (resource == airways::cluster_flight_resource().qualified_plural()) {
      kind = airways::cluster_flight_resource();
      key = {.namespace_ = {}, .name = wanted_.key.name};
    }
    const json::Value found =
        HANGAR_CO_TRY(co_await client_.get(std::move(kind), std::move(key), stop_.get_token()));
    co_return std::string(json::string_at(found, {"status", "pod"}));
  }

  [[nodiscard]] io::Task<Result<>> run() {
    const kube::ObjectKey pod = HANGAR_CO_TRY(co_await find_pod());
    HANGAR_CO_TRY(co_await read(pod, /*follow=*/false));
    for (const std::string& line : tail_)
      give(line);
    if (!last_ && !follow_) {
      co_return fail(ErrorKind::NotFound,
                     fmt::format("the log of pod {} has nothing of a host; output of {} is there "
                                 "when the host logs JSON at level info",
                                 pod.to_string(), wanted_.to_string()));
    }
    tail_.clear();
    is_telling_ = true;
    while (follow_ && !stop_.stop_requested()) {
      const Result<kube::ObjectKey> now = co_await find_pod();
      // A host that exits takes its pod with it; the next host writes its own pod into the status.
      if (now) {
        const Result<> ended = co_await read(*now, /*follow=*/true);
        if (!ended && ended.error().kind() == ErrorKind::Denied) co_return ended;
      }
      (void)co_await client_.loop().sleep(kFollowPause, stop_.get_token());
    }
    co_return Result<>();
  }

 private:
  io::Task<Result<kube::ObjectKey>> find_pod() {
    const std::string pod = HANGAR_CO_TRY(co_await pod_of_host());
    const std::size_t slash = pod.find('/');
    if (slash == std::string_view::npos) {
      co_return fail(ErrorKind::NotFound,
                     fmt::format("cannot find the pod that runs {}: start the host with "
                                 "--pod=NAMESPACE/NAME, or run hangar logs on the host's machine",
                                 wanted_.to_string()));
    }
    co_return kube::ObjectKey{.namespace_ = pod.substr(0, slash), .name = pod.substr(slash + 1)};
  }

  // Reads the whole log, or only the part after the last line that was read.
  io::Task<Result<>> read(kube::ObjectKey pod, bool follow) {
    kube::Query query;
    query.add("container", kContainer);
    if (follow) query.add("follow", "true");
    // The API has a resolution of one second: take() skips the lines that are repeated.
    if (last_) query.add("sinceTime", to_rfc3339(last_->time));
    std::string target = HANGAR_CO_TRY(kube::object_path(kube::pod_resource(), pod, "log"));
    target += query.text();
    is_skipping_ = last_.has_value();

    kube::LineSplitter lines(limits::kPodLogLineBytesMax);
    int status = 0;
    std::string refusal;
    http::Client::StreamHandler handler{
        .on_headers = [&](int code, const http::Headers& /*headers*/) -> Result<> {
          status = code;
          return {};
        },
        .on_bytes = [&](std::string_view bytes) -> Result<> {
          if (status != 200) {
            if (refusal.size() < limits::kServerMessageBytesMax) refusal += bytes;
            return {};
          }
          HANGAR_TRY(lines.feed(bytes, [this](std::string_view line) -> Result<> {
            take(std::string(line));
            return {};
          }));
          return stop_.stop_requested() ? enough() : Result<>();
        }};
    const Result<http::Response> ended = co_await client_.stream(
        {.target = std::move(target), .accept = "*/*"}, std::move(handler), stop_.get_token());
    if (status != 0 && status != 200) {
      co_return std::unexpected(
          kube::error_from_status(status, refusal).in("log of pod " + pod.to_string()));
    }
    if (!ended && !stop_.stop_requested()) co_return std::unexpected(ended.error());
    co_return Result<>();
  }

  static std::unexpected<Error> enough() {
    return fail(ErrorKind::Cancelled, "the output was closed");
  }

  void take(std::string line) {
    std::optional<HostLine> read = read_line(std::move(line), wanted_);
    if (!read) return;
    if (is_skipping_) {
      const bool is_last = read->text == last_->text;
      if (is_last || read->time > last_->time) is_skipping_ = false;
      if (is_last || is_skipping_) return;
    }
    last_ = std::move(read);
    if (!last_->output) return;
    if (is_telling_ || !tail_lines_) return give(*last_->output);
    tail_.push_back(*last_->output);
    if (tail_.size() > *tail_lines_) tail_.pop_front();
  }

  void give(std::string_view line) {
    if (!stop_.stop_requested() && !print_(line)) stop_.request_stop();
  }

  const kube::Client& client_;
  const Wanted wanted_;
  const std::optional<std::size_t> tail_lines_;
  const bool follow_;
  const std::function<bool(std::string_view)>& print_;

  std::deque<std::string> tail_;  // The last lines, until the whole log has been read.
  bool is_telling_ = false;
  bool is_skipping_ = false;
  std::optional<HostLine> last_;  // The last line that was read, with or without output.
  std::stop_source stop_;         // Requested when nobody reads the output any more.
};

}  // namespace

Result<std::string> kubeconfig_namespace(const host::Config& config) {
  kube::Login login = HANGAR_TRY(host::find_login(config));
  return login.namespace_.empty() ? "default" : std::move(login.namespace_);
}

Result<> print_pod_logs(const host::Config& config, LogsOptions options,
                        const std::function<bool(std::string_view)>& print, const Log& log) {
  const host::Config resolved = HANGAR_TRY(host::resolve(config));
  kube::Login login = HANGAR_TRY(host::find_login(config));
  host::ClusterSession session(std::move(login), log);
  PodLogs logs(session.client, options, print);
  const std::string pod = HANGAR_TRY(session.run(logs.pod_of_host()));
  // On a machine that has the host's files, and in the host's own pod, the stored output is here.
  if (pod == resolved.pod && std::filesystem::exists(host::log_directory(resolved))) {
    options.is_known = true;
    return print_output_logs(config, std::move(options), print);
  }
  return session.run(logs.run());
}

}  // namespace hangar::commands
