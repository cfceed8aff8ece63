# hangar-compile, and what tests of guests need: HANGAR_COMPILE_PROGRAM and HANGAR_GUESTS_DIR.
# It is linked with Wasmtime::compiler, and so with no library of ours that has Wasmtime::runtime.
file(GLOB compile_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/compile/*.cc")
list(FILTER compile_sources EXCLUDE REGEX "_test\\.cc$")
list(APPEND compile_sources "${CMAKE_SOURCE_DIR}/src/wasm/module_header.cc"
  "${CMAKE_SOURCE_DIR}/src/wasm/plugin.cc" "${CMAKE_SOURCE_DIR}/src/wasm/custom_sections.cc"
  "${CMAKE_SOURCE_DIR}/src/schematics/keys.cc" "${CMAKE_SOURCE_DIR}/src/schematics/sections.cc"
  "${CMAKE_SOURCE_DIR}/src/schematics/signature.cc")
if(HANGAR_UNITY)
  hangar_batches(hangar-compile compile_sources)
endif()
add_executable(hangar-compile ${compile_sources})
target_include_directories(hangar-compile PRIVATE "${CMAKE_SOURCE_DIR}/src")
target_link_libraries(hangar-compile PRIVATE hangar_base hangar_json hangar_sandbox Wasmparser::wasmparser
  Wasmtime::compiler)
add_executable(compile_tests "${CMAKE_SOURCE_DIR}/src/compile/sandbox_test.cc" "${CMAKE_SOURCE_DIR}/src/compile/sandbox.cc")
target_include_directories(compile_tests PRIVATE "${CMAKE_SOURCE_DIR}/src")
target_link_libraries(compile_tests PRIVATE hangar_base hangar_sandbox GTest::gtest_main)
add_test(NAME unit.compile COMMAND compile_tests)
set_tests_properties(unit.compile PROPERTIES LABELS unit TIMEOUT 120)

# tests/guests/*.wat and *.cc -> build/.../guests/*.wasm
find_program(WAT2WASM wat2wasm REQUIRED)
file(GLOB guests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/guests/*.wat")
set(guests_dir "${CMAKE_BINARY_DIR}/guests")
file(MAKE_DIRECTORY "${guests_dir}")
set(guest_modules)
foreach(guest ${guests})
  get_filename_component(name "${guest}" NAME_WE)
  add_custom_command(OUTPUT "${guests_dir}/${name}.wasm"
    COMMAND "${WAT2WASM}" --debug-names "${guest}" -o "${guests_dir}/${name}.wasm"
    DEPENDS "${guest}" VERBATIM)
  list(APPEND guest_modules "${guests_dir}/${name}.wasm")
endforeach()
# Programs in C++ that live from call to call. Without exceptions: they do not link on wasm32-wasi.
file(GLOB guests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/guests/*.cc")
foreach(guest ${guests})
  get_filename_component(name "${guest}" NAME_WE)
  add_custom_command(OUTPUT "${guests_dir}/${name}.wasm"
    COMMAND clang++-19 --target=wasm32-wasi -std=c++20 -O1 -Wall -Wextra -Werror -fno-exceptions -fno-rtti
            -nostdinc++ -isystem /usr/lib/llvm-19/include/wasm32-wasi/c++/v1
            -mexec-model=reactor -Wl,--strip-debug "${guest}" -o "${guests_dir}/${name}.wasm"
    DEPENDS "${guest}" VERBATIM)
  list(APPEND guest_modules "${guests_dir}/${name}.wasm")
endforeach()
add_custom_target(guests DEPENDS ${guest_modules})

# Tests that run guests.
function(hangar_test_runs_guests target)
  if(NOT TARGET ${target})
    return()
  endif()
  add_dependencies(${target} hangar-compile guests)
  target_compile_definitions(${target} PRIVATE
    HANGAR_COMPILE_PROGRAM="$<TARGET_FILE:hangar-compile>" HANGAR_GUESTS_DIR="${CMAKE_BINARY_DIR}/guests")
endfunction()

# `ninja runtime_bench sleep_bench own_writes_bench`, then run them; see bench/runtime/README.md.
function(hangar_runtime_bench)
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    return()
  endif()
  foreach(name runtime_bench sleep_bench)
    add_executable(${name} EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/bench/runtime/${name}.cc")
    target_link_libraries(${name} PRIVATE hangar_domains benchmark::benchmark)
    hangar_test_runs_guests(${name})
    add_dependencies(${name} hangar-guest)
    target_compile_definitions(${name} PRIVATE HANGAR_GUEST_PROGRAM="$<TARGET_FILE:hangar-guest>")
  endforeach()
  add_executable(own_writes_bench EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/bench/runtime/own_writes_bench.cc")
  target_link_libraries(own_writes_bench PRIVATE hangar_gateway benchmark::benchmark)
endfunction()

# Tests that run the Go programs of tests/guests/flights: HANGAR_FLIGHTS_DIR.
add_custom_target(test_flights COMMAND "${CMAKE_SOURCE_DIR}/examples/build.sh" "${CMAKE_BINARY_DIR}/flights" tests)
function(hangar_test_runs_flights target)
  if(NOT TARGET ${target})
    return()
  endif()
  hangar_test_runs_guests(${target})
  add_dependencies(${target} test_flights)
  target_compile_definitions(${target} PRIVATE HANGAR_FLIGHTS_DIR="${CMAKE_BINARY_DIR}/flights")
endfunction()

# Tests that run the state machines of tests/guests/machines and examples: HANGAR_MACHINES_DIR.
add_custom_target(test_machines COMMAND "${CMAKE_SOURCE_DIR}/examples/build.sh" "${CMAKE_BINARY_DIR}/machines" machines)
function(hangar_test_runs_machines target)
  if(NOT TARGET ${target})
    return()
  endif()
  hangar_test_runs_guests(${target})
  add_dependencies(${target} test_machines)
  target_compile_definitions(${target} PRIVATE HANGAR_MACHINES_DIR="${CMAKE_BINARY_DIR}/machines")
endfunction()
