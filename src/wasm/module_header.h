// What a WebAssembly module declares, read before anything is compiled.
//
// Modules come from strangers. This is the first code that reads their bytes, in the host and in
// hangar-compile alike; wasmparser (third_party/wasmparser) does it, in Rust without unsafe code.
// Bytes that are not a core module, are truncated or contradict themselves are refused, with an
// error that a user can act on ("is a component, not a core module"). This is not a validator; the
// compiler is. Work and memory are bounded by the module's size.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::wasm {

enum class ExternKind : std::uint8_t { Function, Table, Memory, Global, Tag };

// "function": the kind as messages name it.
[[nodiscard]] std::string_view name_of(ExternKind kind);

struct Import {
  std::string module;
  std::string name;
  ExternKind kind = ExternKind::Function;
  std::string signature;  // Only of functions, as wat writes it: "(i32, i64) -> i64".

  friend bool operator==(const Import&, const Import&) = default;
};

// For messages: the first five with their signatures, "env.a(i32), env.b() -> (i64)".
[[nodiscard]] std::string names_of(std::span<const Import> imports);

struct Export {
  std::string name;
  ExternKind kind = ExternKind::Function;
  std::string signature;
  std::uint32_t index = 0;  // Among the module's functions, memories, ..., imported ones first.

  friend bool operator==(const Export&, const Export&) = default;
};

// Data that tools leave in a module, such as its names or a signature.
struct CustomSection {
  std::string name;
  std::span<const std::byte> bytes;  // A view into the module's bytes.
};

struct ModuleHeader {
  std::vector<Import> imports;
  std::vector<Export> exports;
  std::vector<CustomSection> custom_sections;
  // Of the module's memory, whether defined or imported; std::nullopt when it has none.
  std::optional<std::uint64_t> memory_bytes_min;
  std::uint32_t function_count = 0;  // Without imported functions.
  bool has_start = false;
};

// InvalidInput names the mistake and its place; LimitExceeded when a count exceeds base/limits.h.
// The spans of the result are views into `module`. Any thread.
[[nodiscard]] Result<ModuleHeader> read_module_header(std::span<const std::byte> module);

[[nodiscard]] const Export* find_export(std::span<const Export> exports, std::string_view name);

}  // namespace hangar::wasm
