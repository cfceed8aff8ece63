# hangar_conformance(kube DEPS kube io): one test program from tests/conformance/kube/*.cc, which start a real
# control plane (src/testing/shared_control_plane.h). DEPS are folders of src/; testing is always among them.
function(hangar_conformance name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/conformance/${name}/*.cc")
  if(NOT sources)
    return()
  endif()
  list(TRANSFORM arg_DEPS REPLACE "/" "_")
  list(TRANSFORM arg_DEPS PREPEND hangar_ OUTPUT_VARIABLE deps)
  add_executable(conformance_${name}_tests ${sources})
  target_link_libraries(conformance_${name}_tests PRIVATE ${deps} hangar_testing GTest::gtest_main GTest::gmock)
  target_compile_definitions(conformance_${name}_tests PRIVATE HANGAR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME conformance.${name} COMMAND conformance_${name}_tests)
  # A test that waits for the garbage collector or for a back-off may take half a minute by itself.
  set_tests_properties(conformance.${name} PROPERTIES LABELS conformance TIMEOUT 900)
endfunction()
