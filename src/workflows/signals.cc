#include "workflows/signals.h"

#include "workflows/ledger.h"
#include "workflows/limits.h"
#include "workflows/workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace hangar::workflows {

namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char letter) {
    return std::isalnum(letter) != 0 ||
           std::string_view("_.:/-").find(static_cast<char>(letter)) != std::string_view::npos;
  });
}

}  // namespace

Result<json::Value> parse_event(std::string_view text) {
  if (text.size() > limits::kWorkflowEventBytesMax) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("an event has at most {} bytes", limits::kWorkflowEventBytesMax));
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '{') {
    Result<json::Value> event = json::parse(text);
    if (event && !type_of(*event).empty()) return event;
  } else if (is_word(text)) {
    return json::Value(json::Object{{"type", text}});
  }
  return fail(ErrorKind::InvalidInput,
              "must be an object with a type, {\"type\": \"APPROVE\"}, or only the type, APPROVE");
}

std::vector<Signal> signals_of(const json::Value& manifest) {
  std::vector<Signal> signals;
  const json::Object* const annotations = json::object_at(manifest, {"metadata", "annotations"});
  if (annotations == nullptr) return signals;
  for (const auto& annotation : *annotations) {
    const std::string_view key = annotation.key();
    if (!key.starts_with(kSignalPrefix) || !annotation.value().is_string()) continue;
    signals.push_back({.id = std::string(key.substr(kSignalPrefix.size())),
                       .event = parse_event(annotation.value().get_string())});
  }
  std::ranges::sort(signals, {}, &Signal::id);
  return signals;
}

json::Value removal_of_signals(const std::vector<std::string>& ids) {
  json::Object annotations;
  for (const std::string& id : ids)
    annotations[std::string(kSignalPrefix) + id] = nullptr;
  return json::Object{{"metadata", json::Object{{"annotations", std::move(annotations)}}}};
}

}  // namespace hangar::workflows
