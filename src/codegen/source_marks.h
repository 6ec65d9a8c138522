// The comments by which the texts of kernels say which lines of the program their own come from.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/diagnostic.h"

namespace tilewright::codegen {

// "// gemm.py:12"
std::string source_mark(const SourceLocation& at);

// The place of each line of a text, given those of its marks in their order. A line has the mark above it in the same
// function; what closes a block, and what no mark is above, has no place.
std::vector<SourceLocation> places_of_lines(std::string_view text, std::span<const SourceLocation> marks);

}  // namespace tilewright::codegen
