#include "ir/program.h"

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "tilewright/program.h"

namespace tilewright {

const std::string& Program::name() const { return box_->program.name; }
std::string Program::text() const { return ir::print(box_->program); }

Program parse_program(std::string_view text, const std::string& file_name) {
  ir::TileProgram program = ir::parse(text, file_name);
  ir::check_valid(program);
  return Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{std::move(program)}));
}

}  // namespace tilewright

namespace tilewright::ir {

DType operand_type(const ProgramTables& p, const Gemm& gemm, const Region& operand) {
  const bool single =
      p.buffer(gemm.a.buffer).type == f32 && p.buffer(gemm.b.buffer).type == f32 && p.buffer(gemm.c.buffer).type == f32;
  return p.options.tf32 && single ? tf32 : p.buffer(operand.buffer).type;
}

}  // namespace tilewright::ir
