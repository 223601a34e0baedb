# One target a folder. Sources are globbed with CONFIGURE_DEPENDS, so that adding an operator or a pass touches no list.

# How everything here is compiled; who uses an installed Collage gets the language and the headers of it only.
set(collage_warnings -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND collage_warnings -Wno-maybe-uninitialized -Wno-restrict)
endif()
add_library(collage_options INTERFACE)
target_compile_features(collage_options INTERFACE cxx_std_20)
target_compile_options(collage_options INTERFACE "$<BUILD_INTERFACE:${collage_warnings};-fno-math-errno>")
target_include_directories(collage_options INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(COLLAGE_SANITIZE)
  set(sanitizers -fsanitize=${COLLAGE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_compile_options(collage_options INTERFACE "$<BUILD_INTERFACE:${sanitizers}>")
  target_link_options(collage_options INTERFACE $<BUILD_INTERFACE:-fsanitize=${COLLAGE_SANITIZE}>)
endif()

# collage_compile_together(<target>): with COLLAGE_COMPILE_TOGETHER the sources of a target are compiled in groups, since most of the time of
# an object goes into headers and templates that its neighbours have, too. Sixteen files a group: more save nothing.
function(collage_compile_together target)
  get_target_property(all ${target} SOURCES)
  set(sources)
  foreach(source ${all})
    # What is generated is compiled alone.
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${source} generated)
    if(source MATCHES "\\.cc$" AND NOT generated)
      list(APPEND sources ${source})
    endif()
  endforeach()
  if(NOT COLLAGE_COMPILE_TOGETHER OR NOT sources)
    return()
  endif()
  execute_process(COMMAND python3 ${CMAKE_SOURCE_DIR}/cmake/unity_groups.py 16 ${sources} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
                  OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  foreach(source group IN ZIP_LISTS sources groups)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# collage_runs_seldom(<target>): for what reads, answers or prints once for a model. At -O3 it takes half again to twice as long to compile.
function(collage_runs_seldom target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# collage_library(<folder> DEPENDS <folder>... LIBRARIES <external>... PRIVATE <external>...)
function(collage_library folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;PRIVATE;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(TRANSFORM ARG_DEPENDS PREPEND collage_)
  add_library(collage_${folder} SHARED ${sources} ${ARG_SOURCES})
  target_link_libraries(collage_${folder} PUBLIC collage_options ${ARG_DEPENDS} ${ARG_LIBRARIES} PRIVATE ${ARG_PRIVATE})
  # libcollage_runtime is that of C.
  set_target_properties(collage_${folder} PROPERTIES OUTPUT_NAME collage_cpp_${folder})
  collage_install_library(${folder})
  collage_compile_together(collage_${folder})
endfunction()

file(STRINGS ${CMAKE_SOURCE_DIR}/collage/c/collage.h COLLAGE_ABI_VERSION REGEX "#define COLLAGE_ABI_VERSION")
string(REGEX REPLACE "[^0-9]" "" COLLAGE_ABI_VERSION "${COLLAGE_ABI_VERSION}")

# collage_c_library(<name> DEPENDS <folder>... PRIVATE <external>... HEADERS <file>...): libcollage_<name>, or libcollage where the name is
# empty, which has a C interface. Its version is that of the interface, COLLAGE_ABI_VERSION.
function(collage_c_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE;HEADERS" ${ARGN})
  set(suffix ${name})
  if(name)
    string(PREPEND suffix "_")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(TRANSFORM ARG_DEPENDS PREPEND collage_)
  add_library(collage_c${suffix} SHARED ${sources})
  target_link_libraries(collage_c${suffix} PRIVATE collage_options ${ARG_DEPENDS} ${ARG_PRIVATE})
  # As installed: the header is in no folder.
  target_include_directories(collage_c${suffix} INTERFACE ${CMAKE_SOURCE_DIR}/collage/c)
  set_target_properties(collage_c${suffix} PROPERTIES OUTPUT_NAME collage${suffix} SOVERSION ${COLLAGE_ABI_VERSION} INSTALL_RPATH "$ORIGIN")
  install(TARGETS collage_c${suffix} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${ARG_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  collage_compile_together(collage_c${suffix})
endfunction()

# collage_source_version(<target> <symbol> FILES <file>...): defines the C symbol <symbol>, a `const char* const`, in <target>. It is a
# hash of the files, computed when something is built: it changes when one of them does, and only one small source is compiled for it.
# With HEADER <file> it is a constant of namespace collage in that header instead, for who must know it when it is compiled.
function(collage_source_version target symbol)
  cmake_parse_arguments(ARG "" "HEADER" "FILES" ${ARGN})
  list(SORT ARG_FILES)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_${symbol}.txt)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_${symbol}.cc)
  if(ARG_HEADER)
    set(source ${ARG_HEADER})
  endif()
  list(JOIN ARG_FILES "\n" lines)
  file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -D LIST=${list} -D ROOT=${CMAKE_SOURCE_DIR} -D SYMBOL=${symbol} -D OUTPUT=${source} -P ${CMAKE_SOURCE_DIR}/cmake/SourceVersion.cmake
    DEPENDS ${ARG_FILES} ${list} ${CMAKE_SOURCE_DIR}/cmake/SourceVersion.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()

# collage_backend(<name> DEPENDS <folder>... PRIVATE <external>... CODE <folder>... WHEEL <target of a PyPI wheel>): a shared object of its
# own, opened by the registry. Its version holds a hash of its sources and of those in the folders of CODE, which decide its speed as well.
# One that is only there to be copied and tested is an EXAMPLE and not installed.
function(collage_backend name)
  cmake_parse_arguments(ARG "EXAMPLE" "WHEEL" "DEPENDS;PRIVATE;CODE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(TRANSFORM ARG_DEPENDS PREPEND collage_)
  add_library(collage_backend_${name} MODULE ${sources})
  target_link_libraries(collage_backend_${name} PRIVATE collage_options ${ARG_DEPENDS} ${ARG_PRIVATE} ${ARG_WHEEL})
  set_target_properties(collage_backend_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${COLLAGE_BACKEND_DIRECTORY} CXX_VISIBILITY_PRESET hidden)
  collage_compile_together(collage_backend_${name})
  set(code)
  foreach(folder ${CMAKE_CURRENT_SOURCE_DIR} ${ARG_CODE})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*.h)
    list(APPEND code ${found})
  endforeach()
  collage_source_version(collage_backend_${name} collage_backend_sources FILES ${code})
  set_property(GLOBAL APPEND PROPERTY COLLAGE_BACKENDS collage_backend_${name})
  if(NOT ARG_EXAMPLE)
    collage_install_plugin(collage_backend_${name} ${ARG_WHEEL})
  endif()
endfunction()

# The tests of <target> that match the GoogleTest patterns (a list), with a label.
function(collage_discover_tests target name label patterns)
  list(JOIN patterns ":" filter)
  gtest_discover_tests(${target} TEST_PREFIX ${name}. TEST_FILTER "${filter}" TEST_LIST ${name}_${label}_tests DISCOVERY_TIMEOUT 120
                       WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTIES TIMEOUT 1800 LABELS ${label})
endfunction()

# collage_test(<name> LIBRARIES <target>... [LONG <pattern>...] [SLOW <pattern>...] [MEASURING <pattern>...] [EXCEPT <pattern>...]):
# tests/<folder>/*_test.cc of the calling folder in one executable. Its tests have the label unit, but those that match a pattern: LONG what
# takes a second or more, since all of unit are to take less than a minute; SLOW what takes too long under a sanitizer; MEASURING what
# depends on real time; EXCEPT what the caller adds itself, with fixtures, say. The target unit_tests builds what has the first two labels.
function(collage_test name)
  cmake_parse_arguments(ARG "" "" "LIBRARIES;SOURCES;LONG;SLOW;MEASURING;EXCEPT" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cc)
  add_executable(${name}_test ${sources} ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE collage_options ${ARG_LIBRARIES} GTest::gmock GTest::gtest_main)
  collage_compile_together(${name}_test)
  foreach(label LONG SLOW MEASURING)
    if(ARG_${label})
      string(TOLOWER ${label} lower)
      collage_discover_tests(${name}_test ${name} ${lower} "${ARG_${label}}")
    endif()
  endforeach()
  set(others ${ARG_LONG} ${ARG_SLOW} ${ARG_MEASURING} ${ARG_EXCEPT})
  if(NOT "*" IN_LIST others)
    list(TRANSFORM others PREPEND "-" AT 0)
    collage_discover_tests(${name}_test ${name} unit "${others}")
  endif()
  if(ARG_LONG OR NOT "*" IN_LIST others)
    add_dependencies(unit_tests ${name}_test)
  endif()
endfunction()
add_custom_target(unit_tests)
include(GoogleTest)
