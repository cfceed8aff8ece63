#include "modules/config_map.h"

#include "base/base64.h"
#include "base/result.h"
#include "modules/internal/gzip.h"
#include "modules/limits.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::modules {

namespace {

// A ConfigMap has at most 1 MiB; a message that lists thousands of keys helps no one.
constexpr std::size_t kKeysNamedMax = 8;

std::vector<std::string> keys_of(const ConfigMapContent& content) {
  std::vector<std::string> keys;
  keys.reserve(content.data.size() + content.binary_data.size());
  for (const auto& [key, value] : content.data)
    keys.push_back(key);
  for (const auto& [key, value] : content.binary_data)
    keys.push_back(key);
  return keys;
}

std::string listed(std::vector<std::string> keys) {
  if (keys.empty()) return "none";
  if (keys.size() > kKeysNamedMax) {
    keys.resize(kKeysNamedMax);
    keys.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

// The keys of numbered parts in order; std::nullopt when the keys are not numbered parts.
std::optional<std::vector<std::string>> in_part_order(const std::vector<std::string>& keys) {
  std::map<std::uint32_t, std::string> by_number;
  std::string_view common;
  for (const std::string& key : keys) {
    const std::size_t last_other = key.find_last_not_of("0123456789");
    const std::size_t digits_at = last_other == std::string::npos ? 0 : last_other + 1;
    const std::string_view prefix = std::string_view(key).substr(0, digits_at);
    if (by_number.empty()) common = prefix;
    std::uint32_t number = 0;
    const auto [end, error] =
        std::from_chars(key.data() + digits_at, key.data() + key.size(), number);
    if (prefix != common || error != std::errc() || !by_number.emplace(number, key).second) {
      return std::nullopt;
    }
  }
  if (by_number.empty()) return std::nullopt;
  std::uint32_t expected = by_number.begin()->first;
  if (expected > 1) return std::nullopt;
  std::vector<std::string> ordered;
  for (const auto& [number, key] : by_number) {
    if (number != expected++) return std::nullopt;
    ordered.push_back(key);
  }
  return ordered;
}

// The keys that `name` stands for: itself, its gzip, or numbered parts. Empty when there are none.
std::vector<std::string> keys_named(std::string_view name, const std::vector<std::string>& keys) {
  const std::string packed = fmt::format("{}.gz", name);
  for (const std::string_view whole : {name, std::string_view(packed)}) {
    if (std::ranges::find(keys, whole) != keys.end()) return {std::string(whole)};
  }
  for (const std::string_view whole : {name, std::string_view(packed)}) {
    std::vector<std::string> parts;
    for (const std::string& key : keys) {
      const bool is_part =
          key.size() > whole.size() + 1 && key.starts_with(whole) && key[whole.size()] == '.' &&
          key.find_first_not_of("0123456789", whole.size() + 1) == std::string::npos;
      if (is_part) parts.push_back(key);
    }
    if (auto ordered = in_part_order(parts)) return *std::move(ordered);
  }
  return {};
}

// The keys without those of a plugin, which are ignored when there is another key.
std::vector<std::string> without_plugin(const std::vector<std::string>& keys) {
  std::vector<std::string> others;
  std::ranges::copy_if(keys, std::back_inserter(others),
                       [](const std::string& key) { return !key.starts_with(kPluginKey); });
  return others.empty() ? keys : others;
}

// The only key that is named like a module or script; std::nullopt when there are several, or none.
std::optional<std::string> only_by_name(const std::vector<std::string>& keys) {
  std::optional<std::string> found;
  for (const std::string& key : keys) {
    std::string_view name = key;
    if (name.ends_with(".gz")) name.remove_suffix(3);
    if (!name.ends_with(".wasm") && !name.ends_with(".js") && !name.ends_with(".mjs")) continue;
    if (found) return std::nullopt;
    found = key;
  }
  return found;
}

// The bytes of a `text` in base64, or else the text itself.
std::string script_or_bytes(std::string text) {
  std::optional<std::string> bytes = base64_decode(text);
  const bool is_module =
      bytes && (bytes->starts_with(std::string_view("\0asm", 4)) || bytes->starts_with("\x1f\x8b"));
  return is_module ? *std::move(bytes) : std::move(text);
}

Result<std::string> decoded(const std::map<std::string, std::string>& values,
                            const std::vector<std::string>& keys, std::string_view field) {
  std::string text;
  for (const std::string& key : keys)
    text += values.at(key);
  std::optional<std::string> bytes = base64_decode(text);
  if (!bytes) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} of configmap key {} is not base64: kubectl create configmap "
                            "--from-file puts binary files into binaryData",
                            field, listed(keys)));
  }
  return *std::move(bytes);
}

}  // namespace

Result<std::string> module_bytes(const ConfigMapContent& content, std::string_view key,
                                 Content wanted) {
  std::vector<std::string> all = keys_of(content);
  std::vector<std::string> chosen;
  if (key.empty() && wanted == Content::ModuleOrScript) all = without_plugin(all);
  if (!key.empty()) {
    chosen = keys_named(key, all);
    if (chosen.empty()) {
      return fail(ErrorKind::NotFound,
                  fmt::format("configmap has no key {} (it has {})", key, listed(all)));
    }
  } else if (all.size() == 1) {
    chosen = all;
  } else if (auto parts = in_part_order(all)) {
    chosen = *std::move(parts);
  } else if (auto only = wanted == Content::ModuleOrScript ? only_by_name(all) : std::nullopt) {
    chosen = {*std::move(only)};
  } else {
    return fail(ErrorKind::InvalidInput,
                fmt::format("configmap has {}: name the module's key in the reference, or number "
                            "its parts without a gap",
                            all.empty() ? "no keys" : "the keys " + listed(all)));
  }
  const auto in = [&chosen](const std::map<std::string, std::string>& values) {
    return std::ranges::all_of(
        chosen, [&values](const std::string& name) { return values.contains(name); });
  };
  if (in(content.binary_data)) return decoded(content.binary_data, chosen, "binaryData");
  if (in(content.data) && wanted == Content::ModuleOrScript) {
    std::string text;
    for (const std::string& name : chosen)
      text += content.data.at(name);
    return script_or_bytes(std::move(text));
  }
  if (in(content.data)) return decoded(content.data, chosen, "data");
  return fail(ErrorKind::InvalidInput,
              "some parts are in data and some in binaryData of the configmap");
}

Result<ConfigMapContent> in_config_map(std::string_view name, std::string_view bytes) {
  constexpr std::uint64_t kBytesMax = limits::kSecretBytesMax;  // The same bound for both kinds.
  const std::string packed = gzip(bytes);
  if (packed.size() > kBytesMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("{} has {} bytes when it is packed, a ConfigMap takes {}: serve it over "
                    "https or from a registry",
                    name, packed.size(), kBytesMax));
  }
  return ConfigMapContent{.binary_data = {{fmt::format("{}.gz", name), base64_encode(packed)}}};
}

}  // namespace hangar::modules
