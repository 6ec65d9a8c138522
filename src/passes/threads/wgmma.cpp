// Gemm by wgmma: every warpgroup multiplies its rows, 64 at a time, by its columns, straight from shared memory.
#include "ir/extent.h"
#include "ir/operators.h"
#include "layout/algebra.h"
#include "passes/threads/collectives.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kWarpRows = 16;

class WgmmaLowering {
 public:
  WgmmaLowering(const Gemm& g, const GemmChoice& choice, const Team& team, CollectiveLowering& c)
      : g_(g),
        i_(*choice.wgmma),
        choice_(choice),
        team_(team),
        c_(c),
        l_(c.l),
        layout_(choice.transposed ? permute(*c.placement.layout_of(g.c.buffer), {1, 0})
                                  : *c.placement.layout_of(g.c.buffer)),
        registers_(c.registers.at(g.c.buffer)) {
    steps_ = depth_of(g) / i_.k();
    rows_ = layout_.shape()[0] / choice.warps_m;
    const int64_t columns = layout_.shape()[1] / choice.warps_n;
    n_ = i_.most_columns(columns), parts_ = columns / n_;
    const Expr group =
        team.group ? team.group : binary(BinaryOp::FloorDiv, team.thread, constant(target::kWarpgroupThreads));
    if (choice.warps_m > 1) row0_ = sum({{rows_, binary(BinaryOp::FloorMod, group, constant(choice.warps_m))}}, 0, i32);
    if (choice.warps_n > 1)
      column0_ = sum({{columns, binary(BinaryOp::FloorDiv, group, constant(choice.warps_m))}}, 0, i32);
  }

  Body lower() {
    Body out;
    std::vector<Region> used{whole(registers_, l_.program)};
    if (choice_.a_in_registers) {
      pack_a(out);
      used.push_back(whole(words_, l_.program));
    }
    if (i_.sparse) load_metadata(out);
    out.push_back(l_.make(Fence{FenceProxy::Wgmma, used}));
    const int64_t blocks = rows_ / target::kWgmmaRows;
    const Expr k = counter("k", steps_), row = counter("row", blocks), part = counter("part", parts_);
    const int64_t down = blocks > 1 ? register_at(layout_, target::kWgmmaRows, 0) : 0;
    const int64_t right = parts_ > 1 ? register_at(layout_, 0, n_) : 0;
    check_internal(n_ == 8 || register_at(layout_, 0, 8) == 4, "the accumulators of one wgmma do not lie side by side");
    Wgmma w;
    w.instruction = i_.name(n_);
    w.transpose_a = g_.transpose_a, w.transpose_b = !g_.transpose_b;
    const Expr k0 = scaled(k, i_.k()), ka = scaled(k, i_.a_k()), m0 = add(row0_, scaled(row, target::kWgmmaRows)),
               n0 = add(column0_, scaled(part, n_));
    if (choice_.a_in_registers)
      w.a = {words_, {sum({{4 * steps_, row}, {4, k}}, 0, i32)}, {constant(4)}};
    else
      w.a = g_.transpose_a ? box(g_.a, ka, i_.a_k(), m0, target::kWgmmaRows)
                           : box(g_.a, m0, target::kWgmmaRows, ka, i_.a_k());
    w.b = g_.transpose_b ? box(g_.b, n0, n_, k0, i_.k()) : box(g_.b, k0, i_.k(), n0, n_);
    w.c = {registers_, {sum({{down, row}, {right, part}}, 0, i32)}, {constant(n_ / 2)}};
    w.clear = clear(k);
    if (i_.sparse) w.metadata = {metadata_, {sum({{steps_, row}, {1, k}}, 0, i32)}, {constant(1)}};
    out.push_back(unrolled(k, steps_, {unrolled(row, blocks, {unrolled(part, parts_, {l_.make(w)})})}));
    if (g_.completion.queue == Queue::Wgmma) {
      c_.open.use(registers_);
      if (choice_.a_in_registers) c_.open.use(words_);
      return out;
    }
    out.push_back(l_.make(Commit{Queue::Wgmma}));
    out.push_back(l_.make(Drain{Queue::Wgmma, 0, std::move(used)}));
    return out;
  }

 private:
  Expr counter(const char* name, int64_t extent) { return unrolled_index(l_, name, extent); }
  Stmt unrolled(const Expr& v, int64_t extent, Body body) const {
    if (extent == 1) body = substitute(body, {{id_of(v), constant(0)}});
    return extent == 1 && body.size() == 1
               ? body[0]
               : loop(l_, v, constant(0), constant(extent), std::move(body), LoopKind::Unroll);
  }
  Expr scaled(const Expr& e, int64_t factor) const { return sum({{factor, e}}, 0, i32); }
  Region box(const Region& r, const Expr& first, int64_t rows, const Expr& second, int64_t columns) const {
    Region out{r.buffer, index_in(r, first, second), std::vector<Expr>(r.min.size(), constant(1))};
    const size_t n = r.min.size();
    out.extent[n - 2] = constant(rows), out.extent[n - 1] = constant(columns);
    return out;
  }
  // The first step of a gemm that clears does not read c.
  Expr clear(const Expr& k) const {
    if (!g_.clear || constant_int(g_.clear) == 0) return constant(boolean, int64_t{0});
    const Expr first = steps_ == 1 ? constant(boolean, int64_t{1}) : binary(BinaryOp::Eq, k, constant(0));
    return constant_int(g_.clear) == 1 ? first : logical_and(first, guard_accesses(g_.clear, l_));
  }
  // The words of all steps: each warp has those of its own 16 rows.
  void load_metadata(Body& out) {
    const int64_t blocks = rows_ / target::kWgmmaRows;
    metadata_ = l_.temporary(l_.buffer(g_.metadata.buffer).name + "_words", u32, {blocks * steps_}, Space::Local);
    const Expr k = counter("k", steps_), row = counter("row", blocks);
    const Expr lane = binary(BinaryOp::FloorMod, team_.thread, constant(kWarpThreads));
    const Expr warp = binary(BinaryOp::FloorMod, binary(BinaryOp::FloorDiv, team_.thread, constant(kWarpThreads)),
                             constant(target::kWgmmaRows / kWarpRows));
    const Expr first = add(add(row0_, scaled(row, target::kWgmmaRows)), scaled(warp, kWarpRows));
    const Store one{{metadata_, {sum({{steps_, row}, {1, k}}, 0, i32)}}, metadata_word(g_, first, k, lane, l_)};
    out.push_back(unrolled(row, blocks, {unrolled(k, steps_, {l_.make(one)})}));
  }
  // All of a from the registers of a fragment, before the first step: neighbours along k make a word.
  void pack_a(Body& out) {
    const FragmentLayout& a = *c_.placement.layout_of(g_.a.buffer);
    const BufferId from = c_.registers.at(g_.a.buffer);
    const DType type = l_.type(g_.a.buffer);
    const int64_t per_word = 32 / type.bits, blocks = rows_ / target::kWgmmaRows, half = i_.a_k() / 2;
    // The element at the beginning of a word: words in the order of the instruction, rows eight apart in turn.
    auto row_of = [&](int64_t w) { return w / (steps_ * 4) * target::kWgmmaRows + w % 2 * 8; };
    auto column_of = [&](int64_t w) { return w / 4 % steps_ * i_.a_k() + w / 2 % 2 * half; };
    bool in_order = true;
    for (int64_t w = 0; w < blocks * steps_ * 4; ++w)
      for (int64_t e = 0; e < per_word; ++e)
        in_order = in_order && register_at(a, row_of(w), column_of(w) + e) == w * per_word + e;
    words_ = l_.temporary(l_.buffer(g_.a.buffer).name + "_words", u32, {blocks * steps_ * 4}, Space::Local);
    if (in_order) {  // the fragment's registers are the words
      l_.program.buffers[words_.index].root = from;
      return;
    }
    for (int64_t w = 0; w < blocks * steps_ * 4; ++w) {
      const Expr word = packed_word(
          type, [&](int64_t e) { return load(from, {constant(register_at(a, row_of(w), column_of(w) + e))}, type); });
      out.push_back(l_.make(Store{{words_, {constant(w)}}, word}));
    }
  }

  const Gemm g_;
  const target::WgmmaInstruction& i_;
  const GemmChoice& choice_;
  const Team& team_;
  CollectiveLowering& c_;
  Lowering& l_;
  const FragmentLayout layout_;
  const BufferId registers_;
  BufferId words_, metadata_;
  Expr row0_ = constant(0), column0_ = constant(0);  // of the warpgroup
  int64_t steps_ = 0, rows_ = 0, n_ = 0, parts_ = 0;
};

}  // namespace

Body lower_wgmma(const Gemm& gemm, const GemmChoice& choice, const Team& team, CollectiveLowering& c) {
  return WgmmaLowering(choice.transposed ? transpose_of(gemm) : gemm, choice, team, c).lower();
}

}  // namespace tilewright::passes
