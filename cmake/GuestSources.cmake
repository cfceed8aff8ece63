# hangar_embeds_guest_sources(target): the Go files that `hangar build go` adds to a program, as texts in the
# library: package guest of sdk/go/hangar, and manager_options.go.
function(hangar_embeds_guest_sources target)
  set(sdk "${CMAKE_SOURCE_DIR}/sdk/go/hangar")
  file(GLOB files CONFIGURE_DEPENDS "${sdk}/guest/*.go" "${sdk}/guest/*.s" "${sdk}/guest/*.c")
  list(FILTER files EXCLUDE REGEX "_test\\.go$")
  list(SORT files)
  set(entries "")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    get_filename_component(name "${file}" NAME)
    string(APPEND entries "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
  endforeach()
  file(READ "${sdk}/manager_options.go" manager_options)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files} "${sdk}/manager_options.go")
  set(generated "${CMAKE_BINARY_DIR}/go_build/guest_texts.cc")
  file(WRITE "${generated}.new"
"// Made by cmake/GuestSources.cmake.
#include \"go_build/guest_sources.h\"

#include <array>
#include <span>
#include <string_view>

namespace hangar::go_build {

namespace {

constexpr GuestSource kSources[] = {
${entries}};
constexpr std::string_view kManagerOptions = R\"~~~(${manager_options})~~~\";

}  // namespace

std::span<const GuestSource> guest_sources() { return kSources; }
std::string_view manager_options_source() { return kManagerOptions; }

}  // namespace hangar::go_build
")
  # Only if it is another text: what depends on it is compiled again otherwise.
  configure_file("${generated}.new" "${generated}" COPYONLY)
  target_sources(${target} PRIVATE "${generated}")
endfunction()
