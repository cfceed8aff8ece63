#include "wasm/snapshot/code_scan.h"

#include "wasm/internal/byte_cursor.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::wasm {

namespace {

using internal::ByteCursor;

// What one instruction means for snapshots.
enum class Verdict : std::uint8_t { Fine, DropsData, WritesTable, DropsElements, Unknown };

// Code consists mostly of memory accesses, so instruction() tests for them first.
constexpr std::uint8_t kFirstMemoryAccess = 0x28;
constexpr std::uint8_t kLastMemoryAccess = 0x3e;
constexpr std::uint8_t kFirstNumeric = 0x45;
constexpr std::uint8_t kLastNumeric = 0xc4;

class Scan {
 public:
  explicit Scan(ByteCursor code) : cursor_(code) {}

  CodeFindings run() {
    const std::uint32_t functions = cursor_.u32();
    for (std::uint32_t index = 0; index < functions && !is_over(); ++index)
      function();
    if (cursor_.has_failed() && !findings_.obstacle) not_understood("code that ends early");
    return std::move(findings_);
  }

  static bool skip(ByteCursor& code) {
    return Scan(code).instruction(code) != Verdict::Unknown && !code.has_failed();
  }

 private:
  [[nodiscard]] bool is_over() const { return cursor_.has_failed() || findings_.obstacle; }

  void function() {
    const std::uint32_t size = cursor_.u32();
    const std::uint64_t offset = cursor_.offset();
    ByteCursor body(cursor_.take(size), offset);
    const std::uint32_t locals = body.u32();
    for (std::uint32_t index = 0; index < locals && !body.has_failed(); ++index) {
      body.u32();
      if (!is_plain_value_type(body.byte()))
        return not_understood("a local variable of another type");
    }
    while (!body.at_end() && !body.has_failed()) {
      const std::uint64_t place = body.offset();
      const Verdict verdict = instruction(body);
      if (verdict == Verdict::Fine) continue;
      if (verdict == Verdict::DropsData) {
        findings_.drops_data = true;
        continue;
      }
      findings_.obstacle = text_of(verdict, place);
      return;
    }
    if (body.has_failed()) not_understood("a function that ends early");
  }

  Verdict instruction(ByteCursor& body) {
    const std::uint8_t code = body.byte();
    if (code >= kFirstMemoryAccess && code <= kLastMemoryAccess) return memory_access(body);
    if (code >= kFirstNumeric && code <= kLastNumeric) return Verdict::Fine;
    switch (code) {
      case 0x00:  // unreachable
      case 0x01:  // nop
      case 0x05:  // else
      case 0x0b:  // end
      case 0x0f:  // return
      case 0x1a:  // drop
      case 0x1b:  // select
      case 0xd1:  // ref.is_null
        return Verdict::Fine;
      case 0x02:  // block
      case 0x03:  // loop
      case 0x04:  // if
      case 0xd0:  // ref.null
        body.i33();
        return Verdict::Fine;
      case 0x0c:  // br
      case 0x0d:  // br_if
      case 0x10:  // call
      case 0x12:  // return_call
      case 0x20:  // local.get
      case 0x21:  // local.set
      case 0x22:  // local.tee
      case 0x23:  // global.get
      case 0x24:  // global.set
      case 0x25:  // table.get
      case 0x3f:  // memory.size
      case 0x40:  // memory.grow
      case 0xd2:  // ref.func
        body.u32();
        return Verdict::Fine;
      case 0x0e: {  // br_table
        const std::uint32_t targets = body.u32();
        for (std::uint32_t index = 0; index < targets && !body.has_failed(); ++index)
          body.u32();
        body.u32();
        return Verdict::Fine;
      }
      case 0x11:  // call_indirect
      case 0x13:  // return_call_indirect
        body.u32();
        body.u32();
        return Verdict::Fine;
      case 0x1c: {  // select with types
        const std::uint32_t types = body.u32();
        bool is_known = true;
        for (std::uint32_t index = 0; index < types && !body.has_failed(); ++index)
          is_known = is_plain_value_type(body.byte()) && is_known;
        return is_known ? Verdict::Fine : Verdict::Unknown;
      }
      case 0x26:
        last_name_ = "table.set";
        return Verdict::WritesTable;
      case 0x41:
        body.i32();
        return Verdict::Fine;
      case 0x42:
        body.i64();
        return Verdict::Fine;
      case 0x43:
        body.take(4);
        return Verdict::Fine;
      case 0x44:
        body.take(8);
        return Verdict::Fine;
      case 0xfc:
        return bulk(body);
      case 0xfd:
        return vector(body);
      case 0xfe:
        return atomic(body);
      default:
        return Verdict::Unknown;  // Such as garbage collection, exceptions, typed references.
    }
  }

  static Verdict memory_access(ByteCursor& body) {
    const std::uint32_t flags = body.u32();
    if ((flags & 0x40U) != 0) body.u32();  // The index of the memory.
    body.u64();
    return Verdict::Fine;
  }

  Verdict bulk(ByteCursor& body) {
    const std::uint32_t code = body.u32();
    switch (code) {
      case 8:   // memory.init
      case 10:  // memory.copy
        body.u32();
        body.u32();
        return Verdict::Fine;
      case 9:
        body.u32();
        return Verdict::DropsData;
      case 11:  // memory.fill
      case 16:  // table.size
        body.u32();
        return Verdict::Fine;
      case 12:
        last_name_ = "table.init";
        return Verdict::WritesTable;
      case 13:
        return Verdict::DropsElements;
      case 14:
        last_name_ = "table.copy";
        return Verdict::WritesTable;
      case 15:
        last_name_ = "table.grow";
        return Verdict::WritesTable;
      case 17:
        last_name_ = "table.fill";
        return Verdict::WritesTable;
      default:
        return code < 8 ? Verdict::Fine : Verdict::Unknown;  // Saturating conversions.
    }
  }

  static Verdict vector(ByteCursor& body) {
    constexpr std::uint32_t kLastRelaxed = 0x113;
    const std::uint32_t code = body.u32();
    if (code <= 11 || code == 92 || code == 93) return memory_access(body);
    if (code >= 84 && code <= 91) {  // A lane of memory.
      memory_access(body);
      body.byte();
      return Verdict::Fine;
    }
    if (code == 12 || code == 13) {  // A constant; a shuffle.
      body.take(16);
      return Verdict::Fine;
    }
    if (code >= 21 && code <= 34) {  // A lane of a value.
      body.byte();
      return Verdict::Fine;
    }
    return code <= kLastRelaxed ? Verdict::Fine : Verdict::Unknown;
  }

  static Verdict atomic(ByteCursor& body) {
    const std::uint32_t code = body.u32();
    if (code == 3) {  // fence
      body.byte();
      return Verdict::Fine;
    }
    return code <= 0x4e ? memory_access(body) : Verdict::Unknown;
  }

  [[nodiscard]] std::string text_of(Verdict verdict, std::uint64_t offset) const {
    switch (verdict) {
      case Verdict::WritesTable:
        return fmt::format("writes to a table ({})", last_name_);
      case Verdict::DropsElements:
        return "drops a segment of elements (elem.drop)";
      default:
        return fmt::format("has an instruction at offset {} that is not known here", offset);
    }
  }
  void not_understood(std::string_view what) { findings_.obstacle = fmt::format("has {}", what); }

  ByteCursor cursor_;
  CodeFindings findings_;
  std::string_view last_name_;
};

}  // namespace

CodeFindings scan_code(ByteCursor code) {
  return Scan(code).run();
}

bool skip_instruction(ByteCursor& code) {
  return Scan::skip(code);
}

bool is_plain_value_type(std::uint8_t code) {
  return (code >= 0x7b && code <= 0x7f) || code == 0x70 || code == 0x6f;
}

bool skip_constant_expression(ByteCursor& cursor) {
  while (!cursor.has_failed()) {
    switch (cursor.byte()) {
      case 0x0b:
        return !cursor.has_failed();
      case 0x23:  // global.get
      case 0xd2:  // ref.func
        cursor.u32();
        break;
      case 0x41:
        cursor.i32();
        break;
      case 0x42:
        cursor.i64();
        break;
      case 0x43:
        cursor.take(4);
        break;
      case 0x44:
        cursor.take(8);
        break;
      case 0x6a:  // i32.add, sub, mul
      case 0x6b:
      case 0x6c:
      case 0x7c:  // i64.add, sub, mul
      case 0x7d:
      case 0x7e:
        break;
      case 0xd0:  // ref.null
        cursor.i33();
        break;
      case 0xfd:
        if (cursor.u32() != 12) return false;  // v128.const
        cursor.take(16);
        break;
      default:
        return false;
    }
  }
  return false;
}

}  // namespace hangar::wasm
