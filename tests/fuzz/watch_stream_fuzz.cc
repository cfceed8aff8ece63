// Lines of a watch from anywhere: the results of the machine and of the store fit together.
#include "base/assert.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "kube/cache/store.h"
#include "kube/labels.h"
#include "kube/object.h"
#include "kube/watch/watch_event.h"
#include "kube/watch/watch_machine.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

namespace {

using hangar::kube::Change;
using hangar::kube::Delta;
using hangar::kube::ObjectKey;
using hangar::kube::WatchMachine;

// Does what the machine asks for until a stream is open.
WatchMachine::Next reopen(WatchMachine& machine, WatchMachine::Next next, hangar::Instant& now) {
  while (!std::holds_alternative<WatchMachine::Watch>(next)) {
    if (const auto* wait = std::get_if<WatchMachine::Wait>(&next)) {
      now += wait->delay;
      next = machine.on_due(now);
    } else {
      next = machine.on_listed("1", now);
    }
  }
  return next;
}

// The labels read without parsing the document are the document's labels.
void check_labels(const hangar::kube::Object& object) {
  const hangar::kube::Labels labels(object);
  const hangar::kube::ObjectText text = object.text();
  const auto document = hangar::json::parse(text.view());
  if (!document) return;  // It is nested too deep.
  const auto* const members = hangar::json::object_at(*document, {"metadata", "labels"});
  HANGAR_ASSERT((members != nullptr) == !object.labels().empty(), "labels of one reader only");
  if (members == nullptr) return;
  for (const auto& [key, value] : *members) {
    const auto found = labels.find(key);
    HANGAR_ASSERT(found.has_value() == value.is_string(), "a label of one reader only");
    HANGAR_ASSERT(!found || *found == value.get_string(), "a label read differently");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view stream(reinterpret_cast<const char*>(data), size);
  hangar::Instant now = hangar::Instant() + std::chrono::hours(1);
  hangar::kube::ServerTraits traits;
  WatchMachine machine(traits, /*seed=*/1);
  hangar::kube::Store store;
  std::set<ObjectKey> believed;
  const auto believe = [&](const Delta& delta) {
    const bool is_known = believed.contains(delta.object->key());
    HANGAR_ASSERT(is_known == (delta.type != Delta::Type::Added), "a delta that does not fit");
    if (delta.type == Delta::Type::Deleted) {
      believed.erase(delta.object->key());
    } else {
      believed.insert(delta.object->key());
    }
  };

  WatchMachine::Next next = reopen(machine, machine.start(now), now);
  while (!stream.empty()) {
    const std::size_t end = std::min(stream.find('\n'), stream.size());
    auto effect = machine.on_event(hangar::kube::parse_watch_event(stream.substr(0, end)), now);
    stream.remove_prefix(std::min(end + 1, stream.size()));
    now += std::chrono::milliseconds(100);
    if (const auto* change = std::get_if<Change>(&effect)) {
      check_labels(*change->object);
      store.apply(*change, believe);
    } else if (auto* replace = std::get_if<WatchMachine::Replace>(&effect)) {
      store.replace(std::move(replace->objects), believe);
    } else if (std::holds_alternative<WatchMachine::Close>(effect)) {
      next = reopen(machine, machine.on_ended(std::nullopt, now), now);
    }
  }
  HANGAR_ASSERT(store.object_count() == believed.size(), "the store and its deltas disagree");
  store.replace({}, believe);
  HANGAR_ASSERT(believed.empty() && store.size_bytes() == 0, "something is left of nothing");
  return 0;
}
