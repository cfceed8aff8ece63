// A flight: a ConfigMap with a text, which may come from another ConfigMap that need not exist yet.

#include "hangar/flight.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>

namespace {

using nlohmann::json;

int fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

// The string at a pointer such as "/spec/text"; empty if there is none.
std::string text_at(const json& document, const char* pointer) {
  const json::json_pointer path(pointer);
  if (!document.contains(path) || !document.at(path).is_string()) return "";
  return document.at(path).get<std::string>();
}

int write(const json& resources) {
  const std::string text = resources.dump();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0
             ? 0
             : fail("failed to write stdout");
}

}  // namespace

int main() {
  json greeting = json::parse(hangar::flight::read_input(), nullptr, /*allow_exceptions=*/false);
  if (!greeting.is_object()) return fail("failed to decode stdin into a greeting: not an object");

  std::string text = text_at(greeting, "/spec/text");
  if (const std::string from = text_at(greeting, "/spec/from"); !from.empty()) {
    const hangar::flight::Answer source =
        hangar::flight::lookup({.name = from,
                                .name_space = hangar::flight::release_namespace(),
                                .kind = "ConfigMap",
                                .api_version = "v1"});
    if (source.state == hangar::flight::State::NotFound) {
      // The host remembers the lookup: the ConfigMap's creation evaluates the flight again.
      greeting["status"] = {{"msg", "waiting for configmap " + from}};
      return write(json::array({greeting}));
    }
    if (!source) return fail("failed to lookup configmap " + from + ": " + source.bytes);
    text = text_at(json::parse(source.bytes, nullptr, /*allow_exceptions=*/false), "/data/text");
  }

  greeting["status"] = {{"msg", "greeting"}};
  return write(json::array({greeting,
                            {{"apiVersion", "v1"},
                             {"kind", "ConfigMap"},
                             {"metadata", {{"name", text_at(greeting, "/metadata/name")}}},
                             {"data", {{"text", text}}}}}));
}
