# What `cmake --install` writes: libraries and headers by folder, what the libraries open beside them, the command line, and how
# CMake and pkg-config find it all. Nothing written knows where it lies: the whole tree may be moved.
#
#   bin/collage
#   lib/libcollage.so, lib/libcollage_runtime.so   with a C interface (collage/c/collage.h)
#   lib/libcollage_onnxruntime.so                  which ONNX Runtime loads (collage/provider)
#   lib/libcollage_cpp_<folder>.so
#   lib/collage/                backends, code generator, worker, compiler: opened by the libraries, found from where those are
#   lib/cmake/collage/          find_package(collage CONFIG), targets collage::c, collage::c_runtime, collage::<folder>, collage::collage
#   lib/pkgconfig/              libcollage.pc, libcollage_runtime.pc, collage.pc (C++)
#   include/collage.h, include/collage.hpp, include/collage/<folder>/
#
# Libraries from PyPI wheels (OpenVINO, ONNX Runtime, Halide, HiGHS) are not installed: they are used where they were found when Collage was built.
include(CMakePackageConfigHelpers)

set(COLLAGE_INSTALL_PLUGINDIR ${CMAKE_INSTALL_LIBDIR}/collage)
set(COLLAGE_INSTALL_PACKAGEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/collage)
file(RELATIVE_PATH COLLAGE_BIN_TO_LIB ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
# Folders of libraries that stay where they are; CMake leaves out those below this checkout, where wheels are (collage_install_plugin).
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
# A wheel holds an installation as package `collage`, between the packages whose libraries it uses. What Debian's packages give it carries,
# and all that is found through those has to be found there too, which DT_RPATH does and DT_RUNPATH does not.
if(SKBUILD)
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH OFF)
  set(COLLAGE_LIB_TO_SITE_PACKAGES ../..)
  add_link_options(-Wl,--disable-new-dtags)
endif()

# collage_install_library(<folder>): its shared library, the headers of that very folder, and the target collage::<folder>.
function(collage_install_library folder)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  set_target_properties(collage_${folder} PROPERTIES EXPORT_NAME ${folder} INSTALL_RPATH "$ORIGIN")
  add_library(collage::${folder} ALIAS collage_${folder})
  install(TARGETS collage_${folder} EXPORT collage LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/collage/${folder})
  set_property(GLOBAL APPEND PROPERTY COLLAGE_LIBRARIES collage_${folder})
endfunction()

# collage_install_plugin(<target> [<target of a wheel>]): a shared object that a library opens, and whose library it needs.
function(collage_install_plugin target)
  set(folders "$ORIGIN/..")
  foreach(wheel ${ARGN})
    set(folder $<TARGET_FILE_DIR:${wheel}>)
    if(SKBUILD)
      set(in_package $<PATH:GET_FILENAME,$<PATH:GET_PARENT_PATH,${folder}>>/$<PATH:GET_FILENAME,${folder}>)
      set(folder "$ORIGIN/../${COLLAGE_LIB_TO_SITE_PACKAGES}/${in_package}")
    endif()
    list(APPEND folders "${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${folders}")
  install(TARGETS ${target} LIBRARY DESTINATION ${COLLAGE_INSTALL_PLUGINDIR})
endfunction()

# The pkg-config file of a library with a C interface; part of collage_install_package.
function(collage_c_package COLLAGE_C_LIBRARY COLLAGE_C_DESCRIPTION COLLAGE_C_LINK)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/libcollage.pc.in ${generated}/${COLLAGE_C_LIBRARY}.pc @ONLY)
endfunction()

# To be called once, when all folders are known.
function(collage_install_package)
  get_property(libraries GLOBAL PROPERTY COLLAGE_LIBRARIES)
  add_library(collage_everything INTERFACE)
  set_target_properties(collage_everything PROPERTIES EXPORT_NAME collage)
  target_link_libraries(collage_everything INTERFACE ${libraries})
  set_target_properties(collage_options PROPERTIES EXPORT_NAME options)
  install(TARGETS collage_options collage_everything EXPORT collage)
  install(EXPORT collage NAMESPACE collage:: FILE collageTargets.cmake DESTINATION ${COLLAGE_INSTALL_PACKAGEDIR})

  set(generated ${CMAKE_CURRENT_BINARY_DIR}/package)
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/collageConfig.cmake.in ${generated}/collageConfig.cmake
                                INSTALL_DESTINATION ${COLLAGE_INSTALL_PACKAGEDIR})
  configure_file(${CMAKE_SOURCE_DIR}/cmake/collageCTargets.cmake.in ${generated}/collageCTargets.cmake @ONLY)
  # Before 1.0 a minor version may change what is there.
  write_basic_package_version_file(${generated}/collageConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${generated}/collageConfig.cmake ${generated}/collageConfigVersion.cmake ${generated}/collageCTargets.cmake
          DESTINATION ${COLLAGE_INSTALL_PACKAGEDIR})

  file(RELATIVE_PATH COLLAGE_PKGCONFIG_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  list(TRANSFORM libraries REPLACE "^collage_" "-lcollage_cpp_" OUTPUT_VARIABLE COLLAGE_LINK_LIBRARIES)
  list(JOIN COLLAGE_LINK_LIBRARIES " " COLLAGE_LINK_LIBRARIES)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/collage.pc.in ${generated}/collage.pc @ONLY)
  collage_c_package(libcollage "Compiles ONNX models for this machine, loads them and runs them" "-lcollage -lcollage_runtime")
  collage_c_package(libcollage_runtime "Loads and runs what Collage has compiled" "-lcollage_runtime")
  install(FILES ${generated}/collage.pc ${generated}/libcollage.pc ${generated}/libcollage_runtime.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# To be called last: copies the libraries of Debian's packages that something installed needs, but for those that every system has; and for
# libpq with its forty others, security updates of which are for the system: who names a server has it there (Debian: libpq5).
function(collage_carry_system_libraries)
  install(CODE [[
    file(GLOB installed ${CMAKE_INSTALL_PREFIX}/lib/*.so ${CMAKE_INSTALL_PREFIX}/lib/collage/*.so)
    file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${installed} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR not_found
         PRE_EXCLUDE_REGEXES "^libcollage" "^libopenvino" "^libHalide" "^libpq"
         POST_EXCLUDE_REGEXES "/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv|libstdc\\+\\+|libgcc_s)\\.so[^/]*$" "^${CMAKE_INSTALL_PREFIX}")
    if(not_found)
      message(FATAL_ERROR "not found: ${not_found}")
    endif()
    foreach(library ${found})
      get_filename_component(name ${library} NAME)
      get_filename_component(file ${library} REALPATH)
      file(COPY_FILE ${file} ${CMAKE_INSTALL_PREFIX}/lib/${name})
      message(STATUS "carried: ${library}")
    endforeach()
  ]])
endfunction()
