#include "wasm/module.h"

#include "base/limits.h"
#include "wasm/internal/usual_pages.h"
#include "wasm/module_header.h"

#include <sys/mman.h>
#include <wasm.h>
#include <wasmtime/memory.h>
#include <wasmtime/module.h>
#include <wasmtime/types/val.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::wasm {

namespace {

std::string text_of(const wasm_name_t* name) {
  return {name->data, name->size};
}

// Not with wasm_valtype_kind, which aborts the process for a v128.
std::string_view name_of(const wasm_valtype_t* type) {
  wasmtime_valtype_t value{};
  wasmtime_valtype_new(type, &value);
  const wasmtime_valtype_kind_t kind = value.kind;
  const bool is_function = kind == WASMTIME_VALTYPE_KIND_REF &&
                           value.reftype.heaptype.kind == WASMTIME_HEAPTYPE_KIND_FUNC;
  wasmtime_valtype_delete(&value);
  switch (kind) {
    case WASMTIME_VALTYPE_KIND_I32:
      return "i32";
    case WASMTIME_VALTYPE_KIND_I64:
      return "i64";
    case WASMTIME_VALTYPE_KIND_F32:
      return "f32";
    case WASMTIME_VALTYPE_KIND_F64:
      return "f64";
    case WASMTIME_VALTYPE_KIND_V128:
      return "v128";
    default:
      return is_function ? "funcref" : "externref";
  }
}

// A long list is not written out, as in the answers of third_party/wasmparser: ten thousand exports
// may share one type of a thousand values.
std::string list(const wasm_valtype_vec_t* types) {
  constexpr std::size_t kWrittenOut = 16;
  std::string text = "(";
  for (std::size_t index = 0; index < std::min(types->size, kWrittenOut); ++index) {
    if (index > 0) text += ", ";
    text += name_of(types->data[index]);
  }
  return text + (types->size > kWrittenOut ? ", ...)" : ")");
}

// In the form of module_header.cc.
std::string signature_of(const wasm_externtype_t* type) {
  const wasm_functype_t* const function = wasm_externtype_as_functype_const(type);
  if (function == nullptr) return {};
  return list(wasm_functype_params(function)) + " -> " + list(wasm_functype_results(function));
}

ExternKind kind_of(const wasm_externtype_t* type) {
  switch (wasm_externtype_kind(type)) {
    case WASM_EXTERN_FUNC:
      return ExternKind::Function;
    case WASM_EXTERN_TABLE:
      return ExternKind::Table;
    case WASM_EXTERN_MEMORY:
      return ExternKind::Memory;
    case WASM_EXTERN_GLOBAL:
      return ExternKind::Global;
    default:
      return ExternKind::Tag;
  }
}

}  // namespace

Module::Module(Parts parts)
    : parts_(std::move(parts)),
      usual_pages_(parts_.allocation == Allocation::Sleepable
                       ? nullptr
                       : std::make_unique<internal::UsualPages>()) {
  wasm_exporttype_vec_t exports{};
  wasmtime_module_exports(parts_.code, &exports);
  exports_.reserve(exports.size);
  for (std::size_t index = 0; index < exports.size; ++index) {
    const wasm_exporttype_t* const exported = exports.data[index];
    const wasm_externtype_t* const type = wasm_exporttype_type(exported);
    exports_.push_back({.name = text_of(wasm_exporttype_name(exported)),
                        .kind = kind_of(type),
                        .signature = signature_of(type)});
    if (const wasm_memorytype_t* const memory = wasm_externtype_as_memorytype_const(type);
        memory != nullptr) {
      memory_bytes_min_ = wasmtime_memorytype_minimum(memory) * 64 * limits::kKiB;
    }
    // With its type goes an object for each value of it, of which many exports have many.
    wasm_exporttype_delete(std::exchange(exports.data[index], nullptr));
  }
  wasm_exporttype_vec_delete(&exports);

  void* start = nullptr;
  void* end = nullptr;
  wasmtime_module_image_range(parts_.code, &start, &end);
  code_bytes_ = reinterpret_cast<std::uintptr_t>(end) - reinterpret_cast<std::uintptr_t>(start);
}

void Module::release_pages() const {
  void* start = nullptr;
  void* end = nullptr;
  wasmtime_module_image_range(parts_.code, &start, &end);
  // Nothing is ever written to the mapping (wasmtime refuses code with relocations), so the page
  // cache has all of it. Not MADV_PAGEOUT: that skips pages not yet written to disk, which are all
  // pages of a module that was just compiled, and also removes the others from the page cache.
  ::madvise(start, code_bytes_, MADV_DONTNEED);
}

Module::~Module() {
  wasmtime_module_delete(parts_.code);
}

std::vector<Import> Module::imports() const {
  wasm_importtype_vec_t types{};
  wasmtime_module_imports(parts_.code, &types);
  std::vector<Import> imports;
  imports.reserve(types.size);
  for (std::size_t index = 0; index < types.size; ++index) {
    const wasm_importtype_t* const import = types.data[index];
    const wasm_externtype_t* const type = wasm_importtype_type(import);
    imports.push_back({.module = text_of(wasm_importtype_module(import)),
                       .name = text_of(wasm_importtype_name(import)),
                       .kind = kind_of(type),
                       .signature = signature_of(type)});
    wasm_importtype_delete(std::exchange(types.data[index], nullptr));
  }
  wasm_importtype_vec_delete(&types);
  return imports;
}

const Export* Module::find_export(std::string_view name) const {
  return wasm::find_export(exports_, name);
}

}  // namespace hangar::wasm
