# paceline_room(NAME HDRS ... SRCS ... DEPS ... PRIVATE_DEPS ...)
# One static library and the alias paceline::NAME for a folder of src/.
function(paceline_room name)
  cmake_parse_arguments(arg "" "" "HDRS;SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "paceline_room(${name}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_library(paceline_${name} STATIC ${arg_SRCS} ${arg_HDRS})
  add_library(paceline::${name} ALIAS paceline_${name})
  target_include_directories(paceline_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(paceline_${name}
    PUBLIC ${arg_DEPS}
    PRIVATE ${arg_PRIVATE_DEPS} paceline_flags)
endfunction()

# paceline_test(NAME SRCS ... DEPS ... LABEL ... PREFIX ... TIMEOUT ...)
# PREFIX stands before the names of its cases: names that two programs share would share labels too.
# One GoogleTest program. Each case of it becomes a CTest entry with one label (default: unit).
function(paceline_test name)
  cmake_parse_arguments(arg "" "LABEL;PREFIX;TIMEOUT" "SRCS;DEPS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "paceline_test(${name}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  # Tests that decode real weights use all cores; two at once would ruin each other.
  set(processors 1)
  if(arg_LABEL MATCHES "^(model|slow)$")
    set(processors 64)
  endif()
  add_executable(${name} ${arg_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main paceline_flags)
  gtest_discover_tests(${name}
    TEST_PREFIX "${arg_PREFIX}"
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} PROCESSORS ${processors})
endfunction()

# paceline_embed(TARGET HEADER_STEM FILES ...)
# Compiles the files into TARGET. Gives "<HEADER_STEM>.hpp" with
# paceline::embedded::<stem>(): a span of {name, contents}.
function(paceline_embed target stem)
  cmake_parse_arguments(arg "" "" "FILES" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  set(inputs)
  foreach(file ${arg_FILES})
    list(APPEND inputs ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  add_custom_command(
    OUTPUT ${out}/${stem}.cpp ${out}/${stem}.hpp
    COMMAND ${CMAKE_COMMAND} -DSTEM=${stem} -DOUT=${out} "-DFILES=${inputs}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/${stem}.cpp ${out}/${stem}.hpp)
  target_include_directories(${target} PRIVATE ${out})
endfunction()
