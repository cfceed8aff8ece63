#include "wasm/snapshot/rewrite.h"

#include "base/limits.h"
#include "base/result.h"
#include "wasm/internal/byte_cursor.h"
#include "wasm/internal/section_list.h"
#include "wasm/internal/sections.h"
#include "wasm/limits.h"
#include "wasm/module_header.h"
#include "wasm/snapshot/code_scan.h"
#include "wasm/snapshot/page_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

using internal::append_section;
using internal::append_text;
using internal::append_u32;
using internal::ByteCursor;
using internal::kPreambleBytes;
using internal::rank_of;
using internal::Section;
using internal::sections_of;
using internal::text_of;
using namespace internal::section;  // NOLINT(google-build-using-namespace): ids only.

struct DataSegment {
  bool is_active = false;
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;
};

// Finds what has to be changed, and obstacles. Sections come in the module's order.
class Survey {
 public:
  explicit Survey(const ModuleHeader& header) : header_(header) {
    memory_bytes_min_ = header.memory_bytes_min.value_or(0);
    for (const Import& import : header.imports) {
      if (import.kind == ExternKind::Function) continue;
      obstacle(fmt::format("imports a {} ({}.{})", name_of(import.kind), import.module,
                           import.name.substr(0, 100)));
    }
    for (const Export& exported : header.exports) {
      if (exported.name.starts_with(kReservedPrefix)) {
        obstacle(fmt::format("exports a name that begins with {}", kReservedPrefix));
      }
    }
  }

  void section(const Section& section) {
    ByteCursor cursor(section.bytes, section.offset);
    switch (section.id) {
      case kMemory:
        memories(cursor);
        break;
      case kGlobal:
        globals(cursor);
        break;
      case kExport:
        exports(cursor);
        break;
      case kStart:
        start(cursor);
        break;
      case kDataCount:
        has_data_count_ = true;
        return;
      case kCode:
        code(cursor);
        return;
      case kData:
        data(cursor);
        break;
      default:
        return;
    }
    if (cursor.has_failed() || !cursor.at_end()) {
      obstacle(fmt::format("has a section {} that is not understood", section.id));
    }
  }

  // Called after the last section.
  void conclude() {
    const bool has_passive = std::ranges::any_of(
        segments_, [](const DataSegment& segment) { return !segment.is_active; });
    if (drops_data_ && has_passive) obstacle("drops a segment of data (data.drop)");
    keeps_data_section_ = has_passive || has_data_count_;
    place_data();
  }

  [[nodiscard]] std::optional<std::string>& obstacle() { return obstacle_; }
  [[nodiscard]] const std::vector<std::uint32_t>& mutable_globals() const {
    return mutable_globals_;
  }
  [[nodiscard]] const std::optional<std::uint32_t>& start() const { return start_; }
  [[nodiscard]] const std::vector<DataSegment>& segments() const { return segments_; }
  [[nodiscard]] bool keeps_data_section() const { return keeps_data_section_; }
  [[nodiscard]] std::vector<DataPiece>& pieces() { return pieces_; }

 private:
  // The first obstacle counts.
  void obstacle(std::string text) {
    if (!obstacle_) obstacle_ = std::move(text);
  }

  void memories(ByteCursor& cursor) {
    const std::uint32_t count = cursor.u32();
    for (std::uint32_t index = 0; index < count && !cursor.has_failed(); ++index) {
      const std::uint8_t flags = cursor.byte();
      if ((flags & ~1U) != 0) obstacle("has a shared memory");
      cursor.u32();
      if ((flags & 1U) != 0) cursor.u32();
    }
  }

  void globals(ByteCursor& cursor) {
    const std::uint32_t count = cursor.u32();
    for (std::uint32_t index = 0; index < count && !cursor.has_failed(); ++index) {
      const std::uint8_t type = cursor.byte();
      const bool is_mutable = cursor.byte() != 0;
      const bool is_number = type >= 0x7b && type <= 0x7f;
      const bool is_reference = type == 0x70 || type == 0x6f;
      if (!is_number && !is_reference) return obstacle("has a global of a type not known here");
      if (is_mutable && is_reference) obstacle("has a reference in a mutable global");
      // No global is imported, so this is the global's index.
      if (is_mutable) mutable_globals_.push_back(index);
      if (!skip_constant_expression(cursor)) {
        return obstacle("has a global with an initial value that is not understood");
      }
    }
  }

  // The list is known to be well formed; the bytes after its last item are not.
  static void exports(ByteCursor& cursor) {
    const std::uint32_t count = cursor.u32();
    for (std::uint32_t index = 0; index < count && !cursor.has_failed(); ++index) {
      cursor.take(cursor.u32());
      cursor.byte();
      cursor.u32();
    }
  }

  void start(ByteCursor& cursor) {
    start_ = cursor.u32();
    // All imports are functions, or there is an obstacle already.
    if (*start_ >= header_.imports.size() + header_.function_count) {
      obstacle("has a start function that does not exist");
    }
  }

  void code(ByteCursor cursor) {
    CodeFindings findings = scan_code(cursor);
    if (findings.obstacle) obstacle(*std::move(findings.obstacle));
    drops_data_ = findings.drops_data;
  }

  void data(ByteCursor& cursor) {
    const std::uint32_t count = cursor.u32();
    if (count > limits::kModuleDataSegmentsMax) return obstacle("has too many segments of data");
    for (std::uint32_t index = 0; index < count && !cursor.has_failed(); ++index) {
      const std::uint32_t flags = cursor.u32();
      if (flags > 2 || (flags == 2 && cursor.u32() != 0)) {
        return obstacle("has data for another memory");
      }
      DataSegment segment{.is_active = flags != 1};
      if (segment.is_active) {
        if (cursor.byte() != 0x41) return obstacle("has data at a computed address");
        segment.address = static_cast<std::uint32_t>(cursor.i32());
        if (cursor.byte() != 0x0b) return obstacle("has data at a computed address");
      }
      segment.bytes = cursor.take(cursor.u32());
      segments_.push_back(segment);
    }
  }

  void place_data() {
    for (const DataSegment& segment : segments_) {
      if (!segment.is_active) continue;
      // Also for an empty segment: such a module cannot be instantiated, and its compiled form must
      // say so.
      if (segment.address + segment.bytes.size() > memory_bytes_min_) {
        return obstacle("has data that does not lie in its memory");
      }
      if (!segment.bytes.empty()) {
        pieces_.push_back({.address = segment.address, .bytes = segment.bytes});
      }
    }
    std::ranges::sort(pieces_, {}, &DataPiece::address);
    std::uint64_t end = 0;
    std::uint64_t pages = 0;  // Each piece may extend a byte to one or two pages.
    for (const DataPiece& piece : pieces_) {
      if (piece.address < end) return obstacle("has segments of data that overlap");
      const std::uint64_t pages_begun = (end + kPageBytes - 1) / kPageBytes;
      end = piece.address + piece.bytes.size();
      pages += (end + kPageBytes - 1) / kPageBytes -
               std::max<std::uint64_t>(pages_begun, piece.address / kPageBytes);
    }
    if (pages * kPageBytes > limits::kImageBytesMax) {
      obstacle("has data that is scattered too widely");
    }
  }

  const ModuleHeader& header_;
  std::uint64_t memory_bytes_min_ = 0;
  std::optional<std::string> obstacle_;
  std::vector<std::uint32_t> mutable_globals_;
  std::optional<std::uint32_t> start_;
  std::vector<DataSegment> segments_;
  std::vector<DataPiece> pieces_;
  bool has_data_count_ = false;
  bool drops_data_ = false;
  bool keeps_data_section_ = false;
};

class ExtraExports {
 public:
  void add(std::string_view name, ExternKind kind, std::uint32_t index) {
    append_text(entries_, name);
    entries_ += static_cast<char>(kind);
    append_u32(entries_, index);
    ++count_;
  }
  [[nodiscard]] std::uint32_t count() const { return count_; }

  // The contents of an export section: those of `section`, if there is one, followed by these.
  [[nodiscard]] std::string joined(const Section* section) const {
    ByteCursor cursor(section != nullptr ? section->bytes : std::span<const std::byte>());
    const std::uint32_t present = section != nullptr ? cursor.u32() : 0;
    std::string contents;
    append_u32(contents, present + count_);
    contents += text_of(cursor.take(cursor.left()));
    contents += entries_;
    return contents;
  }

 private:
  std::string entries_;
  std::uint32_t count_ = 0;
};

// All segments keep their indices, which instructions use. Formerly active ones become empty, which
// is what they are after instantiation anyway.
std::string without_active_data(const std::vector<DataSegment>& segments) {
  std::string contents;
  append_u32(contents, static_cast<std::uint32_t>(segments.size()));
  for (const DataSegment& segment : segments) {
    contents += '\x01';
    append_text(contents, segment.is_active ? std::string_view() : text_of(segment.bytes));
  }
  return contents;
}

std::string assemble(std::span<const std::byte> module, const std::vector<Section>& sections,
                     const Survey& survey, const ExtraExports& exports) {
  std::string out;
  out.reserve(module.size() + 4096);
  out += text_of(module.first(kPreambleBytes));
  bool has_exports = exports.count() == 0;
  for (const Section& section : sections) {
    if (!has_exports && section.id != kCustom && rank_of(section.id) >= rank_of(kExport)) {
      append_section(out, kExport, exports.joined(section.id == kExport ? &section : nullptr));
      has_exports = true;
      if (section.id == kExport) continue;
    }
    if (section.id == kStart) continue;
    if (section.id == kData) {
      if (survey.keeps_data_section()) {
        append_section(out, kData, without_active_data(survey.segments()));
      }
      continue;
    }
    append_section(out, section.id, text_of(section.bytes));
  }
  if (!has_exports) append_section(out, kExport, exports.joined(nullptr));
  return out;
}

}  // namespace

std::string global_export(std::size_t index) {
  return fmt::format("{}global:{}", kReservedPrefix, index);
}

Result<RewrittenModule> rewrite(std::span<const std::byte> module) {
  const ModuleHeader header = HANGAR_TRY(read_module_header(module));
  const std::vector<Section> sections = sections_of(module);
  Survey survey(header);
  for (const Section& section : sections)
    survey.section(section);
  survey.conclude();

  ExtraExports exports;
  for (std::size_t index = 0; index < survey.mutable_globals().size(); ++index)
    exports.add(global_export(index), ExternKind::Global, survey.mutable_globals()[index]);
  if (header.memory_bytes_min) exports.add(kMemoryExport, ExternKind::Memory, 0);
  if (survey.start()) exports.add(kStartExport, ExternKind::Function, *survey.start());

  RewrittenModule result;
  if (survey.obstacle()) {
    result.obstacle = std::move(survey.obstacle());
    return result;
  }
  if (header.exports.size() + exports.count() > limits::kModuleItemsMax) {
    result.obstacle = "has too many mutable globals";
    return result;
  }
  result.bytes = assemble(module, sections, survey, exports);
  if (result.bytes.size() > limits::kModuleBytesMax) {
    result = {};
    result.obstacle = "is too large to be rewritten";
    return result;
  }
  result.data = std::move(survey.pieces());
  result.global_count = survey.mutable_globals().size();
  result.has_memory = header.memory_bytes_min.has_value();
  result.has_start = survey.start().has_value();
  result.memory_bytes_min = header.memory_bytes_min.value_or(0);
  return result;
}

}  // namespace hangar::wasm
