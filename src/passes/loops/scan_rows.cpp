#include "passes/loops/scan_rows.h"

#include "analysis/element_offset.h"
#include "ir/joins.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The dimension in which alone the elements differ, and by how much.
struct Step {
  int64_t dimension = 0, by = 0;
};
std::optional<Step> step_between(const Element& a, const Element& b) {
  std::optional<Step> found;
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const auto by = constant_int(sub(b.indices[d], a.indices[d]));
    if (!by || (*by != 0 && found)) return {};
    if (*by != 0) found = Step{static_cast<int64_t>(d), *by};
  }
  return found && found->by > 0 ? found : std::nullopt;
}

// The elements of a tile over both loops, if each follows the one before along k.
std::optional<Matrix> matrix_of(const Element& e, const For& row, const For& along, const ProgramTables& program) {
  const Buffer& b = program.buffer(e.buffer);
  if (b.space != Space::Shared || b.is_view() || b.tile || !b.strides.empty()) return {};
  auto at = [&](int64_t r, int64_t k) {
    Element x = e;
    for (Expr& i : x.indices) i = substitute(i, {{row.var, constant(i64, r)}, {along.var, constant(i64, k)}});
    return x;
  };
  auto offset = [&](const Element& x) { return analysis::element_offset(program, x.buffer, x.indices); };
  const Element first = at(0, 0);
  const auto down = step_between(first, at(1, 0)), beside = step_between(first, at(0, 1));
  const auto distance = constant_int(sub(offset(at(1, 0)), offset(first)));
  if (!down || !beside || !distance) return {};
  const Expr expected = add(offset(first), sum({{*distance, var(row.var, i64)}, {1, var(along.var, i64)}}, 0, i64));
  if (constant_int(sub(offset(e), expected)) != 0) return {};
  return Matrix{first, down->dimension, down->by, beside->dimension, beside->by};
}

bool fits(int64_t rows, DType type, int64_t vector_bytes) {
  const int64_t bits = rows * type.storage_bits();
  const bool whole = type == f32 || type == f64 || (type.is_int() && type.bits >= 32);
  return whole && (bits == 8 * vector_bytes || bits == 4 * vector_bytes || bits == 2 * vector_bytes);
}

// The scan's vectors have no type for the bits of a lane as an integer.
bool has_bits(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found = found || (x.as<Bitcast>() && !x->type.is_float()); });
  return found;
}

std::optional<RowScan> row_scan_of(const For& along, const ProgramTables& program, int64_t vector_bytes) {
  const auto* row = along.body.size() == 1 ? along.body[0].as<For>() : nullptr;
  if (!row || row->kind != LoopKind::Unroll || row->body.size() != 2 || along.kind != LoopKind::Serial) return {};
  const auto rows = constant_int(row->extent);
  if (!rows || constant_int(row->begin) != 0 || constant_int(along.begin) != 0) return {};
  if (program.var(row->var).type != i64 || program.var(along.var).type != i64) return {};
  const auto *total = row->body[0].as<Store>(), *to = row->body[1].as<Store>();
  if (!total || !to || total->to.indices.size() != 1) return {};
  const Buffer& b = program.buffer(total->to.buffer);
  const auto* index = total->to.indices[0].as<Var>();
  if (!fits(*rows, b.type, vector_bytes) || b.space != Space::Local || b.is_view() || !index || index->id != row->var)
    return {};
  const Expr so_far = load(total->to.buffer, total->to.indices, b.type);
  const Load* from = nullptr;
  Expr next;
  walk(total->value, [&](const Expr& e) {
    const auto* n = e.as<Load>();
    if (n && n->buffer != total->to.buffer) from = n, next = e;
  });
  if (!from || !equal(to->value, so_far)) return {};
  if (next->type != b.type || program.buffer(from->buffer).type != b.type ||
      program.buffer(to->to.buffer).type != b.type)
    return {};
  if (!joins_in_vectors(total->value, so_far, next) || has_bits(total->value)) return {};
  const auto x = matrix_of({from->buffer, from->indices}, *row, along, program),
             y = matrix_of(to->to, *row, along, program);
  if (!x || !y || (from->buffer == to->to.buffer && !equal(from->indices, to->to.indices))) return {};
  const Expr first_total = load(total->to.buffer, {constant(i64, int64_t{0})}, b.type),
             first = load(from->buffer, x->first.indices, b.type);
  const Expr value = rewrite(total->value, [&](const Expr& e) -> std::optional<Expr> {
    return equal(e, so_far) ? std::optional(first_total) : equal(e, next) ? std::optional(first) : std::nullopt;
  });
  return RowScan{*x, *y, total->to.buffer, *rows, along.extent, value};
}

}  // namespace

LoopProgram scan_rows(LoopProgram program, const target::CpuFeatures& features) {
  const int64_t vector_bytes = features.avx512 ? 64 : features.avx2 ? 32 : 16;
  for (Launch& launch : program.launches)
    launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* f = s.as<For>();
      std::optional<RowScan> scan = f ? row_scan_of(*f, program, vector_bytes) : std::nullopt;
      return scan ? std::optional(Body{make_stmt(std::move(*scan), s->location)}) : std::nullopt;
    });
  return program;
}

}  // namespace tilewright::passes
