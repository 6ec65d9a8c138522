// Gemm by matrix instructions of warps, and for every type and shape by fused multiply-adds: each thread adds up its
// own elements of c, in ascending k.
#include "ir/operators.h"
#include "passes/sparse_gemm.h"
#include "passes/threads/collectives.h"

namespace tilewright::passes {

using namespace ir;

Expr unrolled_index(Lowering& l, const char* name, int64_t extent) {
  const VarId v = l.program.new_var(name, i32);
  l.intervals.set(v, {0, extent - 1});
  return var(v, i32);
}

int64_t register_at(const FragmentLayout& layout, int64_t row, int64_t column) {
  const int64_t index[] = {row, column};
  return layout.place(index).reg;
}

std::vector<Expr> index_in(const Region& tile, const Expr& row, const Expr& column) {
  std::vector<Expr> index;
  for (const Expr& e : tile.min) index.push_back(widen(e));
  const size_t n = index.size();
  index[n - 2] = add(index[n - 2], widen(row)), index[n - 1] = add(index[n - 1], widen(column));
  return index;
}

Expr packed_word(DType type, function_ref<Expr(int64_t)> element) {
  Expr word;
  for (int64_t e = 0; e < 32 / type.bits; ++e) {
    const Expr bits = cast(bitcast(element(e), DType{Kind::UInt, static_cast<uint8_t>(type.bits)}), u32);
    const Expr placed = e == 0 ? bits : binary(BinaryOp::Shl, bits, constant(u32, e * type.bits));
    word = word ? binary(BinaryOp::BitOr, word, placed) : placed;
  }
  return word;
}

int64_t depth_of(const Gemm& g) {
  const size_t rank = g.b.extent.size();
  return *constant_int(g.transpose_b ? g.b.extent[rank - 1] : g.b.extent[rank - 2]);
}

Expr metadata_word(const Gemm& g, const Expr& row, const Expr& step, const Expr& lane, const Lowering& l) {
  constexpr int64_t kHalf = 16;
  const DType type = l.type(g.metadata.buffer);
  const bool bytes = l.type(g.a.buffer).bits == 8;
  auto part = [&](int64_t divisor, int64_t modulus) {  // lane / divisor % modulus
    return binary(BinaryOp::FloorMod, binary(BinaryOp::FloorDiv, lane, constant(divisor)), constant(modulus));
  };
  // Of the four groups that number `quarter` of a row are.
  auto half = [&](const Expr& at, const Expr& quarter) {
    auto word = [&](const Expr& column) {
      const Expr e = g.transpose_metadata ? load(g.metadata.buffer, index_in(g.metadata, column, at), type)
                                          : load(g.metadata.buffer, index_in(g.metadata, at, column), type);
      const DType bits{Kind::UInt, static_cast<uint8_t>(type.bits)};
      return cast(type == bits ? e : bitcast(e, bits), u32);
    };
    if (type.bits > kHalf) {
      const Expr shift = cast(sum({{kHalf, binary(BinaryOp::FloorMod, quarter, constant(2))}}, 0, i32), u32);
      const Expr e = word(binary(BinaryOp::FloorDiv, quarter, constant(2)));
      return binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, e, shift), constant(u32, int64_t{0xffff}));
    }
    Expr out;
    for (int64_t i = 0; i < kHalf / type.bits; ++i) {
      const Expr e = word(sum({{kHalf / type.bits, quarter}}, i, i32));
      out = out ? binary(BinaryOp::BitOr, out, binary(BinaryOp::Shl, e, constant(u32, i * type.bits))) : e;
    }
    return out;
  };
  const Expr first = add(row, part(4, 8));
  const Expr low = bytes ? half(add(first, sum({{8, part(1, 2)}}, 0, i32)), sum({{4, step}, {2, part(2, 2)}}, 0, i32))
                         : half(first, sum({{2, step}, {1, part(1, 2)}}, 0, i32));
  const Expr high = bytes ? half(add(first, sum({{8, part(1, 2)}}, 0, i32)), sum({{4, step}, {2, part(2, 2)}}, 1, i32))
                          : half(add(first, constant(8)), sum({{2, step}, {1, part(1, 2)}}, 0, i32));
  return binary(BinaryOp::BitOr, low, binary(BinaryOp::Shl, high, constant(u32, kHalf)));
}

namespace {

using target::kMmaRows;

// Products that a warp has under way at once: each adds to registers of its own, and none waits for the one before.
// With one in turn a step takes the latency of an instruction, about 33 cycles. Where memory is the limit it is worth
// little: MLA decoding of 16 heads, 36 steps of one tile a warp, gained 2.5% of an H200 in one run and nothing in the
// next.
constexpr int64_t kChains = 4;

// The instruction's way: every warp loads the rows and columns of its tiles by ldmatrix, one step of k at a time, and
// multiplies all of them.
class MmaLowering {
 public:
  MmaLowering(const Gemm& g, const GemmChoice& choice, const Team& team, CollectiveLowering& c)
      : g_(g),
        i_(*choice.mma),
        choice_(choice),
        team_(team),
        c_(c),
        l_(c.l),
        layout_(*c.placement.layout_of(g.c.buffer)) {
    rows_ = ceil_div(layout_.shape()[0], choice.warps_m * kMmaRows);
    columns_ = ceil_div(layout_.shape()[1], choice.warps_n * i_.n);
    steps_ = depth_of(g) / i_.k;
    warp_ = binary(BinaryOp::FloorDiv, team.thread, constant(kWarpThreads));
    lane_ = binary(BinaryOp::FloorMod, team.thread, constant(kWarpThreads));
  }

  Body lower() {
    const BufferId whole = c_.registers.at(g_.c.buffer);
    Body out = clear(whole);
    const int64_t chains = chains_of();
    const BufferId c = chains > 1 ? start_chains(whole, chains, out) : whole;
    const DType word = i_.a == f64 ? f64 : u32;
    a_ = l_.temporary(l_.buffer(g_.a.buffer).name + "_words", word, {rows_ * parts() * i_.a_words()}, Space::Local);
    b_ = l_.temporary(l_.buffer(g_.b.buffer).name + "_words", word, {columns_ * i_.b_words()}, Space::Local);
    const Expr k = counter("k", steps_);
    Body step = i_.a == f64 ? load_doubles(k) : choice_.a_in_registers ? pack_a(k) : load_a(k);
    const Body b = i_.a == f64 ? Body{} : i_.sparse ? load_all_of_k(k) : load_b(k);
    step.insert(step.end(), b.begin(), b.end());
    if (i_.sparse) step.push_back(load_metadata(k));
    // Registers of the tile at (row, column), from those of the first.
    const int64_t down = rows_ > 1 ? register_at(layout_, kMmaRows, 0) : 0,
                  right = columns_ > 1 ? register_at(layout_, 0, i_.n) : 0;
    const Expr row = counter("row", rows_), column = counter("column", columns_);
    Body tile;
    for (int64_t part = 0; part < parts(); ++part) {
      Mma mma;
      mma.instruction = std::string(i_.name);
      mma.a = words(a_, row, i_.a_words(), part, parts()), mma.b = words(b_, column, i_.b_words());
      mma.c = {c, {sum({{down, row}, {right, column}}, part * i_.c_registers(), i32)}, {constant(i_.c_registers())}};
      if (chains > 1) mma.c.min[0] = add(mma.c.min[0], scaled(chain_of(k, chains), layout_.registers()));
      if (i_.sparse) mma.metadata = words(metadata_, row, 1);
      tile.push_back(l_.make(std::move(mma)));
    }
    step.push_back(unrolled(row, rows_, {unrolled(column, columns_, std::move(tile))}));
    out.push_back(unrolled(k, steps_, std::move(step)));
    if (chains > 1) out.push_back(join_chains(c, whole, chains));
    return out;
  }

 private:
  // Sums in float32 may be added up in any order.
  int64_t chains_of() const {
    const int64_t tiles = rows_ * columns_ * parts();
    const bool gains = l_.type(g_.c.buffer) == f32 && i_.a != f64 && !i_.sparse && steps_ >= 2 * kChains;
    return gains ? std::max<int64_t>(kChains / tiles, 1) : 1;
  }
  static Expr chain_of(const Expr& k, int64_t chains) { return binary(BinaryOp::FloorMod, k, constant(chains)); }
  // Registers of each chain; the first begins with what c has.
  BufferId start_chains(BufferId whole, int64_t chains, Body& out) {
    const int64_t count = layout_.registers();
    const BufferId all = l_.temporary(l_.buffer(g_.c.buffer).name + "_chains", f32, {chains * count}, Space::Local);
    const Expr r = counter("r", count), rest = counter("r", (chains - 1) * count);
    out.push_back(unrolled(r, count, {l_.make(Store{{all, {r}}, load(whole, {r}, f32)})}));
    out.push_back(unrolled(rest, (chains - 1) * count,
                           {l_.make(Store{{all, {add(rest, constant(count))}}, constant(f32, int64_t{0})})}));
    return all;
  }
  Stmt join_chains(BufferId all, BufferId whole, int64_t chains) {
    const int64_t count = layout_.registers();
    const Expr r = counter("r", count);
    auto sum_of = [&](auto&& self, int64_t first, int64_t n) -> Expr {
      if (n == 1) return load(all, {add(r, constant(first * count))}, f32);
      return add(self(self, first, n / 2), self(self, first + n / 2, n - n / 2));
    };
    return unrolled(r, count, {l_.make(Store{{whole, {r}}, sum_of(sum_of, 0, chains)})});
  }
  Expr counter(const char* name, int64_t extent) { return unrolled_index(l_, name, extent); }
  Stmt unrolled(const Expr& v, int64_t extent, Body body) const {
    return loop(l_, v, constant(0), constant(extent), std::move(body), LoopKind::Unroll);
  }
  // Instructions one below the other that a tile of 16 rows takes.
  int64_t parts() const { return kMmaRows / i_.m; }
  static Region words(BufferId array, const Expr& tile, int64_t count, int64_t part = 0, int64_t parts = 1) {
    return {array, {sum({{count * parts, tile}}, part * count, i32)}, {constant(count)}};
  }
  Body clear(BufferId c) {
    if (!g_.clear || constant_int(g_.clear) == 0) return {};
    const Expr r = counter("r", layout_.registers());
    Body zero{unrolled(r, layout_.registers(), {l_.make(Store{{c, {r}}, constant(l_.type(c), int64_t{0})})})};
    if (constant_int(g_.clear) == 1) return zero;
    return {l_.make(If{guard_accesses(g_.clear, l_), std::move(zero), {}})};
  }

  Expr scaled(const Expr& e, int64_t factor) const { return sum({{factor, e}}, 0, i32); }
  Expr part(int64_t divisor, int64_t modulus) const {  // lane / divisor % modulus
    return binary(BinaryOp::FloorMod, binary(BinaryOp::FloorDiv, lane_, constant(divisor)), constant(modulus));
  }
  Element at(const Region& r, const Expr& row, const Expr& column) const {
    return {r.buffer, index_in(r, row, column)};
  }
  Element of_b(const Expr& column, const Expr& k) const {
    return g_.transpose_b ? at(g_.b, column, k) : at(g_.b, k, column);
  }
  int64_t chunk() const { return 128 / i_.a.bits; }  // elements in 16 bytes
  // The first of `count` rows, or columns, of c; of tiles that reach beyond c, the last ones that it has.
  Expr own_row(const Expr& row, int64_t count = 1) const {
    return at_most(row, 0, rows_ * choice_.warps_m * kMmaRows, count);
  }
  Expr own_column(const Expr& column, int64_t count = 1) const {
    return at_most(column, 1, columns_ * choice_.warps_n * i_.n, count);
  }
  Expr at_most(const Expr& e, int dim, int64_t covered, int64_t count) const {
    const int64_t own = layout_.shape()[dim];
    return covered == own ? e : binary(BinaryOp::Min, e, constant(e->type, own - count));
  }

  // Words that ldmatrix does not load, from their elements: lane / 4 is the row or column of the first, lane % 4 its
  // place along k. `at` is where the operand has an element, from its row or column in the tile and its place along k.
  Body load_words(BufferId to, const Expr& tile, int64_t rows_of_words, int64_t count,
                  function_ref<Element(Expr, Expr)> at) {
    const int64_t per_word = 32 / i_.a.bits;
    Body out;
    for (int64_t w = 0; w < count; ++w) {
      const Expr row = add(part(4, 8), constant(w % rows_of_words * 8));
      const auto element = [&](int64_t e) {
        const int64_t first = w / rows_of_words * 4 * per_word;
        const Element from = at(row, sum({{per_word, part(1, 4)}}, first + e, i32));
        return guard_accesses(load(from.buffer, from.indices, l_.type(from.buffer)), l_);
      };
      out.push_back(l_.make(Store{{to, {sum({{count, tile}}, w, i32)}}, packed_word(i_.a, element)}));
    }
    return out;
  }
  // Four matrices: (rows 0-7, 8-15) x (the first and the second half of k).
  Body load_a(const Expr& k) {
    const Expr row = counter("row", rows_), warp_m = binary(BinaryOp::FloorMod, warp_, constant(choice_.warps_m));
    const Expr first = add(scaled(warp_m, rows_ * i_.m), scaled(row, i_.m)), k0 = scaled(k, i_.a_k());
    if (!choice_.a_by_elements.empty())
      return {unrolled(row, rows_, load_words(a_, row, 2, i_.a_words(), [&](const Expr& m, const Expr& along) {
                         const Expr i = own_row(add(first, m)), j = add(k0, along);
                         return g_.transpose_a ? at(g_.a, j, i) : at(g_.a, i, j);
                       }))};
    LoadMatrix n;
    n.to = words(a_, row, i_.a_words());
    if (g_.transpose_a) {
      n.from =
          at(g_.a, add(k0, add(part(1, 8), scaled(part(16, 2), 8))), own_row(add(first, scaled(part(8, 2), 8)), 8));
      n.transpose = true;
    } else {
      n.from = at(g_.a, own_row(add(first, part(1, 16))), add(k0, scaled(part(16, 2), chunk())));
    }
    return {unrolled(row, rows_, {l_.make(n)})};
  }
  // Two columns of tiles at a time where there are two: (the halves of k, if it has any) x (columns 0-7, 8-15).
  Body load_b(const Expr& k) {
    const bool by_words = !choice_.b_by_elements.empty();
    const int64_t at_once = columns_ % 2 == 0 && !by_words ? 2 : 1;
    const Expr pair = counter("column", columns_ / at_once);
    const Expr warp_n = binary(BinaryOp::FloorDiv, warp_, constant(choice_.warps_m));
    const Expr first = add(scaled(warp_n, columns_ * i_.n), scaled(pair, at_once * i_.n)), k0 = scaled(k, i_.k);
    if (by_words)
      return {unrolled(pair, columns_ / at_once,
                       load_words(b_, pair, 1, i_.b_words(), [&](const Expr& n, const Expr& along) {
                         return of_b(own_column(add(first, n)), add(k0, along));
                       }))};
    const int64_t lanes_of_k = 8 * i_.b_words();  // that say where the matrices of one column lie
    const Expr next = at_once == 2 ? scaled(part(lanes_of_k, 2), 8) : constant(0);
    LoadMatrix n;
    n.to = words(b_, pair, at_once * i_.b_words());
    if (g_.transpose_b) {
      const Expr half = i_.b_words() == 2 ? scaled(part(8, 2), chunk()) : constant(0);
      n.from = at(g_.b, own_column(add(first, add(part(1, 8), next))), add(k0, half));
    } else {
      n.from = at(g_.b, add(k0, part(1, lanes_of_k)), own_column(add(first, next), 8));
      n.transpose = true;
    }
    return {unrolled(pair, columns_ / at_once, {l_.make(n)})};
  }
  // Lane 4 * i + j has row i of a, row i + 8, and column i of b, at every fourth k from j on (PTX ISA 9.7.14.5, the
  // figures of f64).
  Body load_doubles(const Expr& k) {
    constexpr int64_t kLanesOfRow = 4;
    const int64_t per_row = i_.k / kLanesOfRow;
    const Expr row = counter("row", rows_), column = counter("column", columns_), at_k = counter("part", per_row);
    const Expr warp_m = binary(BinaryOp::FloorMod, warp_, constant(choice_.warps_m));
    const Expr warp_n = binary(BinaryOp::FloorDiv, warp_, constant(choice_.warps_m));
    const Expr depth = add(sum({{i_.k, k}, {kLanesOfRow, at_k}}, 0, i32), part(1, kLanesOfRow));
    auto put = [&](BufferId to, Expr index, const Region& from, bool swap, const Expr& i) {
      const Element e = swap ? at(from, depth, i) : at(from, i, depth);
      return l_.make(Store{{to, {std::move(index)}}, guard_accesses(load(e.buffer, e.indices, f64), l_)});
    };
    Body halves;
    for (int64_t half = 0; half < 2; ++half) {
      const Expr i = own_row(add(sum({{rows_ * kMmaRows, warp_m}, {kMmaRows, row}}, half * 8, i32), part(4, 8)));
      halves.push_back(put(a_, sum({{2 * per_row, row}, {2, at_k}}, half, i32), g_.a, g_.transpose_a, i));
    }
    const Expr j = own_column(add(sum({{columns_ * i_.n, warp_n}, {i_.n, column}}, 0, i32), part(4, 8)));
    const Stmt b = put(b_, sum({{per_row, column}, {1, at_k}}, 0, i32), g_.b, !g_.transpose_b, j);
    return {unrolled(row, rows_, {unrolled(at_k, per_row, std::move(halves))}),
            unrolled(column, columns_, {unrolled(at_k, per_row, {b})})};
  }
  // The k of a sparse step is four matrices long.
  Body load_all_of_k(const Expr& k) {
    const Expr column = counter("column", columns_);
    const Expr warp_n = binary(BinaryOp::FloorDiv, warp_, constant(choice_.warps_m));
    const Expr first = add(scaled(warp_n, columns_ * i_.n), scaled(column, i_.n)), k0 = scaled(k, i_.k);
    if (!choice_.b_by_elements.empty())
      return {unrolled(column, columns_, load_words(b_, column, 1, i_.b_words(), [&](const Expr& n, const Expr& along) {
                         return of_b(add(first, n), add(k0, along));
                       }))};
    LoadMatrix n;
    n.to = words(b_, column, i_.b_words());
    n.transpose = !g_.transpose_b;
    n.from = g_.transpose_b ? at(g_.b, add(first, part(1, 8)), add(k0, scaled(part(8, 4), chunk())))
                            : at(g_.b, add(k0, lane_), first);
    return {unrolled(column, columns_, {l_.make(n)})};
  }
  Stmt load_metadata(const Expr& k) {
    metadata_ = l_.temporary(l_.buffer(g_.metadata.buffer).name + "_words", u32, {rows_}, Space::Local);
    const Expr row = counter("row", rows_), warp_m = binary(BinaryOp::FloorMod, warp_, constant(choice_.warps_m));
    const Expr first = add(scaled(warp_m, rows_ * i_.m), scaled(row, i_.m));
    return unrolled(row, rows_, {l_.make(Store{{metadata_, {row}}, metadata_word(g_, first, k, lane_, l_)})});
  }
  // A from the registers of a fragment: neighbours along k make a word.
  Body pack_a(const Expr& k) {
    const FragmentLayout& a = *c_.placement.layout_of(g_.a.buffer);
    const BufferId registers = c_.registers.at(g_.a.buffer);
    const DType type = l_.type(g_.a.buffer);
    const int64_t down = rows_ > 1 ? register_at(a, i_.m, 0) : 0;
    Body out;
    // The registers of one step of k, and of one word in it, follow no one stride: they are written out for each step.
    const Expr row = counter("row", rows_);
    for (int64_t step = 0; step < steps_; ++step) {
      Body words_of_step;
      for (int64_t w = 0; w < i_.a_words(); ++w) {
        const int64_t r = w % 2 * 8, c0 = step * i_.a_k() + w / 2 * (i_.a_k() / 2);
        const Expr word = packed_word(type, [&](int64_t e) {
          return load(registers, {sum({{down, row}}, register_at(a, r, c0 + e), i32)}, type);
        });
        words_of_step.push_back(l_.make(Store{{a_, {sum({{i_.a_words(), row}}, w, i32)}}, word}));
      }
      Body all{unrolled(row, rows_, std::move(words_of_step))};
      if (steps_ == 1) return all;
      out.push_back(l_.make(If{binary(BinaryOp::Eq, k, constant(step)), std::move(all), {}}));
    }
    return out;
  }

  const Gemm& g_;
  const target::MmaInstruction& i_;
  const GemmChoice& choice_;
  const Team& team_;
  CollectiveLowering& c_;
  Lowering& l_;
  const FragmentLayout& layout_;
  int64_t rows_, columns_, steps_;  // tiles of a warp, steps of k
  Expr warp_, lane_;
  BufferId a_, b_, metadata_;
};

Body multiply_add(const Gemm& g, const FragmentLayout* points, const Team& team, CollectiveLowering& c) {
  Lowering& l = c.l;
  const FragmentLayout& layout = points ? *points : *c.placement.layout_of(g.c.buffer);
  const DType c_type = l.type(g.c.buffer), type = accumulator(c_type);
  const BufferId totals = l.temporary(l.buffer(g.c.buffer).name + "_sum", type, {layout.registers()}, Space::Local);
  const size_t rank = g.a.extent.size();
  const Expr k_extent = widen(g.transpose_a ? g.a.extent[rank - 2] : g.a.extent[rank - 1]);
  const Expr k = l.index("k", k_extent);
  const auto found = c.registers.find(g.c.buffer);
  auto operand = [&](const Region& r, const Expr& row, const Expr& column) {
    Expr e = load(r.buffer, index_in(r, row, column), l.type(r.buffer));
    if (operand_type(l.program, g, r) == tf32) e = cast(bitcast(e, f32), tf32, Rounding::TowardZero);
    return cast(guard_accesses(e, l), type);
  };
  auto target = [&](const Held& at) {
    if (found != c.registers.end()) return Element{found->second, {register_of(layout, at, {0, 1})}};
    return Element{g.c.buffer, index_in(g.c, at.index[0], at.index[1])};
  };
  auto slot = [&](const Held& at) { return register_of(layout, at, {0, 1}); };
  Body out = deal(layout, team, l, {}, [&](const Held& at) {
    Expr start = cast(guard_accesses(load(target(at).buffer, target(at).indices, c_type), l), type);
    if (g.clear) start = select(g.clear, constant(type, int64_t{0}), start);
    return Body{l.make(Store{{totals, {slot(at)}}, start})};
  });
  const auto group = g.is_sparse() ? sparse_group(l.type(g.a.buffer)) : std::nullopt;
  // The row of b that an element of a meets: of a sparse one it is known by its metadata.
  auto met = [&](const Expr& row) -> Expr {
    if (!group) return k;
    const Expr number = binary(BinaryOp::FloorDiv, k, wide(group->kept));
    const Expr bits = guard_accesses(group_bits(g, widen(row), number, l.program), l);
    return kept_column(*group, number, bits, binary(BinaryOp::FloorMod, k, wide(group->kept)));
  };
  Body step = deal(layout, team, l, {}, [&](const Held& at) {
    const Expr row = met(at.index[0]);
    const Expr a = g.transpose_a ? operand(g.a, k, at.index[0]) : operand(g.a, at.index[0], k);
    const Expr b = g.transpose_b ? operand(g.b, at.index[1], row) : operand(g.b, row, at.index[1]);
    const Expr sum = load(totals, {slot(at)}, type);
    return Body{l.make(Store{{totals, {slot(at)}}, type.is_float() ? fma(a, b, sum) : add(mul(a, b), sum)})};
  });
  out.push_back(loop(l, k, wide(0), k_extent, std::move(step)));
  const Body back = deal(layout, team, l, {}, [&](const Held& at) {
    const Body store = guard_accesses({l.make(Store{target(at), cast(load(totals, {slot(at)}, type), c_type)})}, l);
    return found == c.registers.end() && at.first_copy ? Body{l.make(If{at.first_copy, store, {}})} : store;
  });
  out.insert(out.end(), back.begin(), back.end());
  return out;
}

}  // namespace

template <>
Body lower_for_thread(const Gemm& gemm, const Stmt& s, const Team& team, CollectiveLowering& c) {
  const GemmChoice& choice = c.placement.choice_of(s);
  if (choice.wgmma) return lower_wgmma(gemm, choice, team, c);
  if (choice.tile) return lower_register_tile(gemm, choice, team, c);
  return choice.mma ? MmaLowering(gemm, choice, team, c).lower()
                    : multiply_add(gemm, c.placement.points_of(s), team, c);
}

}  // namespace tilewright::passes
