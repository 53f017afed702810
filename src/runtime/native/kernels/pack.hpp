// From GGUF's weight types to the layout of packed.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/native/kernels/packed.hpp"

namespace paceline::runtime::native {

/// The format that holds weights of a GGUF type ("q4_K") without loss; none for other types.
std::optional<Format> format_of(std::string_view gguf_type);
std::string_view gguf_type_of(Format format);

/// Columns that a row must be a multiple of.
std::size_t column_step(Format format);
/// Bytes of a row in a GGUF file.
std::size_t source_row_bytes(Format format, std::size_t columns);

/// Packs up to 32 rows, which lie behind each other; missing ones become zero. False where a
/// weight, or a factor of quantised ones, is NaN or infinite.
bool pack_row_block(Format format, const std::byte* rows, std::size_t row_count,
                    std::size_t columns, std::byte* out);

/// One row of a packed row block as floats: out [blocks * 32].
void unpack_row(Format format, const std::byte* row_block, std::size_t row, std::size_t blocks,
                float* out);

}  // namespace paceline::runtime::native
