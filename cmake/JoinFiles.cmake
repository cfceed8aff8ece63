# cmake -DROOT=DIR -DLIST=FILE -DOUT=FILE -P JoinFiles.cmake: the files that LIST names below ROOT as one text, each
# behind a line "-- NAME --".
file(STRINGS "${LIST}" names)
set(text)
foreach(name ${names})
  file(READ "${ROOT}/${name}" content)
  string(APPEND text "-- ${name} --\n${content}")
endforeach()
file(WRITE "${OUT}" "${text}")
