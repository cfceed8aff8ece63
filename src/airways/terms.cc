#include "airways/terms.h"

#include "airways/limits.h"
#include "airways/matcher.h"
#include "base/invalid.h"
#include "base/result.h"
#include "base/time.h"
#include "json/fields.h"
#include "json/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

using json::Fields;

constexpr std::array<std::pair<Mode, std::string_view>, 4> kModes = {{
    {Mode::Standard, "standard"},
    {Mode::Static, "static"},
    {Mode::Dynamic, "dynamic"},
    {Mode::Subscription, "subscription"},
}};

Result<Mode> parse_mode(const Fields& spec) {
  const std::string text = HANGAR_TRY(spec.text("mode"));
  if (text.empty()) return Mode::Standard;
  const std::optional<Mode> mode = mode_of(text);
  if (!mode) {
    return invalid(fmt::format(
        "spec.mode: \"{}\" is not one of standard, static, dynamic, subscription", text));
  }
  return *mode;
}

Result<std::vector<Matcher>> parse_matchers(const Fields& spec) {
  const std::vector<std::string> texts = HANGAR_TRY(spec.texts("resourceAccessMatchers"));
  std::vector<Matcher> matchers;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Result<Matcher> matcher = Matcher::parse(texts[i]);
    if (!matcher) {
      return std::unexpected(
          std::move(matcher).error().in(fmt::format("spec.resourceAccessMatchers[{}]", i)));
    }
    matchers.push_back(*std::move(matcher));
  }
  return matchers;
}

Result<> parse_limits(const Fields& spec, Terms& terms) {
  const Duration interval = HANGAR_TRY(spec.duration("fixDriftInterval"));
  if (interval > Duration(0)) {
    terms.fix_drift_interval = std::max<Duration>(interval, limits::kFixDriftIntervalMin);
  }
  const Duration timeout = HANGAR_TRY(spec.duration("timeout"));
  if (timeout < Duration(0)) terms.timeout = std::nullopt;
  if (timeout > Duration(0)) terms.timeout = timeout;

  const std::int64_t history = HANGAR_TRY(spec.integer("historyCapSize"));
  if (history < 0) terms.history_max = std::nullopt;
  if (history > 0) {
    terms.history_max = static_cast<std::uint32_t>(
        std::min<std::int64_t>(history, std::numeric_limits<std::uint32_t>::max()));
  }

  const std::int64_t memory_mib = HANGAR_TRY(spec.integer("maxMemoryMib"));
  if (memory_mib < 0) return invalid("spec.maxMemoryMib: must not be negative");
  terms.memory_mib_max =
      static_cast<std::uint32_t>(std::min<std::int64_t>(memory_mib, limits::kFlightMemoryMibMax));
  return {};
}

Result<> check_prune(const Fields& spec) {
  const json::Object* const prune = HANGAR_TRY(spec.object("prune"));
  if (prune == nullptr) return {};
  const Fields options(*prune, "spec.prune");
  for (const std::string_view name : {"crds", "namespaces"}) {
    const Result<bool> flag = options.flag(name);
    if (!flag) return std::unexpected(flag.error());
  }
  return {};
}

}  // namespace

std::string_view name_of(Mode mode) {
  return std::ranges::find(kModes, mode, &std::pair<Mode, std::string_view>::first)->second;
}

std::optional<Mode> mode_of(std::string_view name) {
  const auto* const found =
      std::ranges::find(kModes, name, &std::pair<Mode, std::string_view>::second);
  if (found == kModes.end()) return std::nullopt;
  return found->first;
}

std::optional<std::string> unsupported_mode(Mode mode, bool has_webhooks) {
  if (mode != Mode::Static || has_webhooks) return std::nullopt;
  return "spec.mode static needs webhooks, which are off: --webhook-bind-address, or "
         "webhooks.enabled of the chart";
}

Result<Terms> parse_terms(const Fields& spec) {
  Terms terms;
  terms.mode = HANGAR_TRY(parse_mode(spec));
  terms.cluster_access = HANGAR_TRY(spec.flag("clusterAccess"));
  terms.resource_access_matchers = HANGAR_TRY(parse_matchers(spec));
  terms.flight.insecure = HANGAR_TRY(spec.flag("insecure"));
  terms.skip_admission_webhook = HANGAR_TRY(spec.flag("skipAdmissionWebhook"));
  HANGAR_TRY(parse_limits(spec, terms));
  HANGAR_TRY(check_prune(spec));
  return terms;
}

Result<std::string> input_of(const Terms& terms, const json::Value& instance) {
  if (terms.input) return *terms.input;
  const json::Value* value = &instance;
  for (const std::string& key : terms.object_path) {
    if (value->is_null()) break;
    const json::Object* object = value->if_object();
    if (object == nullptr) {
      return invalid(
          fmt::format("failed to get object path from: \"{}\": the parent of \"{}\" is "
                      "not an object",
                      fmt::join(terms.object_path, ","), key));
    }
    value = object->if_contains(key);
    if (value == nullptr) return std::string("null");
  }
  return json::dump(*value);
}

}  // namespace hangar::airways
