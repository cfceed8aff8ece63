#include "wasm/module_header.h"

#include "base/invalid.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/utf8.h"
#include "wasm/internal/module_answer.h"
#include "wasm/module_preamble.h"

#include <fmt/format.h>
#include <hangar_wasmparser.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace hangar::wasm {

static_assert(static_cast<int>(ExternKind::Function) == 0 && static_cast<int>(ExternKind::Tag) == 4,
              "the kinds have the codes of the core specification, as in an answer");

namespace {

// Imports that a module may have: many times as many as there are functions that hangar offers.
constexpr std::size_t kImportsMax = 1000;

// Imports and exports whose types have so many values that they are not written out. Such a type
// may have two thousand, for each of which wasmtime makes an object when it lists what the compiled
// module has.
constexpr std::size_t kLongTypesMax = 256;

// The names of imports and exports together: each process that has the module loaded has them in
// memory twice.
constexpr std::size_t kNamesBytesMax = 8 * limits::kMiB;

bool is_long(const hangar_wasm_text& signature) {
  return internal::text_of(signature).contains(", ...)");
}

Result<> check_counts(const hangar_wasm_answer& answer) {
  if (answer.import_count > kImportsMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("has {} imports; the limit is {}", answer.import_count, kImportsMax));
  }
  std::size_t long_types = 0;
  std::size_t names_bytes = 0;
  for (const auto& each : std::span(answer.imports, answer.import_count)) {
    names_bytes += each.module.size + each.name.size;
    if (is_long(each.signature)) ++long_types;
  }
  for (const auto& each : std::span(answer.exports, answer.export_count)) {
    names_bytes += each.name.size;
    if (is_long(each.signature)) ++long_types;
  }
  if (names_bytes > kNamesBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("has names of imports and exports of {} MiB together; the limit is {} "
                            "MiB",
                            names_bytes / limits::kMiB, kNamesBytesMax / limits::kMiB));
  }
  if (long_types <= kLongTypesMax) return {};
  return fail(ErrorKind::LimitExceeded,
              fmt::format("has {} imports and exports of functions with very many parameters or "
                          "results; the limit is {}",
                          long_types, kLongTypesMax));
}

}  // namespace

std::string names_of(std::span<const Import> imports) {
  constexpr std::size_t kNamedMax = 5;
  constexpr std::size_t kShownBytesMax = 120;  // Of each part: names may be long.
  std::string names;
  for (const Import& import : imports.first(std::min(imports.size(), kNamedMax))) {
    fmt::format_to(std::back_inserter(names), "{}{}.{}{}", names.empty() ? "" : ", ",
                   utf8_beginning(import.module, kShownBytesMax),
                   utf8_beginning(import.name, kShownBytesMax),
                   utf8_beginning(import.signature, kShownBytesMax));
  }
  if (imports.size() > kNamedMax) names += ", ...";
  return names;
}

std::string_view name_of(ExternKind kind) {
  switch (kind) {
    case ExternKind::Function:
      return "function";
    case ExternKind::Table:
      return "table";
    case ExternKind::Memory:
      return "memory";
    case ExternKind::Global:
      return "global";
    case ExternKind::Tag:
      return "tag";
  }
  return "unknown";
}

Result<> check_preamble(std::span<const std::byte> module) {
  constexpr std::array<unsigned char, 4> kMagic = {0x00, 'a', 's', 'm'};
  const auto same = [](unsigned char want, std::byte got) { return std::byte{want} == got; };
  if (module.size() < 8) return invalid("is not a WebAssembly module: too short");
  if (!std::equal(kMagic.begin(), kMagic.end(), module.begin(), same)) {
    const bool is_gzip = module[0] == std::byte{0x1f} && module[1] == std::byte{0x8b};
    return invalid(is_gzip ? "is not a WebAssembly module: it is gzip, unpack it first"
                           : "is not a WebAssembly module: it does not start with \\0asm");
  }
  // Two bytes of version, two of layer: layer 1 is the component model.
  if (module[6] == std::byte{1}) {
    return invalid("is a component, not a core module: build it for wasm32-wasip1 (preview 1)");
  }
  if (module[4] != std::byte{1} || module[5] != std::byte{0} || module[6] != std::byte{0} ||
      module[7] != std::byte{0}) {
    return invalid("is of a WebAssembly version that is not supported");
  }
  return {};
}

Result<> check_size_and_preamble(std::span<const std::byte> module) {
  if (module.size() > limits::kModuleBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("is {} MiB; the limit is {} MiB", module.size() / limits::kMiB,
                            limits::kModuleBytesMax / limits::kMiB));
  }
  return check_preamble(module);
}

Result<ModuleHeader> read_module_header(std::span<const std::byte> module) {
  HANGAR_TRY(check_size_and_preamble(module));
  const internal::ModuleAnswer answer = HANGAR_TRY(internal::checked(
      hangar_wasm_read_header(internal::data_of(module), module.size(), &internal::kBounds)));
  HANGAR_TRY(check_counts(*answer));

  ModuleHeader header;
  header.imports.reserve(answer->import_count);
  for (const auto& each : std::span(answer->imports, answer->import_count)) {
    header.imports.push_back({.module = std::string(internal::text_of(each.module)),
                              .name = std::string(internal::text_of(each.name)),
                              .kind = static_cast<ExternKind>(each.kind),
                              .signature = std::string(internal::text_of(each.signature))});
  }
  header.exports.reserve(answer->export_count);
  for (const auto& each : std::span(answer->exports, answer->export_count)) {
    header.exports.push_back({.name = std::string(internal::text_of(each.name)),
                              .kind = static_cast<ExternKind>(each.kind),
                              .signature = std::string(internal::text_of(each.signature)),
                              .index = each.index});
  }
  header.custom_sections.reserve(answer->custom_count);
  for (const auto& each : std::span(answer->customs, answer->custom_count)) {
    header.custom_sections.push_back({.name = std::string(internal::text_of(each.name)),
                                      .bytes = internal::bytes_of(each.contents)});
  }
  if (answer->has_memory) header.memory_bytes_min = answer->memory_bytes;
  header.function_count = answer->function_count;
  header.has_start = answer->has_start;
  return header;
}

const Export* find_export(std::span<const Export> exports, std::string_view name) {
  const auto found = std::ranges::find(exports, name, &Export::name);
  return found == exports.end() ? nullptr : &*found;
}

}  // namespace hangar::wasm
