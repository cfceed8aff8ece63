// The C boundary of wasmparser and wasm-encoder (README.md), for src/wasm only: its
// internal/module_answer.h owns and checks answers.
//
// The bytes given to a function are untrusted, and stay valid until its answer is freed: texts and
// spans of an answer are views into them, or belong to the answer. Each answer is freed once.
// Any thread. A function neither ends the process nor unwinds into its caller.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t items;  // Imports, exports, types, custom sections: of each kind.
  uint32_t functions;
  uint32_t name_bytes;
  uint32_t data_segments;
  uint64_t image_bytes;
} hangar_wasm_bounds;

typedef struct {
  const uint8_t* data;  // Not null.
  size_t size;
} hangar_wasm_text;

typedef struct {
  hangar_wasm_text module;
  hangar_wasm_text name;
  hangar_wasm_text signature;
  uint8_t kind;  // Function, table, memory, global, tag: 0 to 4.
} hangar_wasm_import;

typedef struct {
  hangar_wasm_text name;
  hangar_wasm_text signature;
  uint32_t index;
  uint8_t kind;
} hangar_wasm_export;

typedef struct {
  hangar_wasm_text name;
  hangar_wasm_text contents;
  size_t begin;  // Of the whole section, in the module.
  size_t end;
} hangar_wasm_custom;

typedef struct {
  uint64_t address;
  hangar_wasm_text bytes;
} hangar_wasm_piece;

enum {
  HANGAR_WASM_DONE = 0,
  HANGAR_WASM_INVALID = 1,
  HANGAR_WASM_LIMIT = 2,
  HANGAR_WASM_OBSTACLE = 3
};

// A function fills what it is about; the rest is zero or empty.
typedef struct {
  uint8_t status;
  bool has_memory;
  bool has_start;
  uint32_t function_count;
  uint64_t memory_bytes;
  size_t global_count;
  hangar_wasm_text message;  // Unless done.
  const hangar_wasm_import* imports;
  size_t import_count;
  const hangar_wasm_export* exports;
  size_t export_count;
  const hangar_wasm_custom* customs;
  size_t custom_count;
  const hangar_wasm_piece* pieces;
  size_t piece_count;
} hangar_wasm_answer;

// Gets what is made, in pieces. Does not throw.
typedef void (*hangar_wasm_write)(void* to, const uint8_t* data, size_t size);

// Each module has been checked to begin like one.
const hangar_wasm_answer* hangar_wasm_read_header(const uint8_t* module, size_t size,
                                                  const hangar_wasm_bounds* bounds);
const hangar_wasm_answer* hangar_wasm_customs(const uint8_t* module, size_t size,
                                              const uint8_t* prefix, size_t prefix_size,
                                              const hangar_wasm_bounds* bounds);
const hangar_wasm_answer* hangar_wasm_rewrite(const uint8_t* module, size_t size,
                                              const hangar_wasm_bounds* bounds,
                                              hangar_wasm_write write, void* to);
const hangar_wasm_answer* hangar_wasm_link(const uint8_t* module, size_t size,
                                           const uint8_t* plugin, size_t plugin_size,
                                           const hangar_wasm_bounds* bounds,
                                           hangar_wasm_write write, void* to);
void hangar_wasm_free(const hangar_wasm_answer* answer);

#ifdef __cplusplus
}
#endif
