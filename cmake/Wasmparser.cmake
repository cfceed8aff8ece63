# Wasmparser::wasmparser: wasmparser and wasm-encoder behind a C boundary (third_party/wasmparser/build.sh, `make deps`).
execute_process(
  COMMAND "${CMAKE_SOURCE_DIR}/third_party/wasmparser/build.sh" --print-dir
  OUTPUT_VARIABLE wasmparser_dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS "${wasmparser_dir}")
  message(FATAL_ERROR "wasmparser is not built: ${wasmparser_dir} does not exist.\nRun `make deps` (once, takes minutes).")
endif()
file(GLOB wasmparser_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/third_party/wasmparser/src/*.rs")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${wasmparser_sources}
  "${CMAKE_SOURCE_DIR}/third_party/wasmparser/Cargo.toml" "${CMAKE_SOURCE_DIR}/third_party/wasmparser/Cargo.lock"
  "${CMAKE_SOURCE_DIR}/third_party/wasmparser/build.sh")

add_library(Wasmparser::wasmparser STATIC IMPORTED GLOBAL)
set_target_properties(Wasmparser::wasmparser PROPERTIES
  IMPORTED_LOCATION "${wasmparser_dir}/libhangar_wasmparser.a"
  INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_SOURCE_DIR}/third_party/wasmparser/include"
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${CMAKE_SOURCE_DIR}/third_party/wasmparser/include")
# Most of the standard library in it is not reached.
target_link_options(Wasmparser::wasmparser INTERFACE LINKER:--gc-sections)
