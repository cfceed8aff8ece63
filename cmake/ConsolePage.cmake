# hangar_embeds_console_page(target): links the page of `hangar console` into the library, as compressed files. esbuild
# (dev/setup.sh) bundles it; src/console/page/build.sh refuses a page that is too large.
set(console_page_source "${CMAKE_SOURCE_DIR}/src/console/page")
set(console_page_dir "${CMAKE_BINARY_DIR}/console_page")
file(MAKE_DIRECTORY "${console_page_dir}")
file(GLOB console_page_files CONFIGURE_DEPENDS "${console_page_source}/*")
list(FILTER console_page_files EXCLUDE REGEX "_test\\.ts$|/test\\.sh$")
add_custom_command(
  OUTPUT "${console_page_dir}/html.gz" "${console_page_dir}/js.gz" "${console_page_dir}/css.gz" "${console_page_dir}/icon.gz"
  COMMAND "${console_page_source}/build.sh" "${console_page_dir}"
  DEPENDS ${console_page_files} "${CMAKE_SOURCE_DIR}/dev/npm-packages.txt"
  VERBATIM)
foreach(file html js css icon)
  hangar_object_with_bytes("hangar_console_${file}" "${console_page_dir}/${file}.gz" "${console_page_dir}/${file}.o")
endforeach()

function(hangar_embeds_console_page target)
  foreach(file html js css icon)
    hangar_links_bytes(${target} "${console_page_dir}/${file}.o")
  endforeach()
endfunction()

# The page's own tests.
add_test(NAME unit.console_page COMMAND "${console_page_source}/test.sh" "${console_page_dir}/tests")
set_tests_properties(unit.console_page PROPERTIES LABELS unit TIMEOUT 120)
