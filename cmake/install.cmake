# What `cmake --install` puts under a prefix, by components: runtime (the C ABI's shared library), dev (headers, the archive of the
# C++ DSL, files for find_package and pkg-config) and tool. The Python package is a wheel of its own (pip install).
include(CMakePackageConfigHelpers)
set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tilewright DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(TARGETS tilewright EXPORT tilewright_cxx ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(TARGETS tilewright_shared EXPORT tilewright_c
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
if(TARGET tilewright_tool)
  install(TARGETS tilewright_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
endif()

# A file of targets for each language: programs in C need nothing that C++ does.
foreach(language cxx c)
  install(EXPORT tilewright_${language} NAMESPACE tilewright:: FILE tilewright_${language}.cmake DESTINATION ${cmake_folder} COMPONENT dev)
endforeach()
configure_package_config_file(cmake/tilewrightConfig.cmake.in ${PROJECT_BINARY_DIR}/tilewrightConfig.cmake INSTALL_DESTINATION ${cmake_folder})
# Before 1.0 a minor version may change the C++ API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tilewrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tilewrightConfig.cmake ${PROJECT_BINARY_DIR}/tilewrightConfigVersion.cmake cmake/tilewrightKernels.cmake
  DESTINATION ${cmake_folder} COMPONENT dev)

# pkg-config: tilewright is C++, tilewright-c the C ABI. Paths are relative to the file, so that a prefix can be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
set(pc_fmt "")
if(NOT TILEWRIGHT_HEADER_ONLY_FMT)
  set(pc_fmt "-lfmt ")
endif()
foreach(name tilewright tilewright-c)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endforeach()
