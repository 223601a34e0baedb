# Writes OUTPUT, a header of namespace collage with a string constant for each of CONSTANTS ("kName=file,file kOther=file"), which holds the files
# one after another.
set(text "#pragma once

namespace collage {
")
separate_arguments(constants UNIX_COMMAND "${CONSTANTS}")
foreach(constant ${constants})
  string(REPLACE "=" ";" parts ${constant})
  list(POP_FRONT parts name)
  string(REPLACE "," ";" files "${parts}")
  string(APPEND text "inline constexpr const char* ${name} =")
  foreach(file ${files})
    file(READ ${file} content)
    string(APPEND text "\n    R\"page(${content})page\"")
  endforeach()
  string(APPEND text ";\n")
endforeach()
string(APPEND text "}  // namespace collage\n")
file(WRITE ${OUTPUT} "${text}")
