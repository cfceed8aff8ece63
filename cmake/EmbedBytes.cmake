# hangar_object_with_bytes(NAME FILE OBJECT): a command that makes OBJECT with the bytes of FILE between the symbols
# NAME_begin and NAME_end, for whatever processor this is.
function(hangar_object_with_bytes name file object)
  cmake_path(REPLACE_EXTENSION object ".S" OUTPUT_VARIABLE source)
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT
[[  .section .rodata.@name@,"a"
  .globl @name@_begin
  .globl @name@_end
  .balign 16
@name@_begin:
  .incbin "@file@"
@name@_end:
  .section .note.GNU-stack,"",%progbits
]])
  add_custom_command(OUTPUT "${object}"
    COMMAND clang-19 "--target=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu" -c "${source}" -o "${object}"
    DEPENDS "${file}" "${source}"
    VERBATIM)
endfunction()

# hangar_links_bytes(TARGET OBJECT): such an object becomes part of a library.
function(hangar_links_bytes target object)
  target_sources(${target} PRIVATE "${object}")
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endfunction()
