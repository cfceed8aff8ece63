# hangar_fuzz(kubeconfig DEPS kube): the fuzzer tests/fuzz/kubeconfig_fuzz.cc, built if HANGAR_FUZZ is on. As a
# test (label fuzz) it runs for ten seconds from its seeds in tests/fuzz/corpus/kubeconfig, always with the
# same seed of the random numbers: a test must not fail by chance on a change that has nothing to do with it.
# To look for something new, run the program by hand, for longer and with a directory of your own first:
# what it finds goes there.
function(hangar_fuzz name)
  if(NOT HANGAR_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  list(TRANSFORM arg_DEPS REPLACE "/" "_")
  list(TRANSFORM arg_DEPS PREPEND hangar_ OUTPUT_VARIABLE deps)
  add_executable(${name}_fuzz "${CMAKE_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cc")
  target_link_libraries(${name}_fuzz PRIVATE ${deps})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)

  set(found "${CMAKE_BINARY_DIR}/corpus/${name}")
  file(MAKE_DIRECTORY "${found}")
  set(seeds "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(NOT EXISTS "${seeds}")
    set(seeds "")
  endif()
  add_test(NAME fuzz.${name}
    COMMAND ${name}_fuzz -seed=1 -max_total_time=10 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
            "-artifact_prefix=${found}-" "${found}" ${seeds})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()
