# hangar-node: one static program, for images with nothing else in them and for nodes of any distribution.
#
# What it needs of base and json is compiled once more, because Debian has {fmt} as a shared library only:
# here it comes as headers. A sanitized build is not static: sanitizers cannot be.
file(GLOB node_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/node_install/*.cc")
list(FILTER node_sources EXCLUDE REGEX "_test\\.cc$")
list(APPEND node_sources
  "${CMAKE_SOURCE_DIR}/src/base/digest.cc" "${CMAKE_SOURCE_DIR}/src/base/result.cc" "${CMAKE_SOURCE_DIR}/src/base/utf8.cc" "${CMAKE_SOURCE_DIR}/src/json/value.cc")
if(HANGAR_UNITY)
  hangar_batches(hangar-node node_sources)
endif()
add_executable(hangar-node ${node_sources})
target_include_directories(hangar-node PRIVATE "${CMAKE_SOURCE_DIR}/src")
target_compile_definitions(hangar-node PRIVATE HANGAR_VERSION="${PROJECT_VERSION}")
if(HANGAR_SANITIZE)
  target_link_libraries(hangar-node PRIVATE fmt::fmt-header-only Boost::json OpenSSL::Crypto nghttp2 CLI11::CLI11)
else()
  foreach(library boost_json boost_container crypto nghttp2)
    find_library(NODE_${library} NAMES lib${library}.a REQUIRED)
    list(APPEND node_libraries "${NODE_${library}}")
  endforeach()
  target_link_libraries(hangar-node PRIVATE fmt::fmt-header-only Boost::headers CLI11::CLI11 ${node_libraries})
  target_link_options(hangar-node PRIVATE -static -Wl,--icf=safe)
endif()

# What downloads runtimes for it: without power over the node, and so with libraries.
add_executable(hangar-node-fetch "${CMAKE_SOURCE_DIR}/src/node_fetch/main.cc")
target_link_libraries(hangar-node-fetch PRIVATE hangar_node_fetch)
