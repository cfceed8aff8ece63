#include "wasm/plugin.h"

#include "base/invalid.h"
#include "base/limits.h"
#include "base/result.h"
#include "wasm/internal/byte_cursor.h"
#include "wasm/internal/section_list.h"
#include "wasm/internal/sections.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/code_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

using internal::append_section;
using internal::append_text;
using internal::append_u32;
using internal::ByteCursor;
using internal::Section;
using internal::sections_of;
using internal::text_of;
using namespace internal::section;  // NOLINT(google-build-using-namespace): ids only.

constexpr std::string_view kPluginSection = "hangar:plugin";
// The section in which Javy's plugins name the namespace that their modules import from. Older
// plugins lack it.
constexpr std::string_view kNamespaceSection = "import_namespace";
// All of them begin so: javy_quickjs_provider_v1 to v3, javy-default-plugin-v1 and later.
constexpr std::string_view kJavy = "javy";
constexpr std::string_view kMemoryName = "memory";
constexpr std::string_view kPreamble("\0asm\1\0\0\0", internal::kPreambleBytes);
constexpr std::string_view kNoValues = "() -> ()";
constexpr std::uint8_t kFunctionForm = 0x60;
constexpr std::uint8_t kEnd = 0x0b;
// Messages quote the namespace.
constexpr std::size_t kNamespaceBytesMax = 200;

std::unexpected<Error> not_understood(std::string_view what, std::uint64_t offset) {
  return invalid(fmt::format("has {} at offset {} that is not understood", what, offset));
}

const CustomSection* find_custom(const ModuleHeader& header, std::string_view name) {
  const auto found = std::ranges::find(header.custom_sections, name, &CustomSection::name);
  return found == header.custom_sections.end() ? nullptr : &*found;
}

// The module or the plugin: its sections by id, and its counts.
struct Side {
  ModuleHeader header;
  std::array<std::optional<Section>, kOrder.size() + 1> sections;
  std::uint32_t function_imports = 0;

  [[nodiscard]] bool has(std::uint8_t id) const { return count(id) > 0; }
  // The number of items in a section that is a list.
  [[nodiscard]] std::uint32_t count(std::uint8_t id) const { return items(id).u32(); }
  // The position of the number of items.
  [[nodiscard]] ByteCursor items(std::uint8_t id) const {
    const auto& section = sections.at(id);
    return section ? ByteCursor(section->bytes, section->offset)
                   : ByteCursor(std::as_bytes(std::span("", 1)));
  }
  // The bytes of the items of a list.
  [[nodiscard]] std::string_view items_text(std::uint8_t id) const {
    ByteCursor cursor = items(id);
    cursor.u32();
    return text_of(cursor.take(cursor.left()));
  }
  [[nodiscard]] std::optional<std::uint32_t> start() const {
    if (!sections.at(kStart)) return std::nullopt;
    return items(kStart).u32();
  }
};

Result<Side> read_side(std::span<const std::byte> module) {
  Side side{.header = HANGAR_TRY(read_module_header(module))};
  for (const Section& section : sections_of(module))
    if (section.id != kCustom) side.sections.at(section.id) = section;
  side.function_imports = static_cast<std::uint32_t>(
      std::ranges::count(side.header.imports, ExternKind::Function, &Import::kind));
  return side;
}

void append_s33(std::string& out, std::int64_t value) {
  while (value < -0x40 || value >= 0x40) {
    out += static_cast<char>(static_cast<std::uint8_t>(value & 0x7f) | 0x80U);
    value >>= 7;
  }
  out += static_cast<char>(value & 0x7f);
}

// Writes the two as one module. The plugin's items keep their indices, so that its code is
// unchanged; the module's items follow them.
class Linking {
 public:
  Linking(const Side& module, const Side& plugin)
      : module_(module),
        plugin_(plugin),
        types_before_(plugin.count(kType)),
        globals_before_(plugin.count(kGlobal)),
        data_before_(plugin.count(kData)) {}

  Result<std::string> link() {
    HANGAR_TRY(check_plugin());
    HANGAR_TRY(check_module());
    HANGAR_TRY(resolve_imports());
    HANGAR_TRY(choose_start());

    std::string out(kPreamble);
    add_list(out, kType, std::string(module_.items_text(kType)) + more_types_,
             module_.count(kType) + more_type_count_);
    keep(out, kImport);
    add_list(out, kFunction, HANGAR_TRY(function_types()) + more_functions_,
             module_.count(kFunction) + more_function_count_);
    keep(out, kTable);
    keep(out, kMemory);
    keep(out, kTag);
    add_list(out, kGlobal, HANGAR_TRY(globals()), module_.count(kGlobal));
    HANGAR_TRY(add_exports(out));
    if (start_) {
      std::string index;
      append_u32(index, *start_);
      append_section(out, kStart, index);
    }
    keep(out, kElement);
    const std::uint32_t data_count = data_before_ + module_.count(kData);
    if (data_count > 0) {
      std::string text;
      append_u32(text, data_count);
      append_section(out, kDataCount, text);
    }
    add_list(out, kCode, HANGAR_TRY(code()) + more_code_,
             module_.count(kCode) + more_function_count_);
    add_list(out, kData, HANGAR_TRY(data()), module_.count(kData));
    if (out.size() > limits::kModuleBytesMax) {
      return fail(ErrorKind::LimitExceeded, "module and plugin are too large together");
    }
    return out;
  }

 private:
  [[nodiscard]] Result<> check_plugin() const {
    for (const Import& import : plugin_.header.imports) {
      if (import.kind == ExternKind::Function) continue;
      return invalid(
          fmt::format("its plugin imports a {} ({}.{}): a plugin has all but its "
                      "functions itself",
                      name_of(import.kind), import.module, import.name));
    }
    return {};
  }

  [[nodiscard]] Result<> check_module() const {
    constexpr std::array<std::pair<std::uint8_t, std::string_view>, 3> kPluginsOnly = {
        {{kMemory, "memory"}, {kTable, "table"}, {kTag, "tag"}}};
    for (const auto& [id, what] : kPluginsOnly) {
      if (!module_.has(id)) continue;
      return invalid(
          fmt::format("has a {} of its own besides the plugin's: it cannot be linked "
                      "with one",
                      what));
    }
    if (module_.has(kElement)) return invalid("has elements for a table of the plugin's");
    return {};
  }

  Result<> resolve_imports() {
    if (module_.header.imports.empty()) return {};
    const std::string& from = module_.header.imports.front().module;
    const CustomSection* const named = find_custom(plugin_.header, kNamespaceSection);
    if (named != nullptr && text_of(named->bytes) != from) {
      return invalid(
          fmt::format("wants the plugin {}, and was given {}: use the one it was built "
                      "with",
                      from, text_of(named->bytes).substr(0, kNamespaceBytesMax)));
    }
    for (const Import& import : module_.header.imports) {
      if (import.module != from) {
        return invalid(fmt::format("imports from {} and from {}: it gets all from its plugin", from,
                                   import.module));
      }
      HANGAR_TRY(resolve(import));
    }
    return {};
  }

  Result<> resolve(const Import& import) {
    const std::string_view kind = name_of(import.kind);
    if (import.kind != ExternKind::Function && import.kind != ExternKind::Memory) {
      return invalid(
          fmt::format("imports the {} {}.{}: only functions and the memory of a plugin "
                      "are for others",
                      kind, import.module, import.name));
    }
    const Export* const found = find_export(plugin_.header.exports, import.name);
    if (found == nullptr) {
      return invalid(fmt::format("imports the {} {}.{}{}, which its plugin does not export", kind,
                                 import.module, import.name, import.signature));
    }
    if (found->kind != import.kind || found->signature != import.signature) {
      return invalid(fmt::format("imports {}.{} as a {}{}, and its plugin exports a {}{}",
                                 import.module, import.name, kind, import.signature,
                                 name_of(found->kind), found->signature));
    }
    if (import.kind == ExternKind::Function) {
      functions_.push_back(found->index);
    } else if (module_.header.memory_bytes_min > plugin_.header.memory_bytes_min) {
      return invalid(fmt::format("imports a memory of {} bytes, and its plugin's has {}",
                                 module_.header.memory_bytes_min.value_or(0),
                                 plugin_.header.memory_bytes_min.value_or(0)));
    }
    return {};
  }

  // Chooses the start function of the linked module: none, an existing one, or a new one that
  // calls several.
  Result<> choose_start() {
    std::vector<std::uint32_t> calls;
    if (const auto start = plugin_.start()) calls.push_back(*start);
    const Export* const initialize = find_export(plugin_.header.exports, "_initialize");
    if (initialize != nullptr && initialize->signature == kNoValues) {
      calls.push_back(initialize->index);
    }
    if (!calls.empty() && has_active_data()) {
      return invalid(
          "has data at fixed addresses, and its plugin a start function that could "
          "see them too early");
    }
    if (const auto start = module_.start()) calls.push_back(HANGAR_TRY(function(*start)));
    if (calls.empty()) return {};
    start_ = calls.front();
    if (calls.size() == 1) return {};
    start_ = functions_of_both();
    more_function_count_ = more_type_count_ = 1;
    more_types_ = {static_cast<char>(kFunctionForm), 0, 0};
    append_u32(more_functions_, types_before_ + module_.count(kType));
    std::string body(1, '\0');  // No local variables.
    for (const std::uint32_t call : calls) {
      body += '\x10';
      append_u32(body, call);
    }
    body += static_cast<char>(kEnd);
    append_text(more_code_, body);
    return {};
  }

  [[nodiscard]] bool has_active_data() const {
    ByteCursor cursor = module_.items(kData);
    const std::uint32_t count = cursor.u32();
    for (std::uint32_t index = 0; index < count && !cursor.has_failed(); ++index) {
      if (cursor.u32() != 1) return true;
      cursor.take(cursor.u32());
    }
    return false;
  }

  [[nodiscard]] std::uint32_t plugin_functions() const {
    return plugin_.function_imports + plugin_.header.function_count;
  }
  [[nodiscard]] std::uint32_t functions_of_both() const {
    return plugin_functions() + module_.header.function_count;
  }

  // Maps an index in the module to the one in the linked module.
  [[nodiscard]] Result<std::uint32_t> function(std::uint32_t index) const {
    if (index < functions_.size()) return functions_[index];
    const std::uint64_t own = index - functions_.size();
    if (own < module_.header.function_count) {
      return plugin_functions() + static_cast<std::uint32_t>(own);
    }
    return invalid(fmt::format("names a function {} that it does not have", index));
  }
  [[nodiscard]] Result<std::uint32_t> type(std::uint64_t index) const {
    if (index >= module_.count(kType)) return invalid("names a type that it does not have");
    return types_before_ + static_cast<std::uint32_t>(index);
  }
  [[nodiscard]] Result<std::uint32_t> global(std::uint32_t index) const {
    if (index >= module_.count(kGlobal)) return invalid("names a global that it does not have");
    return globals_before_ + index;
  }
  [[nodiscard]] Result<std::uint32_t> data_segment(std::uint32_t index) const {
    if (index >= module_.count(kData)) return invalid("names data that it does not have");
    return data_before_ + index;
  }

  // Copies a section of the plugin to which the module adds nothing.
  void keep(std::string& out, std::uint8_t id) const {
    if (const auto& section = plugin_.sections.at(id)) {
      append_section(out, id, text_of(section->bytes));
    }
  }

  // Writes the plugin's items, followed by `items`.
  void add_list(std::string& out, std::uint8_t id, std::string_view items,
                std::uint32_t count) const {
    const std::uint32_t all = plugin_.count(id) + count;
    if (all == 0) return;
    std::string contents;
    append_u32(contents, all);
    contents += plugin_.items_text(id);
    contents += items;
    append_section(out, id, contents);
  }

  [[nodiscard]] Result<std::string> function_types() const {
    std::string items;
    ByteCursor cursor = module_.items(kFunction);
    const std::uint32_t count = cursor.u32();
    for (std::uint32_t index = 0; index < count; ++index)
      append_u32(items, HANGAR_TRY(type(cursor.u32())));
    return items;
  }

  [[nodiscard]] Result<std::string> globals() const {
    std::string items;
    ByteCursor cursor = module_.items(kGlobal);
    const std::uint32_t count = cursor.u32();
    for (std::uint32_t index = 0; index < count; ++index) {
      items += text_of(cursor.take(2));  // The type, and whether it is mutable.
      HANGAR_TRY(constant_expression(cursor, items));
    }
    return items;
  }

  [[nodiscard]] Result<> add_exports(std::string& out) const {
    std::string items;
    std::uint32_t count = 0;
    const auto add = [&](std::string_view name, ExternKind kind, std::uint32_t index) {
      append_text(items, name);
      items += static_cast<char>(kind);
      append_u32(items, index);
      ++count;
    };
    for (const Export& exported : module_.header.exports) {
      std::uint32_t index = exported.index;
      if (exported.kind == ExternKind::Function) {
        index = HANGAR_TRY(function(index));
      } else if (exported.kind == ExternKind::Global) {
        index = HANGAR_TRY(global(index));
      } else if (exported.kind != ExternKind::Memory) {
        return invalid(fmt::format("exports a {} that it does not have", name_of(exported.kind)));
      }
      add(exported.name, exported.kind, index);
    }
    const Export* const memory = find_export(plugin_.header.exports, kMemoryName);
    if (memory != nullptr && memory->kind == ExternKind::Memory &&
        find_export(module_.header.exports, kMemoryName) == nullptr) {
      add(kMemoryName, ExternKind::Memory, memory->index);
    }
    std::string contents;
    append_u32(contents, count);
    contents += items;
    append_section(out, kExport, contents);
    return {};
  }

  [[nodiscard]] Result<std::string> code() const {
    std::string items;
    ByteCursor cursor = module_.items(kCode);
    const std::uint32_t count = cursor.u32();
    for (std::uint32_t index = 0; index < count; ++index) {
      const std::uint32_t size = cursor.u32();
      const std::uint64_t offset = cursor.offset();
      const auto bytes = cursor.take(size);
      if (cursor.has_failed()) return not_understood("a function", offset);
      std::string body;
      ByteCursor code(bytes, offset);
      const std::uint32_t groups = code.u32();
      for (std::uint32_t group = 0; group < groups && !code.has_failed(); ++group) {
        code.u32();
        if (!is_plain_value_type(code.byte())) return not_understood("a variable", code.offset());
      }
      if (code.has_failed()) return not_understood("a function", offset);
      body += text_of(bytes.first(code.position()));
      while (!code.at_end())
        std::ignore = HANGAR_TRY(instruction(code, body));
      append_text(items, body);
    }
    return items;
  }

  [[nodiscard]] Result<std::string> data() const {
    std::string items;
    ByteCursor cursor = module_.items(kData);
    const std::uint32_t count = cursor.u32();
    for (std::uint32_t index = 0; index < count; ++index) {
      const std::uint32_t flags = cursor.u32();
      if (flags > 2) return not_understood("data", cursor.offset());
      append_u32(items, flags);
      if (flags == 2) append_u32(items, cursor.u32());  // The only memory's index.
      if (flags != 1) HANGAR_TRY(constant_expression(cursor, items));
      append_text(items, text_of(cursor.take(cursor.u32())));
      if (cursor.has_failed()) return not_understood("data", cursor.offset());
    }
    return items;
  }

  [[nodiscard]] Result<> constant_expression(ByteCursor& cursor, std::string& out) const {
    while (HANGAR_TRY(instruction(cursor, out)) != kEnd) {
    }
    return {};
  }

  // Copies one instruction, with its indices mapped to the linked module; returns its code.
  Result<std::uint8_t> instruction(ByteCursor& cursor, std::string& out) const {
    const ByteCursor begin = cursor;
    const std::uint8_t code = cursor.byte();
    std::string numbers;
    switch (code) {
      case 0x10:  // call
      case 0x12:  // return_call
      case 0xd2:  // ref.func
        append_u32(numbers, HANGAR_TRY(function(cursor.u32())));
        break;
      case 0x23:  // global.get
      case 0x24:  // global.set
        append_u32(numbers, HANGAR_TRY(global(cursor.u32())));
        break;
      case 0x02:    // block
      case 0x03:    // loop
      case 0x04: {  // if
        const std::int64_t result = cursor.i33();
        append_s33(numbers,
                   result < 0 ? result : HANGAR_TRY(type(static_cast<std::uint64_t>(result))));
        break;
      }
      case 0x11:  // call_indirect
      case 0x13:  // return_call_indirect
      case 0x25:  // table.get
      case 0x26:  // table.set
        return invalid("uses a table that it does not have");
      case 0xfc:
        HANGAR_TRY(bulk_instruction(cursor, numbers));
        if (!numbers.empty()) break;
        [[fallthrough]];
      default: {
        cursor = begin;
        const bool is_known = skip_instruction(cursor);
        if (!is_known) return not_understood("an instruction", begin.offset());
        ByteCursor whole = begin;
        out += text_of(whole.take(cursor.position() - begin.position()));
        return code;
      }
    }
    if (cursor.has_failed()) return not_understood("an instruction", begin.offset());
    out += static_cast<char>(code);
    out += numbers;
    return code;
  }

  // `numbers` is empty for an instruction that stays unchanged.
  [[nodiscard]] Result<> bulk_instruction(ByteCursor& cursor, std::string& numbers) const {
    constexpr std::uint32_t kMemoryInit = 8;
    constexpr std::uint32_t kDataDrop = 9;
    constexpr std::uint32_t kTableInit = 12;
    constexpr std::uint32_t kTableFill = 17;
    const std::uint32_t code = cursor.u32();
    if (code >= kTableInit && code <= kTableFill) {
      return invalid("uses a table that it does not have");
    }
    if (code != kMemoryInit && code != kDataDrop) return {};
    append_u32(numbers, code);
    append_u32(numbers, HANGAR_TRY(data_segment(cursor.u32())));
    if (code == kMemoryInit) append_u32(numbers, cursor.u32());
    return {};
  }

  const Side& module_;
  const Side& plugin_;
  const std::uint32_t types_before_;
  const std::uint32_t globals_before_;
  const std::uint32_t data_before_;
  std::vector<std::uint32_t> functions_;  // For each import of the module, the plugin's function.

  std::optional<std::uint32_t> start_;
  // The function that starts both, if one is needed.
  std::string more_types_;
  std::string more_functions_;
  std::string more_code_;
  std::uint32_t more_type_count_ = 0;
  std::uint32_t more_function_count_ = 0;
};

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
  std::string contents;
  append_text(contents, kPluginSection);
  contents += text_of(plugin);
  std::string carrying(text_of(module));
  append_section(carrying, kCustom, contents);
  if (carrying.size() > limits::kModuleBytesMax) {
    return fail(
        ErrorKind::LimitExceeded,
        fmt::format("module and plugin have {} MiB together, the most is {} MiB",
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
  const Side module_side = HANGAR_TRY(read_side(module));
  Result<Side> plugin_side = read_side(plugin);
  if (!plugin_side) return std::unexpected(std::move(plugin_side).error().in("its plugin"));
  return Linking(module_side, *plugin_side).link();
}

}  // namespace hangar::wasm
