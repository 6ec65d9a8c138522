#include "codegen/cpu/scan.h"

#include "codegen/cpu/vector_text.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

// Of the element of a tile, if it follows the one before along k and lies a fixed way from that of the row before.
struct Place {
  Element first;
  int64_t row_step = 0;
};

std::optional<Place> place_of(const Element& e, const For& row, const For& along, const ProgramTables& program) {
  const Buffer& b = program.buffer(e.buffer);
  if (b.space != Space::Shared || b.is_view() || b.tile || !b.strides.empty()) return std::nullopt;
  auto at = [&](int64_t r, int64_t k) {
    Element x = e;
    for (Expr& i : x.indices) i = substitute(i, {{row.var, constant(i64, r)}, {along.var, constant(i64, k)}});
    return x;
  };
  auto offset = [&](const Element& x) {
    Expr sum = constant(i64, int64_t{0});
    for (size_t d = 0; d < x.indices.size(); ++d) sum = add(mul(sum, cast(b.shape[d], i64)), x.indices[d]);
    return sum;
  };
  const Place place{at(0, 0), constant_int(sub(offset(at(1, 0)), offset(at(0, 0)))).value_or(0)};
  const Expr expected =
      add(offset(place.first), sum({{place.row_step, var(row.var, i64)}, {1, var(along.var, i64)}}, 0, i64));
  if (place.row_step <= 0 || constant_int(sub(offset(e), expected)) != 0) return std::nullopt;
  return place;
}

}  // namespace

std::optional<RowScan> row_scan_of(const For& along, const ProgramTables& program, int64_t vector_bytes) {
  const auto* row = along.body.size() == 1 ? along.body[0].as<For>() : nullptr;
  if (!row || row->kind != LoopKind::Unroll || row->body.size() != 2 || along.kind != LoopKind::Serial) return {};
  const auto rows = constant_int(row->extent);
  if (!rows || constant_int(row->begin) != 0 || constant_int(along.begin) != 0) return {};
  if (program.var(row->var).type != i64 || program.var(along.var).type != i64) return {};
  const auto *total = row->body[0].as<Store>(), *to = row->body[1].as<Store>();
  if (!total || !to || total->to.indices.size() != 1) return {};
  const Buffer& b = program.buffer(total->to.buffer);
  const int64_t bits = *rows * b.type.storage_bits();
  const bool fits = bits == 8 * vector_bytes || bits == 4 * vector_bytes || bits == 2 * vector_bytes;
  const bool whole = b.type == f32 || b.type == f64 || (b.type.is_int() && b.type.bits >= 32);
  const auto* index = total->to.indices[0].as<Var>();
  if (!fits || !whole || b.space != Space::Local || b.is_view() || !index || index->id != row->var) return {};
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
  const auto join = vector_text(total->value, so_far, next);
  if (!join || join->find("(I)") != std::string::npos) return {};
  const auto x = place_of({from->buffer, from->indices}, *row, along, program),
             y = place_of(to->to, *row, along, program);
  if (!x || !y) return {};
  if (from->buffer == to->to.buffer && !equal(from->indices, to->to.indices)) return {};
  return RowScan{*rows, y->row_step, x->row_step, total->to.buffer, y->first, x->first, along.extent, *join};
}

}  // namespace tilewright::codegen
