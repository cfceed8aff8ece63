# hangar-guest: the engine, without a compiler and without a credential. For tests there are two more:
# hangar-guest-probe, whose guests may make any system call, and hangar-guest-unprivileged, which is nobody's.
function(hangar_guest_program target main)
  add_executable(${target} "${main}")
  target_link_libraries(${target} PRIVATE hangar_guest)
  # wasmtime maps native code by a path: src/guest/descriptors_only.cc.
  # Symbols are found when the zygote starts, and not by each of its processes again.
  target_link_options(${target} PRIVATE LINKER:--wrap=open64 LINKER:--wrap=fstat64 LINKER:-z,now)
endfunction()
hangar_guest_program(hangar-guest "${CMAKE_SOURCE_DIR}/src/guest/main.cc")
hangar_guest_program(hangar-guest-probe "${CMAKE_SOURCE_DIR}/tests/guest_probe/main.cc")
hangar_guest_program(hangar-guest-unprivileged "${CMAKE_SOURCE_DIR}/tests/guest_probe/unprivileged.cc")
target_link_options(hangar-guest-unprivileged PRIVATE LINKER:--wrap=fork)

add_dependencies(domains_tests hangar-guest hangar-guest-probe hangar-guest-unprivileged)
target_compile_definitions(domains_tests PRIVATE HANGAR_GUEST_PROGRAM="$<TARGET_FILE:hangar-guest>"
  HANGAR_GUEST_PROBE_PROGRAM="$<TARGET_FILE:hangar-guest-probe>"
  HANGAR_GUEST_UNPRIVILEGED_PROGRAM="$<TARGET_FILE:hangar-guest-unprivileged>")
hangar_test_runs_machines(domains_tests)
