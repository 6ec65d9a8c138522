#include "passes/sparse_gemm.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

Expr wide_constant(int64_t value) { return constant(i64, value); }

Expr quotient(const Expr& e, int64_t by) { return binary(BinaryOp::FloorDiv, e, wide_constant(by)); }
Expr remainder(const Expr& e, int64_t by) { return binary(BinaryOp::FloorMod, e, wide_constant(by)); }
Expr low_bits(const Expr& word, int64_t first, int64_t mask) {
  return binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, word, constant(u32, first)), constant(u32, mask));
}

class Unpacker {
 public:
  Unpacker(TileProgram& p, int32_t launch) : p_(p), launch_(launch) {}

  std::optional<Body> statement(const Stmt& s) {
    const auto* n = s.as<Gemm>();
    if (!n || !n->is_sparse()) return std::nullopt;
    const size_t rank = n->a.extent.size();
    int64_t rows = *constant_int(n->a.extent[rank - 2]), kept = *constant_int(n->a.extent[rank - 1]);
    if (n->transpose_a) std::swap(rows, kept);
    const Buffer& packed = p_.buffer(n->a.buffer);
    const SparseGroup group = *sparse_group(packed.type);
    Buffer b;
    b.name = packed.name + "_dense", b.type = packed.type, b.space = Space::Shared, b.launch = launch_;
    b.location = s->location;
    b.shape = {constant(rows), constant(kept / group.kept * group.size)};
    const Region dense{p_.new_buffer(b), {constant(0), constant(0)}, b.shape};
    Gemm g = *n;
    g.a = dense, g.transpose_a = false, g.metadata = {}, g.transpose_metadata = false;
    return Body{make_stmt(Fill{dense, constant(b.type, int64_t{0})}, s->location),
                unpack(*n, dense, rows, kept / group.kept, group, s->location), make_stmt(std::move(g), s->location)};
  }

 private:
  // Each kept element goes where it stands. Two that claim one place are zeros.
  Stmt unpack(const Gemm& n, const Region& dense, int64_t rows, int64_t groups, SparseGroup group, LocationId at) {
    const DType type = p_.buffer(dense.buffer).type;
    Map m;
    for (const char* name : {"row", "group"}) m.vars.push_back(p_.new_var(name, i32));
    m.extents = {constant(rows), constant(groups)};
    const Expr row = widen(var(m.vars[0], i32)), number = widen(var(m.vars[1], i32));
    const VarId bits = p_.new_var("bits", u32);
    m.body.push_back(make_stmt(Let{bits, group_bits(n, row, number, p_)}, at));
    for (int64_t j = 0; j < group.kept; ++j) {
      const Expr from = sum({{group.kept, number}}, j, i64);
      m.body.push_back(
          make_stmt(Store{{dense.buffer, {row, kept_column(group, number, var(bits, u32), wide_constant(j))}},
                          element_of(n.a, n.transpose_a, row, from, type)},
                    at));
    }
    return make_stmt(std::move(m), at);
  }

  TileProgram& p_;
  const int32_t launch_;
};

}  // namespace

Expr element_of(const Region& region, bool transposed, const Expr& row, const Expr& column, DType type) {
  std::vector<Expr> index;
  for (const Expr& e : region.min) index.push_back(widen(e));
  const size_t n = index.size();
  index[n - 2] = add(index[n - 2], transposed ? column : row);
  index[n - 1] = add(index[n - 1], transposed ? row : column);
  return load(region.buffer, std::move(index), type);
}

Expr group_bits(const Gemm& gemm, const Expr& row, const Expr& group, const ProgramTables& program) {
  const DType type = program.buffer(gemm.metadata.buffer).type;
  const int64_t groups = type.bits / kGroupBits;  // of a word
  const Expr word = cast(element_of(gemm.metadata, gemm.transpose_metadata, row, quotient(group, groups), type), u32);
  const Expr shift = cast(sum({{kGroupBits, remainder(group, groups)}}, 0, i64), u32);
  return binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, word, shift), constant(u32, int64_t{15}));
}

Expr kept_column(SparseGroup of, const Expr& group, const Expr& bits, const Expr& which) {
  Expr position;
  if (of.kept == 1) {
    position = low_bits(bits, 1, 1);
  } else if (const auto j = constant_int(which)) {
    position = low_bits(bits, 2 * *j, 3);
  } else {
    const Expr shift = cast(sum({{2, which}}, 0, i64), u32);
    position = binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, bits, shift), constant(u32, int64_t{3}));
  }
  return add(sum({{of.size, group}}, 0, i64), cast(position, i64));
}

TileProgram unpack_sparse_gemms(TileProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Unpacker unpacker(program, static_cast<int32_t>(i));
    program.launches[i].body = rewrite(program.launches[i].body, [&](const Stmt& s) { return unpacker.statement(s); });
  }
  return program;
}

}  // namespace tilewright::passes
