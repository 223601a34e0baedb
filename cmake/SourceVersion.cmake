# Writes OUTPUT, a source or a header (*.h) that defines SYMBOL as a hash of the files named in LIST (names relative to ROOT, and contents).
file(STRINGS ${LIST} files)
set(all "")
foreach(file ${files})
  file(RELATIVE_PATH name ${ROOT} ${file})
  file(SHA256 ${file} hash)
  string(APPEND all "${name} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
# 48 bits: what tells the versions of one checkout apart.
string(SUBSTRING ${hash} 0 12 short)
if(OUTPUT MATCHES "\\.h$")
  # Written only when it changes, so that nothing is compiled again otherwise.
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once

namespace collage {
inline constexpr const char* ${SYMBOL} = \"${short}\";
}
")
  return()
endif()
file(WRITE ${OUTPUT} "extern \"C\" {
extern __attribute__((visibility(\"default\"))) const char* const ${SYMBOL};
const char* const ${SYMBOL} = \"${short}\";
}
")
