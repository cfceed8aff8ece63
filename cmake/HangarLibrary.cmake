# hangar_batches(kube sources): the list of files becomes a list of files that include up to 16 of them each. Their
# includes are relative, so that ccache finds what another clone has compiled; those of CMake's UNITY_BUILD are not.
# The parameter must not have the name of the caller's list, which it would hide.
function(hangar_batches name list_name)
  set(directory "${CMAKE_BINARY_DIR}/unity")
  set(batches "")
  set(includes "")
  set(in_batch 0)
  foreach(file IN LISTS ${list_name} ITEMS "")
    if(file)
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${directory}")
      string(APPEND includes "#include \"${file}\"\n")
      math(EXPR in_batch "${in_batch} + 1")
    endif()
    # The empty item is the end.
    if(includes AND (in_batch EQUAL 16 OR NOT file))
      list(LENGTH batches number)
      file(CONFIGURE OUTPUT "${directory}/${name}_${number}.cc" CONTENT "${includes}" @ONLY)
      list(APPEND batches "${directory}/${name}_${number}.cc")
      set(includes "")
      set(in_batch 0)
    endif()
  endforeach()
  set(${list_name} "${batches}" PARENT_SCOPE)
endfunction()

# hangar_library(kube DEPS base http SYSTEM fmt::fmt): one static library per folder of src/, and `kube_tests`
# from its *_test.cc. DEPS is the folder's whole list of allowed includes; tools/tidy.py reads the same list.
# A folder whose name contains a slash (abi/flight) is the library hangar_abi_flight. Under ThreadSanitizer the folders
# of HANGAR_SINGLE_THREADED have no tests.
function(hangar_library folder)
  cmake_parse_arguments(arg "" "" "DEPS;SYSTEM;TEST_DEPS" ${ARGN})
  string(REPLACE "/" "_" name "${folder}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${folder}/*.cc")
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${folder}/*_test.cc")
  list(REMOVE_ITEM sources ${tests} "${CMAKE_SOURCE_DIR}/src/${folder}/main.cc")
  if(sources)
    # Most of a file's compilation is its headers: together, files take two thirds of the time. Tests stay
    # apart: their helpers have names that mean something in one file only.
    if(HANGAR_UNITY)
      hangar_batches(${name} sources)
    endif()
    add_library(hangar_${name} STATIC ${sources})
    set_property(GLOBAL APPEND PROPERTY HANGAR_ARCHIVES hangar_${name})
    set(scope PUBLIC)
  else()
    add_library(hangar_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(hangar_${name} ${scope} "${CMAKE_SOURCE_DIR}/src")
  list(TRANSFORM arg_DEPS REPLACE "/" "_")
  list(TRANSFORM arg_DEPS PREPEND hangar_ OUTPUT_VARIABLE deps)
  target_link_libraries(hangar_${name} ${scope} ${deps} ${arg_SYSTEM})
  if(HANGAR_SANITIZE STREQUAL "thread" AND folder IN_LIST HANGAR_SINGLE_THREADED)
    set(tests "")
  endif()
  if(tests)
    add_executable(${name}_tests ${tests})
    list(TRANSFORM arg_TEST_DEPS PREPEND hangar_ OUTPUT_VARIABLE test_deps)
    target_link_libraries(${name}_tests PRIVATE hangar_${name} ${test_deps} GTest::gtest_main GTest::gmock)
    add_test(NAME unit.${name} COMMAND ${name}_tests)
    # Sanitized builds on two busy cores are some ten times slower than a quiet release build.
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 1800)
  endif()
endfunction()

# hangar_walls(sandbox "Landlock.*"): tests of sandbox_tests that no sanitized build has, because such a build has no
# sandbox. Where the unit tests run in sanitized builds only, `tools/ci.sh` runs these in an ordinary one: `ninja walls`
# builds their programs. tools/tidy.py looks that each such test is among them.
function(hangar_walls name filter)
  if(HANGAR_SANITIZE)
    return()
  endif()
  add_dependencies(walls ${name}_tests)
  add_test(NAME walls.${name} COMMAND ${name}_tests "--gtest_filter=${filter}")
  set_tests_properties(walls.${name} PROPERTIES LABELS walls TIMEOUT 600)
endfunction()
add_custom_target(walls)
