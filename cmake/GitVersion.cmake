# Writes OUTPUT, a source file with the version of this checkout; run at each build, because only git knows when it changes.
#   cmake -DSOURCE=<checkout> -DVERSION=<of the project> -DOUTPUT=<file> -P GitVersion.cmake
# A tag v1.2.3 gives 1.2.3, three commits later 1.2.3-3-gabcdef012345, and what is not committed adds -dirty. Without such a tag it is the
# project's version and the commit, and where there is no git, or the folder is part of another checkout, the project's version.
set(version ${VERSION})
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --show-prefix OUTPUT_VARIABLE prefix RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed AND prefix STREQUAL "")
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --tags --match "v[0-9]*" --always --abbrev=12 --dirty
                    OUTPUT_VARIABLE described RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(failed)
    elseif(described MATCHES "^v([0-9].*)$")
      set(version ${CMAKE_MATCH_1})
    else()
      set(version "${VERSION}-g${described}")
    endif()
  endif()
endif()
# Written only when it changes, so that nothing is compiled again otherwise.
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "tools/version.h"

const char* const collage::tools::kVersion = "@version@";
]] @ONLY)
