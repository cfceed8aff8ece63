# hangar_embeds_sdk_source(target): links the source of the Go SDK into the library, as one text. `hangar flight
# from-chart` needs it: the flight that it makes is built from it, and the generator is part of it.
file(GLOB_RECURSE sdk_sources RELATIVE "${CMAKE_SOURCE_DIR}/sdk/go" CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/sdk/go/*.go" "${CMAKE_SOURCE_DIR}/sdk/go/*go.mod" "${CMAKE_SOURCE_DIR}/sdk/go/*go.sum"
  "${CMAKE_SOURCE_DIR}/sdk/go/helm/internal/fromchart/template/chart/Chart.yaml")
list(FILTER sdk_sources EXCLUDE REGEX "_test\\.go$|^hangar/|^examples/|^openapi/validation/|/testdata/")
list(SORT sdk_sources)
set(sdk_dir "${CMAKE_BINARY_DIR}/sdk_source")
file(MAKE_DIRECTORY "${sdk_dir}")
list(TRANSFORM sdk_sources PREPEND "${CMAKE_SOURCE_DIR}/sdk/go/" OUTPUT_VARIABLE sdk_source_paths)
string(REPLACE ";" "\n" sdk_source_lines "${sdk_sources}")
file(CONFIGURE OUTPUT "${sdk_dir}/files.txt" CONTENT "@sdk_source_lines@\n" @ONLY)
add_custom_command(OUTPUT "${sdk_dir}/sdk_source.txt"
  COMMAND "${CMAKE_COMMAND}" "-DROOT=${CMAKE_SOURCE_DIR}/sdk/go" "-DLIST=${sdk_dir}/files.txt" "-DOUT=${sdk_dir}/sdk_source.txt"
          -P "${CMAKE_SOURCE_DIR}/cmake/JoinFiles.cmake"
  DEPENDS ${sdk_source_paths} "${sdk_dir}/files.txt" "${CMAKE_SOURCE_DIR}/cmake/JoinFiles.cmake"
  VERBATIM)
hangar_object_with_bytes(hangar_sdk_source "${sdk_dir}/sdk_source.txt" "${sdk_dir}/sdk_source.o")

function(hangar_embeds_sdk_source target)
  hangar_links_bytes(${target} "${sdk_dir}/sdk_source.o")
endfunction()
