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

Buffer::Buffer() = default;
Buffer::Buffer(const Buffer&) = default;
Buffer::Buffer(Buffer&&) noexcept = default;
Buffer& Buffer::operator=(const Buffer&) = default;
Buffer& Buffer::operator=(Buffer&&) noexcept = default;
Buffer::~Buffer() = default;

Launch::Launch() = default;
Launch::Launch(const Launch&) = default;
Launch::Launch(Launch&&) noexcept = default;
Launch& Launch::operator=(const Launch&) = default;
Launch& Launch::operator=(Launch&&) noexcept = default;
Launch::~Launch() = default;

ProgramTables::ProgramTables() = default;
ProgramTables::ProgramTables(const ProgramTables&) = default;
ProgramTables::ProgramTables(ProgramTables&&) noexcept = default;
ProgramTables& ProgramTables::operator=(const ProgramTables&) = default;
ProgramTables& ProgramTables::operator=(ProgramTables&&) noexcept = default;
ProgramTables::~ProgramTables() = default;

DType operand_type(const ProgramTables& p, const Gemm& gemm, const Region& operand) {
  const bool single =
      p.buffer(gemm.a.buffer).type == f32 && p.buffer(gemm.b.buffer).type == f32 && p.buffer(gemm.c.buffer).type == f32;
  return p.options.tf32 && single ? tf32 : p.buffer(operand.buffer).type;
}

}  // namespace tilewright::ir
