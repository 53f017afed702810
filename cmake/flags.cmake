# Compile and link flags on one interface target that every target of ours links privately.
add_library(paceline_flags INTERFACE)
target_compile_options(paceline_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wdouble-promotion -Wformat=2)
if(PACELINE_WERROR)
  target_compile_options(paceline_flags INTERFACE -Werror)
endif()

if(PACELINE_SANITIZE)
  # The instrumentation makes GCC see uninitialised values in the standard library; the dev preset
  # keeps that warning.
  target_compile_options(paceline_flags INTERFACE
    -fsanitize=${PACELINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    -Wno-maybe-uninitialized)
  target_link_options(paceline_flags INTERFACE -fsanitize=${PACELINE_SANITIZE})
endif()
