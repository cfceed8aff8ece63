// Compares what a release has set in a resource with the live object. Pure.
#pragma once

#include "json/value.h"

#include <cstdint>
#include <optional>

namespace hangar::commands {

// Removes the members that the API server maintains: generation, resourceVersion, managedFields,
// creationTimestamp, status.
[[nodiscard]] json::Value without_bookkeeping(json::Value object);

// `actual` without the members that `expected` does not have: defaults, and additions by others.
// Compares entries of lists by their index.
[[nodiscard]] json::Value without_additions(const json::Value& expected, json::Value actual);

// Both sides without bookkeeping.
struct ComparedResource {
  json::Value expected;
  std::optional<json::Value> actual;  // Nothing: the object does not exist.

  [[nodiscard]] bool differs() const { return !actual || !json::equal(expected, *actual); }
};

enum class ComparedFields : std::uint8_t {
  Set,  // Those that the release has set.
  All,
};

// `live`: nothing if the object does not exist.
[[nodiscard]] ComparedResource compare_resource(const json::Value& resource,
                                                std::optional<json::Value> live,
                                                ComparedFields fields);

// Replaces the values of a Secret by words that tell whether they are the same on both sides.
// Resources of other kinds stay as they are.
void withhold_secret_values(ComparedResource& compared);

}  // namespace hangar::commands
