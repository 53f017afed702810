# Script mode. Writes ${OUT}/${STEM}.cpp and .hpp that hold the contents of ${FILES}.
file(WRITE ${OUT}/${STEM}.hpp
"#pragma once
#include <span>
#include <string_view>
namespace paceline::embedded {
struct File {
  std::string_view name;
  std::string_view contents;
};
std::span<const File> ${STEM}();
}  // namespace paceline::embedded
")
set(arrays "")
set(table "")
set(index 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char k_file_${index}[] = {${bytes}'\\0'};\n")
  string(APPEND table "    {\"${name}\", {k_file_${index}, ${size}}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT}/${STEM}.cpp
"#include \"${STEM}.hpp\"
namespace paceline::embedded {
namespace {
${arrays}
constexpr File k_files[] = {
${table}};
}  // namespace
std::span<const File> ${STEM}() { return k_files; }
}  // namespace paceline::embedded
")
