# hangar_embeds_yoke_kinds(target): links the CustomResourceDefinitions of yoke.cd into the library. The program under
# the name `atc` applies them.
function(hangar_embeds_yoke_kinds target)
  foreach(kind airway flight cluster_flight)
    string(REPLACE "_" "" plural "${kind}s")
    set(object "${CMAKE_BINARY_DIR}/yoke_kinds/${kind}.o")
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/yoke_kinds")
    hangar_object_with_bytes("hangar_${kind}_kind" "${CMAKE_SOURCE_DIR}/deploy/crds/${plural}.yoke.cd.yaml" "${object}")
    hangar_links_bytes(${target} "${object}")
  endforeach()
endfunction()
