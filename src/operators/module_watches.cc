#include "operators/module_watches.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "gateway/upstream.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "reconcile/backoff.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::operators {

namespace {

// The server ends a watch after that; one that is silent for longer has lost its server.
constexpr std::chrono::seconds kLifetime{300};
constexpr std::chrono::seconds kLifetimeGrace{30};
// Between two watches: a storm of them helps nobody when the server is away or says no.
constexpr reconcile::Backoff::Options kPause{.min = std::chrono::seconds(1),
                                             .max = std::chrono::minutes(5)};

// Anything else names no ConfigMap, and might mean something in a URL.
bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
           letter == '.';
  });
}

kube::RawRequest request_for(const kube::ObjectKey& config_map) {
  return {.target = fmt::format("/api/v1/namespaces/{}/configmaps?watch=true&timeoutSeconds={}"
                                "&fieldSelector=metadata.name%3D{}",
                                config_map.namespace_, kLifetime.count(), config_map.name),
          .accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"};
}

}  // namespace

// Held by its coroutine and, as long as somebody follows the ConfigMap, by the map.
struct ModuleWatches::Watch {
  kube::ObjectKey config_map;
  std::shared_ptr<const OnChange> on_change;
  std::set<kube::ObjectKey> followers = {};
  std::stop_source stop = {};
  // uid/resourceVersion of what was last told; empty: it was gone. None before the first event.
  std::optional<std::string> seen = {};

  static io::Task<void> run(std::shared_ptr<Watch> self, kube::Client client, Log log);
  static io::Task<Result<>> watch_once(std::shared_ptr<Watch> self, kube::Client client);
  [[nodiscard]] Result<> take_line(const std::string& line);
  void tell(std::string revision);
};

io::Task<void> ModuleWatches::Watch::run(std::shared_ptr<Watch> self, kube::Client client,
                                         Log log) {
  reconcile::Backoff pause(kPause, std::random_device()());
  std::string last_error;
  while (!self->stop.stop_requested()) {
    const Instant began = io::Loop::now();
    const Result<> ended = co_await watch_once(self, client);
    if (self->stop.stop_requested()) co_return;
    const std::string error = ended ? "" : ended.error().message();
    if (!error.empty() && error != last_error) {
      log.warning("a ConfigMap with a module is not watched",
                  {{"namespace", self->config_map.namespace_},
                   {"name", self->config_map.name},
                   {"error", error}});
    }
    last_error = error;
    if (io::Loop::now() - began >= kPause.max / 2) pause.forget(self->config_map);
    (void)co_await client.loop().sleep(pause.failed(self->config_map), self->stop.get_token());
  }
}

// Until the watch ends; what exists comes first.
io::Task<Result<>> ModuleWatches::Watch::watch_once(std::shared_ptr<Watch> self,
                                                    kube::Client client) {
  std::stop_source stream;
  const std::stop_callback on_stop(self->stop.get_token(), [&stream] { stream.request_stop(); });
  const io::Loop::Timer lifetime = client.loop().after(
      kLifetime + kLifetimeGrace, [stream]() mutable { stream.request_stop(); });
  gateway::LineCutter lines(limits::kWatchLineBytesMax);
  int status = 0;
  std::string refusal;
  http::Client::StreamHandler handler{
      .on_headers = [&status](int code, const http::Headers& /*headers*/) -> Result<> {
        status = code;
        return {};
      },
      .on_bytes = [&](std::string_view bytes) -> Result<> {
        if (status != 200) {
          if (refusal.size() < limits::kServerMessageBytesMax) refusal += bytes;
          return {};
        }
        Result<> taken;
        const bool is_fine = lines.feed(bytes, [&](const std::string& line) {
          if (taken) taken = self->take_line(line);
        });
        if (!is_fine) return fail(ErrorKind::LimitExceeded, "metadata larger than any object");
        return taken;
      }};
  const Result<http::Response> ended =
      co_await client.stream(request_for(self->config_map), std::move(handler), stream.get_token());
  if (status != 200 && status != 0) {
    co_return std::unexpected(kube::error_from_status(status, refusal));
  }
  if (!ended && ended.error().kind() != ErrorKind::Cancelled) {
    co_return std::unexpected(ended.error());
  }
  co_return Result<>();
}

Result<> ModuleWatches::Watch::take_line(const std::string& line) {
  if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "nobody follows it");
  const json::Value event = HANGAR_TRY(json::parse(line));
  const std::string_view type = json::string_at(event, {"type"});
  if (type == "ERROR") return fail(ErrorKind::Unavailable, "the watch was ended by the server");
  if (type == "BOOKMARK") return {};
  if (type == "DELETED") {
    tell("");
    return {};
  }
  tell(fmt::format("{}/{}", json::string_at(event, {"object", "metadata", "uid"}),
                   json::string_at(event, {"object", "metadata", "resourceVersion"})));
  return {};
}

// Also of the first one: who began to read the ConfigMap before this watch began may have read the
// one before.
void ModuleWatches::Watch::tell(std::string revision) {
  if (seen == revision) return;
  seen = std::move(revision);
  const std::vector<kube::ObjectKey> present(followers.begin(), followers.end());
  for (const kube::ObjectKey& follower : present)
    (*on_change)(follower);
}

ModuleWatches::ModuleWatches(const kube::Client& client, Log log, OnChange on_change)
    : client_(client),
      log_(std::move(log)),
      on_change_(std::make_shared<const OnChange>(std::move(on_change))) {}

ModuleWatches::~ModuleWatches() {
  clear();
}

void ModuleWatches::follow(const kube::ObjectKey& follower, const kube::ObjectKey& config_map) {
  if (const auto known = followed_.find(follower); known != followed_.end()) {
    if (known->second == config_map) return;
    release(follower);
  }
  if (!is_name(config_map.namespace_) || !is_name(config_map.name)) return;
  followed_.emplace(follower, config_map);
  std::shared_ptr<Watch>& watch = watches_[config_map];
  if (watch != nullptr) {
    watch->followers.insert(follower);
    return;
  }
  watch = std::make_shared<Watch>(
      Watch{.config_map = config_map, .on_change = on_change_, .followers = {follower}});
  client_.loop().spawn(Watch::run(watch, client_, log_));
}

void ModuleWatches::release(const kube::ObjectKey& follower) {
  const auto known = followed_.find(follower);
  if (known == followed_.end()) return;
  const auto watch = watches_.find(known->second);
  followed_.erase(known);
  watch->second->followers.erase(follower);
  if (!watch->second->followers.empty()) return;
  const std::shared_ptr<Watch> ended = watch->second;
  watches_.erase(watch);
  ended->stop.request_stop();
}

void ModuleWatches::clear() {
  while (!followed_.empty()) {
    const kube::ObjectKey follower = followed_.begin()->first;
    release(follower);
  }
}

}  // namespace hangar::operators
