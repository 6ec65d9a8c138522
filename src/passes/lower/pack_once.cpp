#include "passes/lower/pack_once.h"

#include <algorithm>

#include "analysis/body_order.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/strands.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Blocks that share a tile: of fewer, what they save is less than to write the tiles and to read them again. Workspaces
// of more bytes are left.
constexpr int64_t kFewestBlocks = 4, kMostBytes = int64_t{1} << 28;

Expr wide(int64_t value) { return constant(i64, value); }
Expr widened(const Expr& e) { return cast(e, i64); }

class PackOnce {
 public:
  PackOnce(LoopProgram& program, const Launch& launch, const std::set<BufferId>& copied)
      : program_(program), launch_(launch), grid_(*launch.body.front().as<For>()), copied_(copied) {
    for (BufferId id : changed_roots(grid_.body, program)) written_.insert(id);
  }

  // The launches before, and this one; none: nothing to bring once.
  std::optional<std::vector<Launch>> run() {
    Body out;
    for (const Stmt& s : grid_.body) {
      if (const auto* n = s.as<Let>()) lets_[n->var] = s;
      const auto* loop = s.as<For>();
      if (loop && loop->kind == LoopKind::Serial && constant_int(loop->begin) == 0)
        of_loop(s, out);
      else
        out.push_back(s);
    }
    if (before_.empty()) return std::nullopt;
    Launch rest = launch_;
    For grid = grid_;
    grid.body = std::move(out);
    rest.body = {make_stmt(std::move(grid), launch_.body.front()->location)};
    before_.push_back(std::move(rest));
    return std::move(before_);
  }

 private:
  // A tile of a loop's body, and the statements that bring it.
  struct Tile {
    BufferId id;
    std::vector<size_t> makers;  // of the loop's body
    std::vector<size_t> dims;    // of the grid: blocks of other numbers in these have other tiles
    std::set<VarId> lets;        // of the block and of the turn, that the makers read
    Expr count, blocks;          // of tiles; of blocks that share one
    BufferId packed;
  };

  void of_loop(const Stmt& s, Body& out) {
    const For& loop = *s.as<For>();
    const auto turns = most_turns(loop);
    std::vector<Tile> tiles;
    std::set<BufferId> seen;
    for (size_t k = 0; turns && k < loop.body.size(); ++k) {
      const auto* g = loop.body[k].as<Gemm>();
      if (!g) continue;
      for (const Region* r : {&g->a, &g->b})
        if (seen.insert(r->buffer).second)
          if (auto tile = tile_of(loop, r->buffer, *turns)) tiles.push_back(std::move(*tile));
    }
    if (tiles.empty()) return out.push_back(s);
    Expr wanted = constant(boolean, int64_t{1});
    for (const Tile& t : tiles) {
      Expr fits = binary(BinaryOp::Le, wide(kFewestBlocks), t.blocks);
      const int64_t bytes = tile_bytes(t.id);
      fits = binary(BinaryOp::And, fits, binary(BinaryOp::Le, t.count, wide(kMostBytes / bytes)));
      wanted = binary(BinaryOp::And, wanted, fits);
    }
    if (constant_int(wanted) == 0) return out.push_back(s);
    Expr there = constant(boolean, int64_t{1});
    std::map<BufferId, BufferId> packed;
    for (Tile& t : tiles) {
      const Expr count = select(wanted, t.count, wide(0));
      const BufferId workspace = workspace_of(t, count);
      t.packed = view_of(t, workspace, loop, *turns);
      packed[t.id] = t.packed;
      const Expr is_there =
          binary(BinaryOp::Ne, bitcast(address(workspace, first_of(workspace)), u64), constant(u64, int64_t{0}));
      there = binary(BinaryOp::And, there, is_there);
    }
    for (const Tile& t : tiles) before_.push_back(bringing(t, loop, *turns, select(wanted, t.count, wide(0)), there));
    const VarId is_packed = program_.new_var("packed", boolean);
    out.push_back(make_stmt(Let{is_packed, there}, s->location));
    const Expr condition = var(is_packed, boolean);
    For rest = loop;
    rest.body.clear();
    for (size_t k = 0; k < loop.body.size(); ++k) {
      const Stmt& x = loop.body[k];
      const bool makes = std::ranges::any_of(tiles, [&](const Tile& t) { return std::ranges::count(t.makers, k) > 0; });
      if (makes)
        rest.body.push_back(make_stmt(If{unary(UnaryOp::Not, condition), {x}, {}}, x->location));
      else if (x.as<Gemm>() &&
               std::ranges::any_of(tiles, [&](const Tile& t) { return used_buffers({x}).contains(t.id); }))
        rest.body.push_back(make_stmt(If{condition, with_buffers({x}, packed), {x}}, x->location));
      else
        rest.body.push_back(x);
    }
    out.push_back(make_stmt(std::move(rest), s->location));
  }

  int64_t tile_bytes(BufferId id) const {
    const Buffer& b = program_.buffer(id);
    int64_t bits = b.type.storage_bits();
    for (const Expr& e : b.shape) bits *= *constant_int(e);
    return std::max<int64_t>(1, bits / 8);
  }
  int64_t tile_elements(BufferId id) const { return tile_bytes(id) * 8 / program_.buffer(id).type.storage_bits(); }
  std::vector<Expr> first_of(BufferId id) const { return std::vector<Expr>(program_.buffer(id).rank(), wide(0)); }

  // ---- which tiles
  std::optional<Tile> tile_of(const For& loop, BufferId id, const Expr& turns) const {
    const Buffer& b = program_.buffer(id);
    if (!b.tile || !copied_.contains(id) || b.is_view() || b.space == Space::Global || b.type.is_packed()) return {};
    for (const Buffer& other : program_.buffers)
      if (other.is_view() && other.root == id) return {};
    Tile tile;
    tile.id = id;
    for (const Stmt& s : grid_.body)
      if (s.as<For>() != &loop && used_buffers({s}).contains(id)) return {};
    bool is_made = false;
    for (size_t k = 0; k < loop.body.size(); ++k) {
      const Stmt& s = loop.body[k];
      if (!used_buffers({s}).contains(id)) continue;
      if (const auto* g = s.as<Gemm>()) {
        if (!is_made || g->c.buffer == id) return {};
      } else {
        if (!only_brings(s, id)) return {};
        is_made = true, tile.makers.push_back(k);
      }
    }
    if (!is_made || !find_names(loop, tile)) return {};
    for (size_t d : tile.dims)
      if (most_of_.contains(launch_.block[d])) return {};
    tile.count = turns, tile.blocks = wide(1);
    for (size_t d = 0; d < launch_.grid.size(); ++d) {
      const bool own = std::ranges::count(tile.dims, d) > 0;
      (own ? tile.count : tile.blocks) = mul(own ? tile.count : tile.blocks, widened(launch_.grid[d]));
    }
    if (constant_int(tile.blocks).value_or(kFewestBlocks) < kFewestBlocks) return {};
    return tile;
  }
  // Nothing but stores to the tile of what tensors hold that the launch leaves alone.
  bool only_brings(const Stmt& s, BufferId id) const {
    bool brings = true;
    walk({s}, [&](const Stmt& x) {
      const auto* f = x.as<For>();
      const auto* store = x.as<Store>();
      const auto* transpose = x.as<Transpose>();
      brings = brings && ((f && f->kind != LoopKind::Grid) || x.as<If>() || x.as<Let>() || store || transpose);
    });
    for (BufferId used : used_buffers({s})) {
      if (used == id) continue;
      const bool tensor = program_.buffer(program_.root(used)).space == Space::Global;
      brings = brings && tensor && !analysis::may_overlap(used, written_, program_);
    }
    walk_exprs({s}, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      brings = brings && !(n && n->buffer == id);
    });
    return brings;
  }
  // What the makers read that the block or the turn knows.
  bool find_names(const For& loop, Tile& tile) const {
    std::map<VarId, Stmt> lets = lets_;
    for (size_t k = 0; k < tile.makers.back(); ++k)
      if (const auto* n = loop.body[k].as<Let>()) lets[n->var] = loop.body[k];
    std::set<VarId> asked, known = {loop.var};
    for (VarId v : program_.symbols) known.insert(v);
    for (const Param& p : program_.params)
      if (!p.is_tensor()) known.insert(p.var);
    auto ask = [&](const Body& body) {
      for (VarId v : used_vars(body)) asked.insert(v);
      for (BufferId id : used_buffers(body))
        for (VarId v : vars_of_buffer(program_, id)) asked.insert(v);
    };
    for (size_t k : tile.makers) {
      ask({loop.body[k]});
      for (VarId v : bound_vars({loop.body[k]})) known.insert(v);
    }
    while (!asked.empty()) {
      const VarId v = *asked.begin();
      asked.erase(asked.begin());
      if (!known.insert(v).second) continue;
      const auto at = std::ranges::find(launch_.block, v);
      if (at != launch_.block.end()) {
        tile.dims.push_back(static_cast<size_t>(at - launch_.block.begin()));
        continue;
      }
      const auto let = lets.find(v);
      if (let == lets.end() || !used_buffers({let->second}).empty()) return false;
      tile.lets.insert(v);
      ask({let->second});
    }
    std::ranges::sort(tile.dims);
    return true;
  }

  // ---- how many turns a block takes at most, by what is known before the launch
  // Where it is by the block with the largest numbers, a tile that is its alone would be read beyond the turns of
  // others.
  std::optional<Expr> most_turns(const For& loop) {
    most_of_.clear();
    Expr e = loop.extent;
    for (size_t depth = 0; depth <= lets_.size(); ++depth) {
      Substitution values;
      for (VarId v : used_vars(e)) {
        const auto at = std::ranges::find(launch_.block, v);
        const auto let = lets_.find(v);
        if (at != launch_.block.end()) {
          if (!grows_with(e, v)) return {};
          const Expr blocks = launch_.grid[static_cast<size_t>(at - launch_.block.begin())];
          most_of_.insert(v);
          values[v] = cast(sub(blocks, constant(blocks->type, int64_t{1})), program_.var(v).type);
        } else if (let != lets_.end()) {
          values[v] = let->second.as<Let>()->value;
        }
      }
      if (values.empty()) break;
      e = substitute(e, values);
    }
    bool loads = false;
    walk(e, [&](const Expr& x) { loads = loads || x.as<Load>(); });
    return loads || used_vars(e).contains(grid_.var) ? std::nullopt : std::optional(widened(e));
  }
  static bool grows_with(const Expr& e, VarId v) {
    if (!used_vars(e).contains(v) || e.as<Var>()) return true;
    if (const auto* n = e.as<Cast>()) return grows_with(n->value, v);
    if (const auto* n = e.as<ir::Sum>())
      return std::ranges::all_of(n->terms, [&](const Term& t) {
        return !used_vars(t.value).contains(v) || (t.coefficient > 0 && grows_with(t.value, v));
      });
    const auto* n = e.as<Binary>();
    if (!n) return false;
    if (n->op == BinaryOp::Min || n->op == BinaryOp::Max) return grows_with(n->a, v) && grows_with(n->b, v);
    return n->op == BinaryOp::FloorDiv && constant_int(n->b).value_or(0) > 0 && grows_with(n->a, v);
  }

  // ---- what comes of them
  BufferId workspace_of(const Tile& t, const Expr& count) {
    Buffer b = program_.buffer(t.id);
    b.name += "_packed", b.space = Space::Global, b.workspace = true, b.launch = -1;
    b.shape.insert(b.shape.begin(), count);
    return program_.new_buffer(std::move(b));
  }
  // The tile of a block and a turn, by their numbers.
  BufferId view_of(const Tile& t, BufferId workspace, const For& loop, const Expr& turns) {
    Expr number = wide(0);
    for (size_t d : t.dims)
      number = add(mul(number, widened(launch_.grid[d])),
                   widened(var(launch_.block[d], program_.var(launch_.block[d]).type)));
    number = add(mul(number, turns), widened(var(loop.var, program_.var(loop.var).type)));
    Buffer b = program_.buffer(t.id);
    b.space = Space::Global, b.launch = -1, b.root = workspace;
    b.offset = mul(number, wide(tile_elements(t.id)));
    return program_.new_buffer(std::move(b));
  }
  Launch bringing(const Tile& t, const For& loop, const Expr& turns, const Expr& count, const Expr& there) {
    const LocationId at = loop.body[t.makers.front()]->location;
    For grid = grid_;
    grid.var = program_.new_var("block", i64), grid.extent = count, grid.body.clear();
    Expr number = var(grid.var, i64);
    Body body;
    auto bind = [&](VarId v, const Expr& extent, bool last) {
      const Expr value = last ? number : binary(BinaryOp::FloorMod, number, extent);
      body.push_back(make_stmt(Let{v, cast(value, program_.var(v).type)}, at));
      number = binary(BinaryOp::FloorDiv, number, extent);
    };
    bind(loop.var, turns, t.dims.empty());
    for (size_t k = t.dims.size(); k-- > 0;) bind(launch_.block[t.dims[k]], widened(launch_.grid[t.dims[k]]), k == 0);
    for (const Stmt& s : grid_.body)
      if (const auto* n = s.as<Let>(); n && t.lets.contains(n->var)) body.push_back(s);
    for (size_t k = 0; k < loop.body.size(); ++k) {
      const auto* n = loop.body[k].as<Let>();
      if (n && t.lets.contains(n->var)) body.push_back(loop.body[k]);
      if (std::ranges::count(t.makers, k) > 0) body.push_back(with_buffers({loop.body[k]}, {{t.id, t.packed}})[0]);
    }
    grid.body = {make_stmt(If{there, std::move(body), {}}, at)};
    Launch out;
    out.name = launch_.name, out.threads = launch_.threads, out.thread = launch_.thread, out.location = at;
    out.grid = {constant(i32, int64_t{1})}, out.block = {program_.new_var("bx", i32)};
    out.body = {make_stmt(std::move(grid), at)};
    return out;
  }

  LoopProgram& program_;
  const Launch& launch_;
  const For& grid_;
  const std::set<BufferId>& copied_;
  std::set<BufferId> written_;
  std::map<VarId, Stmt> lets_;  // of the block, so far
  std::set<VarId> most_of_;     // the block's numbers by which the turns of the loop at hand are counted
  std::vector<Launch> before_;
};

}  // namespace

std::optional<std::vector<Launch>> pack_once(LoopProgram& program, const Launch& launch,
                                             const std::set<BufferId>& copied) {
  if (has_waits(launch)) return std::nullopt;
  return PackOnce(program, launch, copied).run();
}

}  // namespace tilewright::passes
