# Programs without shared libraries, for small machines: `ninja static` links what the other programs are made of once more, and puts it into
# bin/static (`make static`; docs/adr/0051). libcurl is our own, since Debian's archive needs Kerberos, which Debian has as shared libraries
# only (third_party/curl/build.sh); fmt.cc and spdlog.cc stand for two that have no archive; the others are Debian's.
execute_process(
  COMMAND "${CMAKE_SOURCE_DIR}/third_party/curl/build.sh" --print-dir
  OUTPUT_VARIABLE curl_dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/third_party/curl/Cargo.lock" "${CMAKE_SOURCE_DIR}/third_party/curl/build.sh")
set(static_archives "${curl_dir}/lib/libcurl.a")
foreach(library ssl crypto nghttp2 cares seccomp z zstd yaml-cpp boost_json boost_container)
  find_library(STATIC_${library} NAMES lib${library}.a REQUIRED)
  list(APPEND static_archives "${STATIC_${library}}")
endforeach()

add_library(hangar_static_parts OBJECT EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/cmake/static/fmt.cc"
  "${CMAKE_SOURCE_DIR}/cmake/static/spdlog.cc" "${CMAKE_SOURCE_DIR}/cmake/static/no_name_services.c")
target_link_libraries(hangar_static_parts PRIVATE fmt::fmt spdlog::spdlog)
target_compile_options(hangar_static_parts PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-w>)
# No project's archive that a program does not need is linked: of an archive, the linker takes only what is called.
get_property(static_own GLOBAL PROPERTY HANGAR_ARCHIVES)
list(REMOVE_ITEM static_own hangar_testing hangar_node_fetch)

set(static_target "")
if(CMAKE_CROSSCOMPILING)
  set(static_target "--target=${CMAKE_CXX_COMPILER_TARGET}" "--sysroot=${CMAKE_SYSROOT}")
endif()

# hangar_static_program(hangar ENGINE runtime [OPTIONS ...])
function(hangar_static_program program)
  cmake_parse_arguments(arg "" "ENGINE" "OPTIONS" ${ARGN})
  set(out "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/static/${program}")
  list(TRANSFORM static_own REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE own)
  # Position-independent, so that addresses stay random; relative relocations as a bitmap take a megabyte less.
  add_custom_command(OUTPUT "${out}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/static"
    COMMAND "${CMAKE_CXX_COMPILER}" ${static_target} -static-pie -fuse-ld=lld -s -Wl,--gc-sections,--icf=safe,--pack-dyn-relocs=relr ${arg_OPTIONS}
            -o "${out}" $<TARGET_OBJECTS:${program}> $<TARGET_OBJECTS:hangar_static_parts>
            -Wl,--start-group ${own} $<TARGET_FILE:Wasmtime::${arg_ENGINE}>
            $<TARGET_FILE:Wasmparser::wasmparser> ${static_archives} -Wl,--end-group -lm
    DEPENDS ${program} ${static_own} hangar_static_parts $<TARGET_OBJECTS:hangar_static_parts> ${static_archives}
    COMMAND_EXPAND_LISTS VERBATIM)
  set_property(GLOBAL APPEND PROPERTY HANGAR_STATIC_PROGRAMS "${out}")
endfunction()
hangar_static_program(hangar ENGINE runtime)
hangar_static_program(hangar-guest ENGINE runtime OPTIONS -Wl,--wrap=open64,--wrap=fstat64)
hangar_static_program(hangar-compile ENGINE compiler)
get_property(static_programs GLOBAL PROPERTY HANGAR_STATIC_PROGRAMS)
add_custom_target(static DEPENDS ${static_programs})
