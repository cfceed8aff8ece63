# hangar_embeds_machine_runtime(target): links the state machine runtime into the library, as bytes: QuickJS
# (third_party/quickjs/build.sh, `make deps`) with our prelude, for wasm32-wasi.
execute_process(
  COMMAND "${CMAKE_SOURCE_DIR}/third_party/quickjs/build.sh" --print-dir
  OUTPUT_VARIABLE quickjs_dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS "${quickjs_dir}/libquickjs.a")
  message(FATAL_ERROR "QuickJS is not built: ${quickjs_dir} does not exist.\nRun `make deps` (once, takes half a minute).")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/third_party/quickjs/Cargo.lock" "${CMAKE_SOURCE_DIR}/third_party/quickjs/build.sh")

set(machine_runtime_source "${CMAKE_SOURCE_DIR}/third_party/quickjs")
set(machine_runtime_dir "${CMAKE_BINARY_DIR}/machine_runtime")
set(machine_runtime_object "${machine_runtime_dir}/machine_runtime.o")
file(MAKE_DIRECTORY "${machine_runtime_dir}")
add_custom_command(OUTPUT "${machine_runtime_dir}/machine_runtime.wasm"
  COMMAND clang-19 --target=wasm32-wasi -mexec-model=reactor -O2 -std=gnu2x -Wall -Wextra -Werror -mbulk-memory
          -isystem "${quickjs_dir}/source" "--embed-dir=${machine_runtime_source}"
          "${machine_runtime_source}/machine_runtime.c" "${quickjs_dir}/libquickjs.a"
          -o "${machine_runtime_dir}/machine_runtime.wasm"
          -Wl,--gc-sections,--strip-all,-z,stack-size=1048576,--stack-first -lwasi-emulated-signal
  DEPENDS "${machine_runtime_source}/machine_runtime.c" "${machine_runtime_source}/machine_prelude.js"
          "${machine_runtime_source}/machine_xstate4.js" "${machine_runtime_source}/machine_xstate5.js" "${quickjs_dir}/libquickjs.a"
  VERBATIM)
hangar_object_with_bytes(hangar_machine_runtime "${machine_runtime_dir}/machine_runtime.wasm" "${machine_runtime_object}")

function(hangar_embeds_machine_runtime target)
  hangar_links_bytes(${target} "${machine_runtime_object}")
endfunction()
