# hangar_embeds_lua(target): links the Lua interpreter (third_party/lua/build.sh, `make deps`) into the library, as bytes: a
# WebAssembly module, compressed.
execute_process(
  COMMAND "${CMAKE_SOURCE_DIR}/third_party/lua/build.sh" --print-dir
  OUTPUT_VARIABLE lua_dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS "${lua_dir}/lua.wasm.z")
  message(FATAL_ERROR "The Lua interpreter is not built: ${lua_dir} does not exist.\nRun `make deps` (once, takes half a minute).")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/third_party/lua/main.go" "${CMAKE_SOURCE_DIR}/third_party/lua/entry_wasip1.go" "${CMAKE_SOURCE_DIR}/third_party/lua/go.mod"
  "${CMAKE_SOURCE_DIR}/third_party/lua/go.sum" "${CMAKE_SOURCE_DIR}/third_party/lua/build.sh")

file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/lua")
hangar_object_with_bytes(hangar_lua "${lua_dir}/lua.wasm.z" "${CMAKE_BINARY_DIR}/lua/lua.o")

function(hangar_embeds_lua target)
  hangar_links_bytes(${target} "${CMAKE_BINARY_DIR}/lua/lua.o")
endfunction()
