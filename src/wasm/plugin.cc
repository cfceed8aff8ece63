#include "wasm/plugin.h"

#include "base/limits.h"
#include "base/result.h"
#include "wasm/custom_sections.h"
#include "wasm/internal/module_answer.h"
#include "wasm/limits.h"
#include "wasm/module_header.h"
#include "wasm/module_preamble.h"

#include <fmt/format.h>
#include <hangar_wasmparser.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace hangar::wasm {

namespace {

constexpr std::string_view kPluginSection = "hangar:plugin";
// All of Javy's plugins begin so: javy_quickjs_provider_v1 to v3, javy-default-plugin-v1 and later.
constexpr std::string_view kJavy = "javy";
// Messages quote the namespace.
constexpr std::size_t kNamespaceBytesMax = 200;

const CustomSection* find_custom(const ModuleHeader& header, std::string_view name) {
  const auto found = std::ranges::find(header.custom_sections, name, &CustomSection::name);
  return found == header.custom_sections.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::string> missing_plugin(const ModuleHeader& module) {
  if (carried_plugin(module)) return std::nullopt;
  const auto is_wanted = [](const Import& import) {
    return import.kind == ExternKind::Memory || import.module.starts_with(kJavy);
  };
  const auto found = std::ranges::find_if(module.imports, is_wanted);
  if (found == module.imports.end()) return std::nullopt;
  return found->module.substr(0, kNamespaceBytesMax);
}

Result<std::string> carry_plugin(std::span<const std::byte> module,
                                 std::span<const std::byte> plugin) {
  const Result<ModuleHeader> read = read_module_header(plugin);
  if (!read) return std::unexpected(Error(read.error()).in("its plugin"));
  std::ignore = HANGAR_TRY(read_module_header(module));
  std::string carrying;
  carrying.reserve(module.size() + plugin.size() + 64);
  carrying += internal::text_of(module);
  append_custom_section(carrying, kPluginSection, internal::text_of(plugin));
  if (carrying.size() > limits::kModuleBytesMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("module and plugin are {} MiB together; the limit is {} MiB",
                    carrying.size() / limits::kMiB, limits::kModuleBytesMax / limits::kMiB));
  }
  return carrying;
}

std::optional<std::span<const std::byte>> carried_plugin(const ModuleHeader& module) {
  const CustomSection* const section = find_custom(module, kPluginSection);
  if (section == nullptr) return std::nullopt;
  return section->bytes;
}

Result<std::string> link_plugin(std::span<const std::byte> module,
                                std::span<const std::byte> plugin) {
  HANGAR_TRY(check_size_and_preamble(module));
  if (Result<> checked = check_size_and_preamble(plugin); !checked) {
    return std::unexpected(std::move(checked).error().in("its plugin"));
  }
  std::string linked;
  std::ignore = HANGAR_TRY(internal::checked(
      hangar_wasm_link(internal::data_of(module), module.size(), internal::data_of(plugin),
                       plugin.size(), &internal::kBounds, internal::append, &linked)));
  if (linked.size() > limits::kModuleBytesMax) {
    return fail(ErrorKind::LimitExceeded, "module and plugin are too large together");
  }
  return linked;
}

}  // namespace hangar::wasm
