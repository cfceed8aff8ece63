#include "wasm/module_header.h"

#include "base/invalid.h"
#include "base/limits.h"
#include "base/result.h"
#include "wasm/internal/byte_cursor.h"
#include "wasm/internal/sections.h"
#include "wasm/limits.h"
#include "wasm/module_preamble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

using namespace internal::section;  // NOLINT(google-build-using-namespace): ids only.

constexpr std::uint64_t kPageOfMemoryBytes = 64 * limits::kKiB;

// Reads a header; each failure names its offset.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::uint64_t offset) : cursor_(bytes, offset) {}

  [[nodiscard]] bool at_end() const { return cursor_.at_end(); }
  // The position in the whole module, for messages.
  [[nodiscard]] std::uint64_t offset() const { return cursor_.offset(); }

  Result<std::uint8_t> byte() { return checked(cursor_.byte()); }
  Result<std::uint32_t> u32() { return checked(cursor_.u32()); }
  Result<std::uint64_t> u64() { return checked(cursor_.u64()); }
  Result<std::span<const std::byte>> take(std::uint32_t count) {
    return checked(cursor_.take(count));
  }

  Result<std::string> name() {
    const std::uint32_t length = HANGAR_TRY(u32());
    if (length > limits::kModuleNameBytesMax) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("the name at offset {} has {} bytes, the most is {}", offset(),
                              length, limits::kModuleNameBytesMax));
    }
    const auto bytes = HANGAR_TRY(take(length));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // The length of a list whose items take at least one byte each, so that a false length is found
  // before memory is allocated for it.
  Result<std::uint32_t> count(std::string_view of_what, std::uint32_t most) {
    const std::uint32_t value = HANGAR_TRY(u32());
    if (value > most) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("{} {}, the most is {}", value, of_what, most));
    }
    if (value > cursor_.left()) return ends_early();
    return value;
  }

 private:
  template <class T>
  Result<T> checked(T value) const {
    switch (cursor_.failure()) {
      case internal::ByteCursor::Failure::None:
        return value;
      case internal::ByteCursor::Failure::EndsEarly:
        return ends_early();
      case internal::ByteCursor::Failure::NumberTooLarge:
        break;
    }
    return invalid(fmt::format("number too large at offset {}", offset()));
  }
  [[nodiscard]] std::unexpected<Error> ends_early() const {
    return invalid(fmt::format("ends early at offset {}", offset()));
  }

  internal::ByteCursor cursor_;
};

Result<std::string_view> value_type(Reader& reader) {
  const std::uint8_t code = HANGAR_TRY(reader.byte());
  switch (code) {
    case 0x7f:
      return "i32";
    case 0x7e:
      return "i64";
    case 0x7d:
      return "f32";
    case 0x7c:
      return "f64";
    case 0x7b:
      return "v128";
    case 0x70:
      return "funcref";
    case 0x6f:
      return "externref";
    default:
      return invalid(
          fmt::format("value type 0x{:02x} at offset {}: garbage collected types are not supported",
                      code, reader.offset() - 1));
  }
}

Result<std::string> value_types(Reader& reader) {
  const std::uint32_t count = HANGAR_TRY(reader.count("values of one function", 1000));
  // Longer lists are only compared with ours, which are short, so they are not written out: ten
  // thousand imports may share one type of a thousand values.
  constexpr std::uint32_t kWrittenOut = 16;
  std::string text = "(";
  for (std::uint32_t index = 0; index < count; ++index) {
    const std::string_view type = HANGAR_TRY(value_type(reader));
    if (index == kWrittenOut) text += ", ...";
    if (index >= kWrittenOut) continue;
    if (index > 0) text += ", ";
    text += type;
  }
  text += ")";
  return text;
}

// The limits of a table or memory, in elements or pages.
struct Limits {
  std::uint64_t minimum = 0;
  bool is_wide = false;  // Addressed with 64 bits.
};

Result<Limits> read_limits(Reader& reader) {
  const std::uint8_t flags = HANGAR_TRY(reader.byte());
  if (flags > 7) {
    return invalid(
        fmt::format("limits 0x{:02x} at offset {} are not supported", flags, reader.offset() - 1));
  }
  Limits limits{.is_wide = (flags & 4U) != 0};
  limits.minimum = limits.is_wide ? HANGAR_TRY(reader.u64()) : HANGAR_TRY(reader.u32());
  if ((flags & 1U) != 0) {
    if (limits.is_wide) {
      std::ignore = HANGAR_TRY(reader.u64());
    } else {
      std::ignore = HANGAR_TRY(reader.u32());
    }
  }
  return limits;
}

// Collects a ModuleHeader, section by section.
class Walk {
 public:
  Result<> section(std::uint8_t id, Reader& reader) {
    switch (id) {
      case kType:
        return types(reader);
      case kImport:
        return imports(reader);
      case kFunction:
        return functions(reader);
      case kMemory:
        return memories(reader);
      case kExport:
        return exports(reader);
      case kStart:
        header_.has_start = true;
        return {};
      default:
        return {};  // Left to the compiler.
    }
  }

  Result<> custom(Reader& reader, std::span<const std::byte> bytes, std::uint64_t start) {
    if (header_.custom_sections.size() >= limits::kModuleItemsMax) {
      return fail(ErrorKind::LimitExceeded, "too many custom sections");
    }
    std::string name = HANGAR_TRY(reader.name());
    header_.custom_sections.push_back(
        {.name = std::move(name), .bytes = bytes.subspan(reader.offset() - start)});
    return {};
  }

  [[nodiscard]] ModuleHeader take() && { return std::move(header_); }

 private:
  Result<> types(Reader& reader) {
    const std::uint32_t count = HANGAR_TRY(reader.count("types", limits::kModuleItemsMax));
    for (std::uint32_t index = 0; index < count; ++index) {
      const std::uint8_t form = HANGAR_TRY(reader.byte());
      if (form != 0x60) {
        return invalid(fmt::format(
            "type {} is not a function: garbage collected types are not supported", index));
      }
      std::string signature = HANGAR_TRY(value_types(reader));
      signature += " -> ";
      signature += HANGAR_TRY(value_types(reader));
      signatures_.push_back(std::move(signature));
    }
    return {};
  }

  Result<std::uint32_t> function_type(Reader& reader) {
    const std::uint32_t type = HANGAR_TRY(reader.u32());
    if (type >= signatures_.size()) {
      return invalid(fmt::format("function of type {} at offset {}, but there are {} types", type,
                                 reader.offset(), signatures_.size()));
    }
    return type;
  }

  Result<> imports(Reader& reader) {
    const std::uint32_t count = HANGAR_TRY(reader.count("imports", limits::kModuleItemsMax));
    for (std::uint32_t index = 0; index < count; ++index) {
      Import import;
      import.module = HANGAR_TRY(reader.name());
      import.name = HANGAR_TRY(reader.name());
      const std::uint8_t kind = HANGAR_TRY(reader.byte());
      switch (kind) {
        case 0: {
          const std::uint32_t type = HANGAR_TRY(function_type(reader));
          import.signature = signatures_[type];
          function_types_.push_back(type);
          break;
        }
        case 1:
          import.kind = ExternKind::Table;
          std::ignore = HANGAR_TRY(value_type(reader));
          std::ignore = HANGAR_TRY(read_limits(reader));
          break;
        case 2: {
          import.kind = ExternKind::Memory;
          const Limits limits = HANGAR_TRY(read_limits(reader));
          HANGAR_TRY(memory(limits));
          break;
        }
        case 3:
          import.kind = ExternKind::Global;
          std::ignore = HANGAR_TRY(value_type(reader));
          std::ignore = HANGAR_TRY(reader.byte());
          break;
        case 4:
          import.kind = ExternKind::Tag;
          std::ignore = HANGAR_TRY(reader.byte());
          std::ignore = HANGAR_TRY(function_type(reader));
          break;
        default:
          return invalid(fmt::format("import {} is of unknown kind {}", index, kind));
      }
      header_.imports.push_back(std::move(import));
    }
    return {};
  }

  Result<> functions(Reader& reader) {
    const std::uint32_t count = HANGAR_TRY(reader.count("functions", limits::kModuleFunctionsMax));
    function_types_.reserve(function_types_.size() + count);
    for (std::uint32_t index = 0; index < count; ++index) {
      function_types_.push_back(HANGAR_TRY(function_type(reader)));
    }
    header_.function_count = count;
    return {};
  }

  Result<> memories(Reader& reader) {
    const std::uint32_t count = HANGAR_TRY(reader.count("memories", limits::kModuleItemsMax));
    for (std::uint32_t index = 0; index < count; ++index) {
      const Limits limits = HANGAR_TRY(read_limits(reader));
      HANGAR_TRY(memory(limits));
    }
    return {};
  }

  Result<> memory(const Limits& limits) {
    if (header_.memory_bytes_min) return invalid("has more than one memory");
    if (limits.is_wide) return invalid("has a 64-bit memory: build it for wasm32");
    if (limits.minimum > 65536) return invalid("has a memory of more than 4 GiB");
    header_.memory_bytes_min = limits.minimum * kPageOfMemoryBytes;
    return {};
  }

  Result<> exports(Reader& reader) {
    const std::uint32_t count = HANGAR_TRY(reader.count("exports", limits::kModuleItemsMax));
    for (std::uint32_t index = 0; index < count; ++index) {
      Export exported;
      exported.name = HANGAR_TRY(reader.name());
      const std::uint8_t kind = HANGAR_TRY(reader.byte());
      if (kind > 4) return invalid(fmt::format("export {} is of unknown kind {}", index, kind));
      exported.kind = static_cast<ExternKind>(kind);
      const std::uint32_t item = HANGAR_TRY(reader.u32());
      if (exported.kind == ExternKind::Function) {
        if (item >= function_types_.size()) {
          return invalid(fmt::format("export {} is function {}, but there are {}", index, item,
                                     function_types_.size()));
        }
        exported.signature = signatures_[function_types_[item]];
      }
      exported.index = item;
      header_.exports.push_back(std::move(exported));
    }
    return {};
  }

  std::vector<std::string> signatures_;        // By type.
  std::vector<std::uint32_t> function_types_;  // By function, imported ones first.
  ModuleHeader header_;
};

}  // namespace

std::string names_of(std::span<const Import> imports) {
  constexpr std::size_t kNamedMax = 5;
  std::string names;
  for (const Import& import : imports.first(std::min(imports.size(), kNamedMax))) {
    fmt::format_to(std::back_inserter(names), "{}{}.{}{}", names.empty() ? "" : ", ", import.module,
                   import.name, import.signature);
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

Result<ModuleHeader> read_module_header(std::span<const std::byte> module) {
  if (module.size() > limits::kModuleBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("has {} MiB, the most is {} MiB", module.size() / limits::kMiB,
                            limits::kModuleBytesMax / limits::kMiB));
  }
  HANGAR_TRY(check_preamble(module));

  Walk walk;
  Reader reader(module.subspan(8), 8);
  auto expected = kOrder.begin();
  while (!reader.at_end()) {
    const std::uint8_t id = HANGAR_TRY(reader.byte());
    const std::uint32_t size = HANGAR_TRY(reader.u32());
    const std::uint64_t start = reader.offset();
    const auto bytes = HANGAR_TRY(reader.take(size));
    Reader section(bytes, start);
    if (id == kCustom) {
      HANGAR_TRY(walk.custom(section, bytes, start));
      continue;
    }
    const auto place = std::ranges::find(kOrder, id);
    if (place == kOrder.end()) {
      return invalid(fmt::format("has a section of unknown kind {} at offset {}", id, start));
    }
    if (place < expected) {
      return invalid(fmt::format("has section {} twice or out of order at offset {}", id, start));
    }
    expected = place + 1;
    HANGAR_TRY(walk.section(id, section));
  }
  return std::move(walk).take();
}

const Export* find_export(std::span<const Export> exports, std::string_view name) {
  const auto found = std::ranges::find(exports, name, &Export::name);
  return found == exports.end() ? nullptr : &*found;
}

}  // namespace hangar::wasm
