// Blocks that take equal runs of turns of a loop of products, over the tiles of a grid, as statements.
#include "analysis/accessed.h"
#include "analysis/summed_turns.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/assume_fast_calls.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/schedules.h"
#include "passes/schedule/walk_tiles.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Streamer {
 public:
  Streamer(TileProgram& p, Launch& launch, int64_t blocks, analysis::SplitLoop split)
      : p_(p), tiles_(launch), launch_(launch), split_(std::move(split)), type_(blocks_are_few(launch, p) ? i32 : i64) {
    const auto at = launch.body.begin() + static_cast<std::ptrdiff_t>(split_.at);
    loop_ = *at, at_ = loop_->location;
    before_.assign(launch.body.begin(), at), after_.assign(at + 1, launch.body.end());
    blocks_ = number(type_, blocks);
    block_ = var(p.new_var("block", i32), i32);
    for (BufferId id : split_.sums) left_.push_back(workspace_of(id, blocks));
  }

  Body run() {
    launch_.body.clear();
    cut_runs();
    Body ends = launch_.body;  // whoever runs them knows the run by names of his own
    For turns;
    turns.var = p_.new_var("turn", i32), turns.begin = number(i32, 0);
    turns.extent = add(cast(whole_waves_, i32), parts_);
    turns.body = turn(var(turns.var, i32));
    launch_.body.push_back(make_stmt(std::move(turns), at_));
    launch_.grid = {cast(blocks_, i32)}, launch_.block = {block_.as<Var>()->id}, launch_.swizzle = {};
    ends.push_back(make_stmt(If{ends_begun_tile(), ends_of_others(), {}}, at_));
    return renamed(p_, std::move(ends));
  }

 private:
  static Expr number(DType type, int64_t n) { return constant(type, n); }
  static Expr least(const Expr& a, const Expr& b) { return binary(BinaryOp::Min, a, b); }
  static Expr most(const Expr& a, const Expr& b) { return binary(BinaryOp::Max, a, b); }
  static Expr quotient(const Expr& a, const Expr& b) { return binary(BinaryOp::FloorDiv, a, b); }
  static Expr less(const Expr& a, const Expr& b) { return binary(BinaryOp::Lt, a, b); }
  static Expr both(const Expr& a, const Expr& b) { return binary(BinaryOp::And, a, b); }
  Expr named(const char* name, const Expr& value, Body& to) {
    if (is_constant(value)) return value;
    const VarId id = p_.new_var(name, value->type);
    to.push_back(make_stmt(Let{id, value}, at_));
    return var(id, value->type);
  }
  Expr named(const char* name, const Expr& value) { return named(name, value, launch_.body); }

  BufferId workspace_of(BufferId sum, int64_t blocks) {
    Buffer b;
    b.name = p_.buffer(sum).name + "_left", b.type = p_.buffer(sum).type, b.shape = p_.buffer(sum).shape;
    b.shape.insert(b.shape.begin(), number(i32, blocks));
    b.workspace = true, b.location = launch_.location;
    return p_.new_buffer(std::move(b));
  }

  // Turns are numbered from the first of the first tile on. A tile without turns counts as one that has one.
  void cut_runs() {
    const Expr one = number(type_, 1);
    const Expr tiles = named("tiles", cast(blocks_of(tiles_), type_));
    own_turns_ = named("turns", cast(loop_.as<For>()->extent, i32));
    turns_ = named("tile_turns", most(own_turns_, number(i32, 1)));
    whole_waves_ = named("whole_waves", most(sub(quotient(tiles, blocks_), one), number(type_, 0)));
    streamed_ = named("streamed_tiles", sub(tiles, mul(whole_waves_, blocks_)));
    const Expr turns = cast(turns_, i64), all = mul(cast(streamed_, i64), turns), blocks = cast(blocks_, i64);
    each_ = named("run", quotient(all, blocks)), more_ = named("longer_runs", sub(all, mul(each_, blocks)));
    const Expr first = named("first_turn", first_of(cast(block_, i64)));
    const Expr end = named("end_turn", first_of(add(cast(block_, i64), number(i64, 1))));
    const Expr last = sub(end, number(i64, 1)), first_tile = quotient(first, turns), last_tile = quotient(last, turns);
    first_tile_ = named("first_tile", cast(first_tile, type_)), last_tile_ = named("last_tile", cast(last_tile, type_));
    begin_ = named("begin_in_first", cast(sub(first, mul(cast(first_tile_, i64), turns)), i32));
    end_ = named("end_in_last", cast(sub(end, mul(cast(last_tile_, i64), turns)), i32));
    const Expr parts = cast(add(sub(last_tile_, first_tile_), one), i32);
    parts_ = named("run_tiles", select(less(first, end), parts, number(i32, 0)));
  }
  Expr first_of(const Expr& block) const { return add(mul(block, each_), least(block, more_)); }

  // The last tile of the run comes first, so that others have its sums early; then whole tiles, then the first of the
  // run.
  Body turn(const Expr& turn) {
    const Expr early = most(sub(parts_, number(i32, 1)), number(i32, 0)), waves = cast(whole_waves_, i32);
    const Expr whole = add(add(streamed_, cast(block_, type_)), mul(cast(sub(turn, early), type_), blocks_));
    Body out;
    const Expr tile = named("tile",
                            select(less(turn, early), sub(last_tile_, cast(turn, type_)),
                                   select(less(turn, add(early, waves)), whole, first_tile_)),
                            out);
    append(out, bind_tile(p_, tiles_, tile));
    const auto is = [&](const Expr& of_run) { return both(less(tile, streamed_), binary(BinaryOp::Eq, tile, of_run)); };
    const Expr begin = named("tile_begin", select(is(first_tile_), begin_, number(i32, 0)), out);
    const Expr end = named("tile_end", select(is(last_tile_), end_, turns_), out);
    append(out, before_);
    out.push_back(make_stmt(own_turns(begin, least(end, own_turns_)), at_));
    const Expr ends = binary(BinaryOp::Eq, end, turns_);
    const Expr begins = binary(BinaryOp::Eq, begin, number(i32, 0));
    out.push_back(make_stmt(If{both(begins, ends), after_, {}}, at_));
    out.push_back(make_stmt(If{less(end, turns_), leave(), {}}, at_));
    return out;
  }
  // The loop counts from its beginning, so that it knows its first turn.
  For own_turns(const Expr& begin, const Expr& end) const {
    const For& loop = *loop_.as<For>();
    const DType type = p_.var(loop.var).type;
    For f = loop;
    f.extent = cast(sub(end, begin), loop.extent->type);
    const Substitution turn{{loop.var, add(var(loop.var, type), cast(begin, type))}};
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
  Body leave() const {
    Body out;
    for (size_t i = 0; i < split_.sums.size(); ++i) {
      const Buffer& b = p_.buffer(split_.sums[i]);
      Copy c;
      c.from = {split_.sums[i], std::vector<Expr>(b.rank(), number(i32, 0)), b.shape};
      c.to = c.from, c.to.buffer = left_[i];
      c.to.min.insert(c.to.min.begin(), block_), c.to.extent.insert(c.to.extent.begin(), number(i32, 1));
      out.push_back(make_stmt(std::move(c), at_));
    }
    return out;
  }

  // ---- behind the barrier of all blocks
  Expr ends_begun_tile() const {
    const Expr one_tile = binary(BinaryOp::Eq, first_tile_, last_tile_);
    const Expr ends = select(one_tile, end_, turns_);
    return both(less(number(i32, 0), parts_), both(less(number(i32, 0), begin_), binary(BinaryOp::Eq, ends, turns_)));
  }
  Body ends_of_others() {
    Body out = bind_tile(p_, tiles_, first_tile_);
    for (const Stmt& s : before_)
      if (!makes_sum(s)) out.push_back(s);
    // The block whose run has the first turn of the tile.
    const Expr one = number(i64, 1), turn = mul(cast(first_tile_, i64), cast(turns_, i64));
    const Expr longer = mul(more_, add(each_, one));
    const Expr owner = select(less(turn, longer), quotient(turn, add(each_, one)),
                              add(more_, quotient(sub(turn, longer), most(each_, one))));
    For others;
    others.var = p_.new_var("other", i32), others.begin = number(i32, 0);
    others.extent = sub(block_, cast(owner, i32));
    const Expr other = sub(sub(block_, number(i32, 1)), var(others.var, i32));
    for (size_t i = 0; i < split_.sums.size(); ++i) others.body.push_back(add_to(split_.sums[i], left_[i], other));
    out.push_back(make_stmt(std::move(others), at_));
    append(out, after_);
    return out;
  }
  bool makes_sum(const Stmt& s) const {
    const analysis::Buffers used = analysis::accessed_by({s}, p_);
    return std::ranges::any_of(split_.sums, [&](BufferId id) { return used.contains(id); });
  }
  Stmt add_to(BufferId sum, BufferId left, const Expr& block) {
    const Buffer b = p_.buffer(sum);
    Map m = map_over(p_, b.shape);
    const std::vector<Expr> point = point_of(m);
    std::vector<Expr> there{block};
    there.insert(there.end(), point.begin(), point.end());
    m.body.push_back(make_stmt(Store{{sum, point}, add(load(sum, point, b.type), load(left, there, b.type))}, at_));
    return make_stmt(std::move(m), at_);
  }

  TileProgram& p_;
  const Launch tiles_;  // as it was
  Launch& launch_;
  const analysis::SplitLoop split_;
  const DType type_;  // of numbers of tiles
  Stmt loop_;
  LocationId at_;
  Body before_, after_;
  Expr blocks_, block_;
  std::vector<BufferId> left_;                         // by the sum: what runs leave, by the block
  Expr own_turns_, turns_;                             // of a tile; as runs count them
  Expr whole_waves_, streamed_;                        // ...; tiles, the first ones, that runs take
  Expr each_, more_;                                   // turns of a run; how many runs have one more
  Expr first_tile_, last_tile_, begin_, end_, parts_;  // of this block's run: tiles, turns in them, how many tiles
};

}  // namespace

Ending stream_k(TileProgram& program, Launch& launch, const plan::Use& use) {
  std::string why;
  auto split = analysis::streamed_loop(program, launch, why);
  check_internal(split.has_value(), "a launch is streamed that cannot be: {}", why);
  return {.of_others = Streamer(program, launch, use.number, std::move(*split)).run()};
}

}  // namespace tilewright::passes
