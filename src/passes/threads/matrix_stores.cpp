#include "passes/threads/matrix_stores.h"

#include <algorithm>

#include "analysis/divisibility.h"
#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kElementBits = 16, kRow = 8;         // elements of a row of a matrix: 16 bytes
constexpr int64_t kPair = 2;                           // elements of a word
constexpr int64_t kLanesOfRow = 4, kRowsOfMatrix = 8;  // a lane has a word of a row, or of two rows one element each
constexpr int64_t kMostMatrices = 4, kFewestMatrices = 2;

// How far the points of a digit's neighbouring values are from each other in the order of a thread's points.
int64_t step_of(const Digit& digit, const FragmentLayout& points) {
  int64_t step = 1;
  for (const Digit& d : points.digits())
    if (d.home == Home::Register && d.stride < digit.stride) step *= d.extent;
  return step;
}

// The part of a digit of registers that says which words a thread has: every `stride`, `extent` of them.
struct Words {
  int64_t stride = 1, extent = 1;
};
Words words_of(const Digit& d, const FragmentLayout& points) {
  const int64_t step = step_of(d, points);
  return step == 1 ? Words{1, d.extent / kPair} : Words{step / kPair, d.extent};
}

// Whether so many consecutive words are whole parts of the digits.
bool divide(const FragmentLayout& points, int64_t matrices) {
  if (points_of_thread(points) / kPair % matrices != 0) return false;
  return std::ranges::all_of(points.digits(), [&](const Digit& d) {
    if (d.home != Home::Register) return true;
    const auto [stride, extent] = words_of(d, points);
    if (extent == 1 || stride >= matrices) return stride % matrices == 0 || extent == 1;
    return matrices % stride == 0 && (stride * extent <= matrices || stride * extent % matrices == 0);
  });
}

// Along which dimension of the points the last one of the tile runs: by one a point, and else by whole rows.
std::optional<int> dimension_along(const Expr& last, const Map& map, const ProgramTables& p) {
  for (size_t d = 0; d < map.vars.size(); ++d) {
    if (analysis::slope_through_casts(last, map.vars[d]) != 1) continue;
    const Expr rest = substitute(last, {{map.vars[d], constant(p.var(map.vars[d]).type, int64_t{0})}});
    if (analysis::power_of_two_divisor(rest, p) % kRow == 0) return static_cast<int>(d);
  }
  return std::nullopt;
}

// Whether lanes hold rows of matrices: straight, four lanes the neighbours of one row, or transposed, eight lanes an
// element each.
std::optional<bool> lies_transposed(const FragmentLayout& points, int along) {
  const Digit *pair = nullptr, *first = nullptr, *fourth = nullptr;  // by registers; by lanes one and four apart
  for (const Digit& d : points.digits()) {
    if (d.home == Home::Register && d.stride == 1) pair = &d;
    if (d.home == Home::Lane && d.stride == 1) first = &d;
    if (d.home == Home::Lane && d.stride == kLanesOfRow) fourth = &d;
  }
  if (!pair || pair->extent % kPair != 0) return std::nullopt;
  if (pair->dim == along && pair->weight == 1 && pair->extent == kPair && first && first->dim == along &&
      first->weight == kPair && first->extent % kLanesOfRow == 0)
    return false;
  if (pair->dim != along && fourth && fourth->dim == along && fourth->weight == 1 && fourth->extent == kRowsOfMatrix)
    return true;
  return std::nullopt;
}

}  // namespace

int64_t points_of_thread(const FragmentLayout& points) {
  int64_t out = 1;
  for (const Digit& d : points.digits())
    if (d.home == Home::Register) out *= d.extent;
  return out;
}

Expr number_of_point(const Held& at) {
  Expr out = constant(0);
  const std::vector<Digit>& digits = at.layout->digits();
  for (size_t i = 0; i < digits.size(); ++i)
    if (digits[i].home == Home::Register) out = add(out, sum({{step_of(digits[i], *at.layout), at.digits[i]}}, 0, i32));
  return out;
}

std::optional<MatrixStore> matrix_store_of(const Stmt& s, const FragmentLayout& points, const Team& team,
                                           const ProgramTables& p, const analysis::Uniformity& uniformity) {
  const auto& map = *s.as<Map>();
  const auto* store = map.body.size() == 1 ? map.body[0].as<Store>() : nullptr;
  if (!store || store->queue != Queue::None || !uniformity.is_uniform_control(s)) return std::nullopt;
  const Buffer& to = p.buffer(store->to.buffer);
  if (to.space != Space::Shared || to.is_view() || to.tile || !to.strides.empty() || to.memory ||
      to.layout.kind == LayoutHint::Function || to.type.bits != kElementBits || store->to.indices.empty() ||
      constant_int(to.shape.back()).value_or(1) % kRow != 0)
    return std::nullopt;
  if (!points.copies().empty() || points.is_padded() || !points.uses_all_threads() || !points.is_warp_aligned() ||
      points.ctas() > 1 || points.threads() != team.count || team.count % kWarpThreads != 0 ||
      team.begin % kWarpThreads != 0)
    return std::nullopt;
  bool reads_it = false;  // a thread would still read what another stores
  walk(store->value, [&](const Expr& e) {
    const auto* n = e.as<Load>();
    reads_it = reads_it || (n && p.root(n->buffer) == store->to.buffer);
  });
  if (reads_it) return std::nullopt;
  const std::optional<int> along = dimension_along(store->to.indices.back(), map, p);
  const std::optional<bool> transposed = along ? lies_transposed(points, *along) : std::nullopt;
  if (!transposed) return std::nullopt;
  for (const Expr& index : store->to.indices) {
    bool loads = false;
    walk(index, [&](const Expr& e) { loads = loads || e.as<Load>(); });
    const std::set<VarId> used = used_vars(index);
    const bool is_known = std::ranges::all_of(used, [&](VarId v) {
      return std::ranges::find(map.vars, v) != map.vars.end() || uniformity.is_uniform(var(v, p.var(v).type), s);
    });
    const bool runs = used.contains(map.vars[static_cast<size_t>(*along)]);
    if (loads || !is_known || (runs && &index != &store->to.indices.back())) return std::nullopt;
  }
  for (int64_t matrices = kMostMatrices; matrices >= kFewestMatrices; matrices /= 2)
    if (divide(points, matrices)) return MatrixStore{matrices, *transposed};
  return std::nullopt;
}

std::optional<Body> store_matrices(const Map& map, const MatrixStore& how, const FragmentLayout& points,
                                   BufferId registers, const Team& team, Lowering& l) {
  const auto& store = *map.body[0].as<Store>();
  const auto scaled = [](const Expr& e, int64_t factor) { return sum({{factor, e}}, 0, i32); };
  // Lane 8 * i + j points at row j of matrix i.
  const auto bits = [&](int64_t step, int64_t extent) {
    const Expr quotient = step > 1 ? binary(BinaryOp::FloorDiv, team.thread, constant(step)) : team.thread;
    return extent > 1 ? binary(BinaryOp::FloorMod, quotient, constant(extent)) : constant(0);
  };
  const int64_t rounds = points_of_thread(points) / kPair / how.matrices;
  const VarId r = l.program.new_var("r", i32);
  l.intervals.set(r, {0, rounds - 1});
  const Expr round = var(r, i32);
  const auto of_round = [&](int64_t step, int64_t extent) {
    const Expr quotient = step > 1 ? binary(BinaryOp::FloorDiv, round, constant(step)) : round;
    return step * extent < rounds ? binary(BinaryOp::FloorMod, quotient, constant(extent)) : quotient;
  };
  // The row's first element is that of lane 4 * j, or of lane j / 2 in register j % 2.
  const auto lane_digit = [&](const Digit& d) -> Expr {
    const int64_t modulus =
        std::min(d.modulus > 0 ? d.modulus : kWarpThreads, how.transposed ? kLanesOfRow : kWarpThreads);
    if (how.transposed) return bits(kPair * d.stride, modulus / d.stride);
    if (d.stride >= kLanesOfRow) return bits(d.stride / kLanesOfRow, modulus / d.stride);
    return scaled(bits(1, modulus / kLanesOfRow), kLanesOfRow / d.stride);
  };
  const auto register_digit = [&](const Digit& d) {
    const auto [stride, extent] = words_of(d, points);
    Expr word = constant(0);
    if (extent > 1 && stride >= how.matrices) {
      word = of_round(stride / how.matrices, extent);
    } else if (extent > 1) {
      const int64_t inner = std::min(extent, how.matrices / stride);
      word = bits(kRowsOfMatrix * stride, inner);
      if (extent > inner) word = add(word, scaled(of_round(1, extent / inner), inner));
    }
    if (d.stride > 1) return word;
    return how.transposed ? add(scaled(word, kPair), bits(1, kPair)) : scaled(word, kPair);
  };
  std::vector<Expr> index(static_cast<size_t>(points.rank()), constant(0));
  for (const Digit& d : points.digits()) {
    const Expr value = d.home == Home::Register ? register_digit(d)
                       : d.home == Home::Lane   ? lane_digit(d)
                                                : digit_value(points, d, team);
    Expr& e = index[static_cast<size_t>(d.dim)];
    e = add(e, scaled(value, d.weight));
  }
  Substitution names;
  for (size_t d = 0; d < map.vars.size(); ++d) names[map.vars[d]] = cast(index[d], l.program.var(map.vars[d]).type);
  StoreMatrix n;
  n.to.buffer = store.to.buffer, n.transpose = how.transposed;
  for (const Expr& e : store.to.indices) n.to.indices.push_back(substitute(e, names));
  const int64_t taken = kPair * how.matrices;
  n.from = {registers, {scaled(round, taken)}, {constant(taken)}};
  if (bounds_check(n.to.buffer, n.to.indices, l)) return std::nullopt;
  Buffer& to = l.program.buffers[store.to.buffer.index];
  to.alignment = std::max(to.alignment, kRow * kElementBits / 8);
  return Body{loop(l, round, constant(0), constant(rounds), {l.make(std::move(n))}, LoopKind::Unroll)};
}

}  // namespace tilewright::passes
