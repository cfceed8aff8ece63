# hangar_library(kube DEPS base http SYSTEM fmt::fmt): one static library per folder of src/, and `kube_tests`
# from its *_test.cc. DEPS is the folder's whole list of allowed includes; tools/tidy.py reads the same list.
# A folder whose name contains a slash (abi/flight) is the library hangar_abi_flight.
function(hangar_library folder)
  cmake_parse_arguments(arg "" "" "DEPS;SYSTEM;TEST_DEPS" ${ARGN})
  string(REPLACE "/" "_" name "${folder}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${folder}/*.cc")
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${folder}/*_test.cc")
  list(REMOVE_ITEM sources ${tests} "${CMAKE_SOURCE_DIR}/src/${folder}/main.cc")
  if(sources)
    add_library(hangar_${name} STATIC ${sources})
    # Most of a file's compilation is its headers: together, files take two thirds of the time. Tests stay
    # apart: their helpers have names that mean something in one file only.
    set_target_properties(hangar_${name} PROPERTIES UNITY_BUILD ${HANGAR_UNITY} UNITY_BUILD_BATCH_SIZE 16)
    set(scope PUBLIC)
  else()
    add_library(hangar_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(hangar_${name} ${scope} "${CMAKE_SOURCE_DIR}/src")
  list(TRANSFORM arg_DEPS REPLACE "/" "_")
  list(TRANSFORM arg_DEPS PREPEND hangar_ OUTPUT_VARIABLE deps)
  target_link_libraries(hangar_${name} ${scope} ${deps} ${arg_SYSTEM})
  if(tests)
    add_executable(${name}_tests ${tests})
    list(TRANSFORM arg_TEST_DEPS PREPEND hangar_ OUTPUT_VARIABLE test_deps)
    target_link_libraries(${name}_tests PRIVATE hangar_${name} ${test_deps} GTest::gtest_main GTest::gmock)
    add_test(NAME unit.${name} COMMAND ${name}_tests)
    # Sanitized builds on two busy cores are some ten times slower than a quiet release build.
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 600)
  endif()
endfunction()
