# Wasmtime::runtime and Wasmtime::compiler: wasmtime's C API without and with a compiler. Only one of
# them may be linked into a program. third_party/wasmtime/build.sh builds both (`make deps`).

if(NOT HANGAR_WASMTIME_DIR)
  execute_process(
    COMMAND "${CMAKE_SOURCE_DIR}/third_party/wasmtime/build.sh" --print-dir
    OUTPUT_VARIABLE wasmtime_dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
else()
  set(wasmtime_dir "${HANGAR_WASMTIME_DIR}")
endif()
# Not stored unless given: the directory's name changes with the pinned version.
set(HANGAR_WASMTIME_DIR "" CACHE PATH "what third_party/wasmtime/build.sh built (empty: in the cache)")

if(NOT EXISTS "${wasmtime_dir}/lib")
  message(FATAL_ERROR "wasmtime is not built: ${wasmtime_dir} does not exist.\nRun `make deps` (once, takes minutes).")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/third_party/wasmtime/Cargo.lock" "${CMAKE_SOURCE_DIR}/third_party/wasmtime/build.sh")

find_package(Threads REQUIRED)
foreach(flavour runtime compiler)
  add_library(Wasmtime::${flavour} STATIC IMPORTED GLOBAL)
  set_target_properties(Wasmtime::${flavour} PROPERTIES
    IMPORTED_LOCATION "${wasmtime_dir}/lib/libhangar_wasmtime_${flavour}.a"
    # The headers fit the library: wasmtime/conf.h lists its features, and sizes depend on them.
    INTERFACE_INCLUDE_DIRECTORIES "${wasmtime_dir}/include-${flavour}"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${wasmtime_dir}/include-${flavour}")
  # Most of the library is not reached from a program; without gc-sections it is linked all the same.
  target_link_options(Wasmtime::${flavour} INTERFACE LINKER:--gc-sections)
  target_link_libraries(Wasmtime::${flavour} INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
endforeach()
