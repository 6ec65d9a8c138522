// Text (.tile) to programs. The grammar is in docs/text_form.md; ir/print.h writes what this reads. A mistake in the
// text is a CompileError of the area parse with file, line and column. What a program means is not checked here but by
// ir/verify.h; only expressions must be typed consistently, because a node cannot be built otherwise.
#pragma once
#include <string>
#include <string_view>

#include "ir/program.h"

namespace tilewright::ir {

TileProgram parse(std::string_view text, std::string file_name);
LoopProgram parse_loop_program(std::string_view text, std::string file_name);
ThreadProgram parse_thread_program(std::string_view text, std::string file_name);

}  // namespace tilewright::ir
