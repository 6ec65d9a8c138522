// A loop of products whose turns the blocks of a cluster share, as statements.
#include "analysis/summed_turns.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/schedules.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Splitter {
 public:
  Splitter(TileProgram& p, Launch& launch, int64_t blocks, analysis::SplitLoop split)
      : p_(p), launch_(launch), blocks_(blocks), split_(std::move(split)) {}

  void run() {
    const Stmt loop = launch_.body[split_.at];
    at_ = loop->location;
    part_ = add_cluster_dimension(p_, launch_, blocks_);
    const auto rest = launch_.body.begin() + static_cast<std::ptrdiff_t>(split_.at) + 1;
    Body after(rest, launch_.body.end());
    launch_.body.erase(rest - 1, launch_.body.end());
    launch_.body.push_back(make_stmt(own_turns(*loop.as<For>()), at_));
    const int64_t warps = launch_.thread_count() / kWarpThreads;
    free_ = new_barriers(p_, launch_, BarrierUse::Empty, "sums_free", 1, warps);
    full_ = new_barriers(p_, launch_, BarrierUse::Full, "sums_full", 1, warps * (blocks_ - 1));
    for (BufferId id : split_.sums) tiles_.push_back(tiles_of(id));
    Body first = gather();
    append(first, std::move(after));
    const Expr is_first = binary(BinaryOp::Eq, part_, number(0));
    launch_.body.push_back(make_stmt(If{is_first, std::move(first), hand_over()}, at_));
  }

 private:
  static Expr number(int64_t n) { return constant(i32, n); }
  Element only(BufferId barriers) const { return {barriers, {number(0)}}; }

  // The loop counts from its beginning, so that it knows its first turn.
  For own_turns(const For& loop) const {
    const DType type = p_.var(loop.var).type;
    const Expr part = cast(part_, type), turns = cast(loop.extent, type), blocks = constant(type, blocks_);
    const Expr each = binary(BinaryOp::FloorDiv, turns, blocks), more = binary(BinaryOp::FloorMod, turns, blocks);
    Expr first = mul(part, each);
    For f = loop;
    f.extent = each;
    if (constant_int(more) != 0) {
      first = add(first, binary(BinaryOp::Min, part, more));
      f.extent = select(binary(BinaryOp::Lt, part, more), add(each, constant(type, int64_t{1})), each);
    }
    const Substitution turn{{loop.var, add(var(loop.var, type), first)}};
    f.body.clear();
    for (const Stmt& s : loop.body) {
      Stmt own = substitute(Body{s}, turn)[0];
      if (const auto* was = s.as<Gemm>(); was && was->clear) {
        Gemm g = *own.as<Gemm>();
        g.clear = was->clear;
        own = make_stmt(std::move(g), s->location);
      }
      f.body.push_back(std::move(own));
    }
    return f;
  }

  // Of each block but the first: the tile that its sums come to.
  std::vector<BufferId> tiles_of(BufferId sum) {
    std::vector<BufferId> out;
    for (int64_t block = 1; block < blocks_; ++block) {
      Buffer b;
      b.name = fmt::format("{}_of_{}", p_.buffer(sum).name, block);
      b.type = p_.buffer(sum).type, b.shape = p_.buffer(sum).shape, b.space = Space::Shared;
      b.launch = static_cast<int32_t>(&launch_ - p_.launches.data()), b.location = launch_.location;
      out.push_back(p_.new_buffer(std::move(b)));
    }
    return out;
  }
  BufferId in_first_block(BufferId tile) {
    Buffer b = p_.buffer(tile);
    b.name += "_there", b.root = tile, b.cta = number(0);
    return p_.new_buffer(std::move(b));
  }
  static Region whole(BufferId id, const Buffer& b) { return {id, std::vector<Expr>(b.rank(), number(0)), b.shape}; }

  // The first block: the others may write what its loop has used until now; then it adds what they wrote.
  Body gather() {
    Body out;
    for (int64_t block = 1; block < blocks_; ++block) out.push_back(arrive(free_, number(block)));
    out.push_back(make_stmt(Wait{only(full_), number(0)}, at_));
    for (size_t i = 0; i < split_.sums.size(); ++i) out.push_back(add_all(split_.sums[i], tiles_[i]));
    return out;
  }
  Stmt add_all(BufferId sum, const std::vector<BufferId>& tiles) {
    const Buffer& b = p_.buffer(sum);
    const DType type = b.type;
    Map m = map_over(p_, b.shape);
    const std::vector<Expr> point = point_of(m);
    Expr value = load(sum, point, type);
    for (BufferId tile : tiles) value = add(value, load(tile, point, type));
    m.body.push_back(make_stmt(Store{{sum, point}, value}, at_));
    return make_stmt(std::move(m), at_);
  }
  // Each of the others.
  Body hand_over() {
    Body out{make_stmt(Wait{only(free_), number(0)}, at_)};
    for (int64_t block = 1; block < blocks_; ++block) {
      Body copies;
      for (size_t i = 0; i < split_.sums.size(); ++i) {
        const BufferId to = in_first_block(tiles_[i][static_cast<size_t>(block - 1)]);
        const Buffer& b = p_.buffer(split_.sums[i]);
        Copy c;
        c.from = whole(split_.sums[i], b), c.to = whole(to, b);
        copies.push_back(make_stmt(std::move(c), at_));
      }
      if (blocks_ == 2)
        append(out, std::move(copies));
      else
        out.push_back(make_stmt(If{binary(BinaryOp::Eq, part_, number(block)), std::move(copies), {}}, at_));
    }
    out.push_back(arrive(full_, number(0)));
    return out;
  }
  Stmt arrive(BufferId barriers, Expr block) const { return arrive_by_warps(only(barriers), at_, std::move(block)); }

  TileProgram& p_;
  Launch& launch_;
  const int64_t blocks_;
  const analysis::SplitLoop split_;
  LocationId at_;
  Expr part_;                                 // the number of the block in its cluster
  BufferId free_, full_;                      // the first block's loop is over; the others' sums are there
  std::vector<std::vector<BufferId>> tiles_;  // by the sum
};

}  // namespace

Ending split_turns(TileProgram& program, Launch& launch, const plan::Use& use) {
  const int64_t blocks = use.number;
  std::string why;
  auto split = analysis::split_loop(program, launch, blocks, why);
  check_internal(split.has_value(), "a launch is split that cannot be: {}", why);
  Splitter(program, launch, blocks, std::move(*split)).run();
  return {};
}

}  // namespace tilewright::passes
