// An operator: every ConfigMap of a namespace that has the label mirror-to=<name> has a copy with
// that name, and the copy has the same data. A copy that is no longer requested stays. A request
// that the server refuses is retried: the right may be granted later, and a server comes back.
//
//   NAMESPACE   where to look; "default" if not set

#include "hangar/operator.hpp"
#include "hangar/watcher.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

namespace {

using hangar::op::Json;
using hangar::op::Response;
using hangar::op::Task;
using hangar::op::Watcher;

constexpr const char* kLabel = "mirror-to";
constexpr std::chrono::milliseconds kPauseMin{1000}, kPauseMax{30000};

std::string collection() {
  const char* name = std::getenv("NAMESPACE");
  return std::string("/api/v1/namespaces/") + (name == nullptr ? "default" : name) + "/configmaps";
}

// The document under a key, or an empty object.
Json at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

// Applies the copy: the server compares, and a copy that is up to date stays untouched. Returns
// whether nothing is left to do.
Task<bool> mirror(const Json& source) {
  const Json metadata = at(source, "metadata");
  const std::string copy = hangar::op::text_of(at(metadata, "labels"), kLabel);
  const std::string name = hangar::op::text_of(metadata, "name");
  if (copy.empty() || copy == name) co_return true;

  const Json wanted = {{"apiVersion", "v1"},
                       {"kind", "ConfigMap"},
                       {"metadata", {{"name", copy}, {"annotations", {{"mirror-of", name}}}}},
                       {"data", at(source, "data")}};
  const Response answer = co_await hangar::op::send(hangar::op::with_body(
      "PATCH", collection() + "/" + copy + "?fieldManager=label-mirror&force=true", wanted.dump(),
      "application/apply-patch+yaml"));
  std::printf("%s to %s: %d\n", name.c_str(), copy.c_str(), answer.status);
  std::fflush(stdout);
  co_return answer.status / 100 == 2;
}

// Sources by name, each in its newest state, until their copies are made: one after the other, so
// that an object's last state is the one that stays.
class Queue {
 public:
  void add(Json source) {
    std::string name = hangar::op::text_of(at(source, "metadata"), "name");
    waiting_.insert_or_assign(std::move(name), std::move(source));
    if (!std::exchange(is_working_, true)) hangar::op::spawn(work());
  }

  // A deleted source needs no copy, whatever was waiting for a retry.
  void remove(const Json& source) {
    if (is_working_) waiting_[hangar::op::text_of(at(source, "metadata"), "name")] = Json();
  }

 private:
  Task<> work() {
    std::chrono::milliseconds pause = kPauseMin;
    while (!waiting_.empty()) {
      bool has_failed = false;
      auto round = std::exchange(waiting_, {});
      for (auto& [name, source] : round) {
        if (waiting_.contains(name)) continue;  // There is a newer state by now.
        if (co_await mirror(source)) continue;
        waiting_.try_emplace(name, std::move(source));
        has_failed = true;
      }
      if (has_failed) co_await hangar::op::sleep(pause);
      pause = has_failed ? std::min(2 * pause, kPauseMax) : kPauseMin;
    }
    is_working_ = false;
  }

  std::map<std::string, Json> waiting_;
  bool is_working_ = false;
};

Task<> run() {
  Watcher watcher(collection());
  Queue queue;
  for (;;) {
    Watcher::Event event = co_await watcher.next();
    switch (event.type) {
      case Watcher::Event::Type::Listed:
      case Watcher::Event::Type::Changed:
        queue.add(std::move(event.object));
        break;
      case Watcher::Event::Type::Deleted:
        queue.remove(event.object);
        break;
      case Watcher::Event::Type::Failed:
        std::fprintf(stderr, "%s\n", event.object.dump().c_str());
        break;
      case Watcher::Event::Type::Done:
        break;
    }
  }
}

}  // namespace

int main() {
  hangar::op::spawn(run());
}
