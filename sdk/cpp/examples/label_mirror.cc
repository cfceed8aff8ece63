// An operator: every ConfigMap of a namespace that has the label mirror-to=<name> has a copy with
// that name, and the copy has the same data. A copy that nobody asks for any more stays.
//
//   NAMESPACE   where to look; "default" if not set

#include "hangar/operator.hpp"
#include "hangar/watcher.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using hangar::op::Json;
using hangar::op::Response;
using hangar::op::Task;
using hangar::op::Watcher;

constexpr const char* kLabel = "mirror-to";

std::string collection() {
  const char* name = std::getenv("NAMESPACE");
  return std::string("/api/v1/namespaces/") + (name == nullptr ? "default" : name) + "/configmaps";
}

// The document under a key, or an empty object.
Json at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : Json::object();
}

// Applies the copy: the server compares, and a copy that is as it should be stays untouched.
Task<> mirror(Json source) {
  const Json metadata = at(source, "metadata");
  const std::string copy = hangar::op::text_of(at(metadata, "labels"), kLabel);
  const std::string name = hangar::op::text_of(metadata, "name");
  if (copy.empty() || copy == name) co_return;

  const Json wanted = {{"apiVersion", "v1"},
                       {"kind", "ConfigMap"},
                       {"metadata", {{"name", copy}, {"annotations", {{"mirror-of", name}}}}},
                       {"data", at(source, "data")}};
  const Response answer = co_await hangar::op::send(hangar::op::with_body(
      "PATCH", collection() + "/" + copy + "?fieldManager=label-mirror&force=true", wanted.dump(),
      "application/apply-patch+yaml"));
  std::printf("%s to %s: %d\n", name.c_str(), copy.c_str(), answer.status);
  std::fflush(stdout);
}

Task<> run() {
  Watcher watcher(collection());
  for (;;) {
    Watcher::Event event = co_await watcher.next();
    switch (event.type) {
      case Watcher::Event::Type::Listed:
      case Watcher::Event::Type::Changed:
        // One after the other, so that the last state of an object is the one that stays.
        co_await mirror(std::move(event.object));
        break;
      case Watcher::Event::Type::Failed:
        std::fprintf(stderr, "%s\n", event.object.dump().c_str());
        break;
      case Watcher::Event::Type::Done:
      case Watcher::Event::Type::Deleted:
        break;
    }
  }
}

}  // namespace

int main() {
  hangar::op::spawn(run());
}
