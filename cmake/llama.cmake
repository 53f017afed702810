# The llama seam: one imported target, paceline::llama, that only src/runtime/llama links.
set(PACELINE_LLAMA_MINIMUM 0.7.0)
find_package(llama CONFIG REQUIRED)
if(DEFINED llama_VERSION AND llama_VERSION VERSION_LESS PACELINE_LLAMA_MINIMUM)
  message(FATAL_ERROR "libllama ${llama_VERSION} found, ${PACELINE_LLAMA_MINIMUM} or newer wanted. "
                      "Run the build through ./dev, which brings its own.")
endif()
add_library(paceline_llama_dependency INTERFACE)
target_link_libraries(paceline_llama_dependency INTERFACE llama)
add_library(paceline::llama ALIAS paceline_llama_dependency)
