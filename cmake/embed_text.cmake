# tilewright_embed_text(target): every src/**/*.text.h becomes a string constant, so that the meaning of a scalar function is
# written once: compiled into the library by #include, and embedded as text in the kernels we generate.
# src/scalar/math.text.h -> const char* const tilewright::text::scalar_math (declared in "embedded_text.h").
function(tilewright_embed_text target)
  file(GLOB_RECURSE texts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*.text.h)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/generated)
  add_custom_command(
    OUTPUT ${out}/embedded_text.cpp ${out}/embedded_text.h
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DROOT=${CMAKE_CURRENT_SOURCE_DIR}/src "-DTEXTS=${texts}"
            -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_embedded_text.cmake
    DEPENDS ${texts} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_embedded_text.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/embedded_text.cpp ${out}/embedded_text.h)
  target_include_directories(${target} PRIVATE ${out})
endfunction()
