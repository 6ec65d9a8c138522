// Gemm by fused multiply-adds, each thread a tile of c in registers: what it needs of a and b comes in vectors of 16
// bytes, several steps of k at a time.
#include "ir/operators.h"
#include "passes/threads/collectives.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kStepsAhead = 2;  // vectors of k in one turn of the loop, so that loads run beside the products

class RegisterTile {
 public:
  RegisterTile(const Gemm& g, const GemmChoice& choice, const Team& team, CollectiveLowering& c)
      : g_(g), tile_(*choice.tile), team_(team), c_(c), l_(c.l), layout_(*c.placement.layout_of(g.c.buffer)) {
    type_ = l_.type(g.c.buffer);
    rows_ = layout_.shape()[0] / choice.warps_m, columns_ = layout_.shape()[1] / choice.warps_n;
    const Expr warp = binary(BinaryOp::FloorDiv, team.thread, constant(kWarpThreads));
    const Expr lane = binary(BinaryOp::FloorMod, team.thread, constant(kWarpThreads));
    const Expr warp_m = binary(BinaryOp::FloorMod, warp, constant(choice.warps_m));
    const Expr warp_n = binary(BinaryOp::FloorDiv, warp, constant(choice.warps_m));
    first_row_ =
        sum({{rows_, warp_m}, {tile_.rows, binary(BinaryOp::FloorDiv, lane, constant(kTileLanesOfRow))}}, 0, i32);
    first_column_ =
        sum({{columns_, warp_n}, {tile_.columns, binary(BinaryOp::FloorMod, lane, constant(kTileLanesOfRow))}}, 0, i32);
  }

  Body lower() {
    const int64_t depth = depth_of(g_);
    Body out = clear();
    Operand a = operand(g_.a, !g_.transpose_a, first_row_, rows_ / tile_.unit_rows(), tile_.unit_rows(), tile_.rows);
    Operand b = operand(g_.b, g_.transpose_b, first_column_, columns_ / tile_.unit_columns(), tile_.unit_columns(),
                        tile_.columns);
    For steps;
    const Expr step = unrolled_index(l_, "k", depth / tile_.depth);
    steps.var = id_of(step), steps.begin = constant(0), steps.extent = constant(depth / tile_.depth);
    steps.kind = LoopKind::Unroll, steps.factor = kStepsAhead;
    steps.body = load(a, step);
    const Body of_b = load(b, step), sums = multiply(a, b);
    steps.body.insert(steps.body.end(), of_b.begin(), of_b.end());
    steps.body.insert(steps.body.end(), sums.begin(), sums.end());
    out.push_back(l_.make(std::move(steps)));
    return out;
  }

 private:
  // What a thread has of a or b for one step: groups of neighbours across k, `unit` apart. In memory either k is
  // contiguous, and a vector is several k of one of them, or they are, and a vector is all of a group for one k.
  struct Operand {
    const Region& tile;
    bool k_is_last;
    Expr first;
    int64_t groups, unit, size;
    BufferId registers;
    // Of one element in the registers, in the order in which vectors come.
    std::vector<Term> place(const Expr& group, const Expr& element, const Expr& k, int64_t depth) const {
      if (k_is_last) return {{size * depth, group}, {depth, element}, {1, k}};
      return {{size * depth, group}, {size, k}, {1, element}};
    }
  };
  Operand operand(const Region& tile, bool k_is_last, const Expr& first, int64_t groups, int64_t unit, int64_t size) {
    const Buffer& b = l_.buffer(tile.buffer);
    const DType type = b.type;
    const std::string name = b.name + "_values";
    return {tile,
            k_is_last,
            first,
            groups,
            unit,
            size,
            l_.temporary(name, type, {groups * size * tile_.depth}, Space::Local)};
  }
  Expr counter(const char* name, int64_t extent) { return unrolled_index(l_, name, extent); }
  Stmt unrolled(const Expr& v, int64_t extent, Body body) const {
    return loop(l_, v, constant(0), constant(extent), std::move(body), LoopKind::Unroll);
  }
  Body clear() {
    if (!g_.clear || constant_int(g_.clear) == 0) return {};
    const Expr r = counter("r", layout_.registers());
    const BufferId c = c_.registers.at(g_.c.buffer);
    Body zero{unrolled(r, layout_.registers(), {l_.make(Store{{c, {r}}, constant(type_, int64_t{0})})})};
    if (constant_int(g_.clear) == 1) return zero;
    return {l_.make(If{guard_accesses(g_.clear, l_), std::move(zero), {}})};
  }
  Body load(const Operand& o, const Expr& step) {
    const Expr group = counter("group", o.groups);
    const Expr inner = counter("at", o.k_is_last ? o.size : tile_.depth);
    const Expr across = add(o.first, sum({{o.unit, group}}, 0, i32));
    const Expr k0 = sum({{tile_.depth, step}}, 0, i32);
    const int64_t vector = o.k_is_last ? tile_.depth : o.size;
    Copy copy;
    copy.from.buffer = o.tile.buffer;
    copy.from.min = o.k_is_last ? index_in(o.tile, add(across, inner), k0) : index_in(o.tile, add(k0, inner), across);
    copy.from.extent.assign(copy.from.min.size(), constant(1));
    copy.from.extent.back() = constant(vector);
    const Expr zero = constant(0);
    copy.to = {o.registers,
               {sum(o.k_is_last ? o.place(group, inner, zero, tile_.depth) : o.place(group, zero, inner, tile_.depth),
                    0, i32)},
               {constant(vector)}};
    const int64_t extent = o.k_is_last ? o.size : tile_.depth;
    return {unrolled(group, o.groups, {unrolled(inner, extent, {l_.make(std::move(copy))})})};
  }
  Body multiply(const Operand& a, const Operand& b) {
    const BufferId c = c_.registers.at(g_.c.buffer);
    const Expr k = counter("deep", tile_.depth), i = counter("row", a.groups), x = counter("r", a.size),
               j = counter("column", b.groups), y = counter("c", b.size);
    auto stride = [&](int64_t row, int64_t column) {
      return row < layout_.shape()[0] && column < layout_.shape()[1] ? register_at(layout_, row, column) : 0;
    };
    const Expr to = sum({{a.groups > 1 ? stride(a.unit, 0) : 0, i},
                         {a.size > 1 ? stride(1, 0) : 0, x},
                         {b.groups > 1 ? stride(0, b.unit) : 0, j},
                         {b.size > 1 ? stride(0, 1) : 0, y}},
                        0, i32);
    auto value = [&](const Operand& o, const Expr& group, const Expr& element) {
      const DType type = l_.type(o.registers);
      Expr e = ir::load(o.registers, {sum(o.place(group, element, k, tile_.depth), 0, i32)}, type);
      if (operand_type(l_.program, g_, o.tile) == tf32) e = cast(bitcast(e, f32), tf32, Rounding::TowardZero);
      return cast(e, type_);
    };
    const Expr left = value(a, i, x), right = value(b, j, y), old = ir::load(c, {to}, type_);
    const Expr total = type_.is_float() ? fma(left, right, old) : add(mul(left, right), old);
    Body body{l_.make(Store{{c, {to}}, total})};
    body = {unrolled(j, b.groups, {unrolled(y, b.size, std::move(body))})};
    return {unrolled(k, tile_.depth, {unrolled(i, a.groups, {unrolled(x, a.size, std::move(body))})})};
  }

  const Gemm& g_;
  const FmaTile& tile_;
  const Team& team_;
  CollectiveLowering& c_;
  Lowering& l_;
  const FragmentLayout& layout_;
  DType type_;
  int64_t rows_, columns_;  // of a warp
  Expr first_row_, first_column_;
};

}  // namespace

Body lower_register_tile(const Gemm& gemm, const GemmChoice& choice, const Team& team, CollectiveLowering& c) {
  return RegisterTile(gemm, choice, team, c).lower();
}

}  // namespace tilewright::passes
