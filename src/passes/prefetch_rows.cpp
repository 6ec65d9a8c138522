#include "passes/prefetch_rows.h"

#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/stream_stores.h"
#include "passes/transpose_tiles.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr size_t kTransposeArguments = 8;  // without the next box

// Rows shorter than kLongRow are over before memory answers; more than kMost, and what is fetched pushes out what is in
// use (32 KiB are nearest on the processors we know). A tile is in use for longer than a row, and often copied or
// beside another of its size: of one larger than kMostOfTile, the second cache holds the next.
constexpr int64_t kLongRow = 1024, kMost = 24576, kMostOfTile = 8192, kMostOfBlock = 65536, kLine = 64, kPage = 4096;
constexpr int64_t kMostParts = 4;  // of a lane: as many as there are 8-bit elements in 32 bits

// Consecutive elements of a global tensor that one iteration of a loop reads.
struct Row {
  BufferId buffer;
  std::vector<Expr> first;
  int64_t elements = 0;
};

Expr wide(int64_t value) { return constant(i64, value); }

// The most that an extent can be, where its text tells.
std::optional<int64_t> most(const Expr& e) {
  if (const auto c = constant_int(e)) return c;
  if (const auto* n = e.as<Cast>()) return most(n->value);
  const auto* n = e.as<Binary>();
  if (!n || (n->op != BinaryOp::Min && n->op != BinaryOp::Max)) return std::nullopt;
  const auto a = most(n->a), b = most(n->b);
  if (a && b) return n->op == BinaryOp::Min ? std::min(*a, *b) : std::max(*a, *b);
  return n->op == BinaryOp::Min ? (a ? a : b) : std::nullopt;
}

bool has_loads(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found = found || x.as<Load>(); });
  return found;
}

// A variable of 64 bits, or of fewer by way of a cast.
Expr replaced(const Expr& e, VarId v, const Expr& value) {
  return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
    const auto* n = x.as<Var>();
    return n && n->id == v ? std::optional(cast(value, x->type)) : std::nullopt;
  });
}

// With the values of variables in their places.
Expr inlined(Expr e, const std::unordered_map<VarId, Expr>& lets) {
  for (size_t depth = 0; depth < lets.size(); ++depth) {
    const Expr before = e;
    e = rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      const auto* n = x.as<Var>();
      const auto at = n ? lets.find(n->id) : lets.end();
      return at == lets.end() ? std::nullopt : std::optional(at->second);
    });
    if (e.same(before)) break;
  }
  return e;
}

class Prefetch {
 public:
  Prefetch(LoopProgram& program, const For& grid) : program_(program), grid_(grid), block_(round_of(grid)) {
    walk(grid.body, [&](const Stmt& s) { has_products_ = has_products_ || s.as<Gemm>(); });
  }

  Body run() { return ahead(body(grid_.body), block_); }

 private:
  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) out.push_back(inside(s));
    return out;
  }
  Stmt inside(const Stmt& s) {
    if (const auto* n = s.as<If>())
      return make_stmt(If{n->condition, body(n->then_body), body(n->else_body)}, s->location);
    const auto* n = s.as<For>();
    if (!n || n->kind != LoopKind::Serial) return s;
    For f = *n;
    if (!long_rows(f)) {
      f.body = body(n->body);
      // A loop around nothing but another walks one tile with it.
      if (f.body.size() > 1) f.body = ahead(std::move(f.body), round_of(f));
    }
    return make_stmt(std::move(f), s->location);
  }

  // A loop and its own variables, which name places in terms of the loop's.
  struct Round {
    VarId var;
    std::unordered_map<VarId, Expr> lets;
  };
  static Round round_of(const For& f) {
    Round round{f.var, {}};
    for (const Stmt& s : f.body)
      if (const auto* n = s.as<Let>()) round.lets[n->var] = n->value;
    return round;
  }
  // The same rows an iteration later; none if that depends on what is read.
  std::vector<Row> later(std::vector<Row> rows, const Round& round) const {
    for (Row& r : rows)
      for (Expr& e : r.first) {
        e = inlined(e, round.lets);
        if (has_loads(e)) return {};
      }
    return rows_at(rows, round.var, add(cast(var(round.var, program_.var(round.var).type), i64), wide(1)));
  }

  bool is_global(BufferId id) const { return program_.buffer(program_.root(id)).space == Space::Global; }

  // ---- what a loop reads
  enum class Of { Loads, LoadsByParts, Stores };
  // The rows of an iteration: those of vectorized loops of the body, alone or by chunks; of lanes that read several
  // rows only by parts.
  std::vector<Row> rows_of(const For& f, Of what) const {
    std::vector<Row> rows;
    for (const Stmt& s : f.body) {
      const auto* n = s.as<For>();
      if (!n) continue;
      if (n->kind == LoopKind::Vectorized) add_rows(*n, nullptr, f, what, rows);
      if (n->kind != LoopKind::Serial) continue;
      for (const Stmt& inner : n->body)
        if (const auto* lanes = inner.as<For>(); lanes && lanes->kind == LoopKind::Vectorized)
          add_rows(*lanes, n, f, what, rows);
    }
    return rows;
  }
  // A body of few turns for each lane, by its turns: elements of several rows that lie side by side in a panel.
  static std::vector<Body> turns_of(const Body& body) {
    const For* parts = nullptr;
    for (const Stmt& s : body)
      if (const auto* n = s.as<For>()) {
        if (parts) return {body};
        parts = n;
      }
    const auto turns = parts ? constant_int(parts->extent) : std::nullopt;
    if (!turns || *turns > kMostParts || constant_int(parts->begin) != 0) return {body};
    std::vector<Body> found;
    for (int64_t turn = 0; turn < *turns; ++turn)
      found.push_back(rewrite_exprs(parts->body, [&](const Expr& e) -> std::optional<Expr> {
        const auto* n = e.as<Var>();
        return n && n->id == parts->var ? std::optional(cast(wide(turn), e->type)) : std::nullopt;
      }));
    return found;
  }
  void add_rows(const For& lanes, const For* chunks, const For& around, Of what, std::vector<Row>& rows) const {
    const std::vector<Body> turns = what == Of::LoadsByParts ? turns_of(lanes.body) : std::vector<Body>{lanes.body};
    for (const Body& turn : turns) {
      std::unordered_map<VarId, Expr> lets;
      for (const Stmt& s : turn)
        if (const auto* n = s.as<Let>()) lets[n->var] = n->value;
      auto add = [&](BufferId buffer, const std::vector<Expr>& indices) {
        const std::optional<Row> row = row_of(lanes, chunks, lets, buffer, indices);
        if (row && is_known_outside(*row, around) && !has(rows, *row)) rows.push_back(*row);
      };
      if (what == Of::Stores)
        walk(turn, [&](const Stmt& s) {
          if (const auto* n = s.as<Store>()) add(n->to.buffer, n->to.indices);
        });
      else
        walk_exprs(turn, [&](const Expr& e) {
          if (const auto* n = e.as<Load>()) add(n->buffer, n->indices);
        });
    }
  }
  // The elements that all lanes, and chunks of them, name together.
  std::optional<Row> row_of(const For& lanes, const For* chunks, const std::unordered_map<VarId, Expr>& lets,
                            BufferId buffer, const std::vector<Expr>& indices) const {
    const auto width = most(lanes.extent), count = chunks ? constant_int(chunks->extent) : 1;
    if (!width || !count || constant_int(lanes.begin) != 0 || (chunks && constant_int(chunks->begin) != 0)) return {};
    const Buffer& b = program_.buffer(buffer);
    if (!is_global(buffer) || b.rank() == 0 || b.type.is_packed()) return {};
    if (!b.strides.empty() && constant_int(b.strides.back()) != 1) return {};
    Row row{buffer, {}, *width * *count};
    for (size_t d = 0; d < b.rank(); ++d) {
      const bool last = d + 1 == b.rank();
      const Expr index = inlined(indices[d], lets);
      if (has_loads(index) || analysis::slope_through_casts(index, lanes.var) != (last ? 1 : 0)) return {};
      if (chunks && analysis::slope_through_casts(index, chunks->var) != (last ? *width : 0)) return {};
      Expr first = replaced(index, lanes.var, wide(0));
      row.first.push_back(chunks ? replaced(first, chunks->var, wide(0)) : first);
    }
    return row;
  }
  // The rows that go around the caches.
  std::vector<Row> rows_streamed(const For& f) const {
    std::vector<Row> rows;
    for (const Stmt& s : f.body) {
      const auto* n = s.as<Call>();
      if (!n || n->function != kStreamRestFunction) continue;
      const Region& to = n->writes[0];
      Row row{to.buffer, to.min, constant_int(to.extent.back()).value_or(0)};
      if (row.elements > 0 && is_known_outside(row, f) && !has(rows, row)) rows.push_back(std::move(row));
    }
    return rows;
  }
  // Can the row's place be told before the iteration begins?
  static bool is_known_outside(const Row& row, const For& around) {
    const std::set<VarId> bound = bound_vars(around.body);
    for (const Expr& e : row.first)
      for (VarId v : used_vars(e))
        if (bound.contains(v)) return false;
    return true;
  }
  static bool has(const std::vector<Row>& rows, const Row& row) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Row& r) { return r.buffer == row.buffer && equal(r.first, row.first); });
  }
  int64_t bytes_of(const Row& row) const { return row.elements * program_.buffer(row.buffer).type.storage_bits() / 8; }
  int64_t bytes_of(const std::vector<Row>& rows) const {
    int64_t bytes = 0;
    for (const Row& r : rows) bytes += bytes_of(r);
    return bytes;
  }
  // Those whose place depends on the variable, at another value of it.
  static std::vector<Row> rows_at(const std::vector<Row>& rows, VarId v, const Expr& value) {
    std::vector<Row> moved;
    for (const Row& r : rows) {
      Row next = r;
      bool moves = false;
      for (Expr& e : next.first) {
        moves = moves || used_vars(e).contains(v);
        e = replaced(e, v, value);
      }
      if (moves) moved.push_back(std::move(next));
    }
    return moved;
  }

  static Stmt call(const Expr& start, const Expr& offset, int64_t bytes, bool nearest, LocationId location) {
    Call c;
    c.function = kPrefetchFunction;
    c.args = {start, offset, wide(bytes), constant(boolean, int64_t{nearest})};
    return make_stmt(std::move(c), location);
  }
  // One line of each page: the first store to a page that no table near the core knows waits, and all behind it.
  static Stmt touch(const Expr& start, const Expr& turn, int64_t bytes, LocationId location) {
    If due;
    due.condition =
        binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, turn, wide(std::max(int64_t{1}, kPage / bytes))), wide(0));
    due.then_body = {call(start, mul(turn, wide(bytes)), kLine, true, location)};
    return make_stmt(std::move(due), location);
  }
  static Expr place_of(const Row& row) { return address(row.buffer, row.first); }
  int64_t lines_per_turn(const Row& row, int64_t turns) const {
    return (bytes_of(row) + kLine * turns - 1) / (kLine * turns);
  }

  // ---- long rows: the next iteration's
  bool long_rows(For& f) {
    const std::vector<Row> read = rows_of(f, Of::Loads), written = rows_streamed(f);
    const int64_t bytes = bytes_of(rows_at(read, f.var, wide(0)));
    if (bytes < kLongRow || bytes > kMost) return false;
    const size_t at = place_in(f.body);
    if (at == f.body.size()) return false;
    const LocationId location = f.body[at]->location;
    For chunks = *f.body[at].as<For>();
    const int64_t turns = *constant_int(chunks.extent);
    const Expr turn = cast(var(chunks.var, program_.var(chunks.var).type), i64);
    Body starts, calls;
    for (const std::vector<Row>* rows : {&read, &written})
      for (const Row& row : *rows) {
        const Expr start = next_of(row, f);
        if (!start) continue;
        const VarId next = program_.new_var("next", pointer);
        starts.push_back(make_stmt(Let{next, start}, location));
        const int64_t share = lines_per_turn(row, turns) * kLine;
        calls.push_back(rows == &read ? call(var(next, pointer), mul(turn, wide(share)), share, true, location)
                                      : touch(var(next, pointer), turn, share, location));
      }
    chunks.body.insert(chunks.body.begin(), calls.begin(), calls.end());
    f.body[at] = make_stmt(std::move(chunks), location);
    f.body.insert(f.body.begin() + static_cast<std::ptrdiff_t>(at), starts.begin(), starts.end());
    return true;
  }
  // Where the row of the next iteration begins; behind the last, that of the next block's first. Empty if it stays.
  Expr next_of(const Row& row, const For& f) const {
    const Expr now = cast(var(f.var, program_.var(f.var).type), i64), next = add(now, wide(1));
    const std::vector<Row> here = rows_at({row}, f.var, next);
    if (here.empty()) return {};
    const auto known = constant_int(f.extent);
    const std::vector<Row> there = later(rows_at({row}, f.var, cast(f.begin, i64)), block_);
    if (!known || constant_int(f.begin) != 0 || there.empty() || !is_known_outside(there[0], grid_))
      return place_of(here[0]);
    return select(binary(BinaryOp::Lt, next, wide(*known)), place_of(here[0]), place_of(there[0]));
  }
  // The loop over chunks that has the memory for itself: none of its own to read, best none to write.
  size_t place_in(const Body& body) const {
    size_t best = body.size();
    int least = 3;
    for (size_t k = 0; k < body.size(); ++k) {
      const auto* n = body[k].as<For>();
      if (!n || n->kind != LoopKind::Serial || constant_int(n->extent).value_or(0) < 4 || constant_int(n->begin) != 0)
        continue;
      bool computes = false, writes = false, reads = false;
      for (const Stmt& inner : n->body) computes = computes || inner.as<For>();
      walk(n->body, [&](const Stmt& x) {
        const auto* store = x.as<Store>();
        writes = writes || x.as<Call>() || (store && is_global(store->to.buffer));
      });
      walk_exprs(n->body, [&](const Expr& e) { reads = reads || (e.as<Load>() && is_global(e.as<Load>()->buffer)); });
      const int busy = reads ? 2 : writes ? 1 : 0;
      if (computes && busy < least) best = k, least = busy;
    }
    return best;
  }

  // ---- short rows, and boxes that are transposed: those of the loop's next iteration, or of the next block
  Body ahead(Body in, const Round& round) {
    for (size_t k = 0; k < in.size(); ++k) {
      if (const auto* n = in[k].as<If>())
        in[k] = make_stmt(If{n->condition, ahead(n->then_body, round), ahead(n->else_body, round)}, in[k]->location);
      if (in[k].as<For>()) short_rows(in, k, round);
      in[k] = box(in[k], round);
    }
    return in;
  }
  void short_rows(Body& body, size_t k, const Round& round) {
    const For& f = *body[k].as<For>();
    const auto turns = f.kind == LoopKind::Serial ? constant_int(f.extent) : std::nullopt;
    if (!turns || constant_int(f.begin) != 0 || has_prefetch(f.body)) return;
    size_t at = k;
    for (size_t other = k + 1; other < body.size(); ++other) {
      const auto* g = body[other].as<For>();
      if (g && g->kind == LoopKind::Serial && constant_int(g->begin) == 0 && constant_int(g->extent) == *turns &&
          !bound_vars(g->body).contains(g->var))
        at = other;
    }
    const std::vector<Row> read = short_rows_of(f, Of::LoadsByParts, round);
    // To store to a line takes as long as to read it. A block with products takes so long that it would be gone again.
    const std::vector<Row> written =
        has_products_ ? std::vector<Row>() : short_rows_of(*body[at].as<For>(), Of::Stores, round);
    const bool both = (bytes_of(read) + bytes_of(written)) * *turns <= kMostOfBlock;
    const int64_t bytes = (bytes_of(read) + (both ? bytes_of(written) : 0)) * *turns;
    if (bytes < kLongRow || bytes > kMostOfBlock) return;
    For last = *body[at].as<For>();
    const Expr turn = cast(var(last.var, program_.var(last.var).type), i64);
    auto fetch = [&](const std::vector<Row>& rows, VarId v) {
      for (Row here : rows) {
        for (Expr& e : here.first) e = replaced(e, v, turn);
        last.body.push_back(
            call(place_of(here), wide(0), lines_per_turn(here, 1) * kLine, bytes <= kMostOfTile, body[at]->location));
      }
    };
    fetch(read, f.var);
    if (both) fetch(written, last.var);
    body[at] = make_stmt(std::move(last), body[at]->location);
  }
  // An iteration later. Not rows that stay, nor parts of one run of memory, where the processor goes ahead by itself
  // (fetched, a sum of two tensors took 9.1 ms instead of 7.1).
  std::vector<Row> short_rows_of(const For& f, Of what, const Round& round) const {
    std::vector<Row> rows = later(rows_of(f, what), round);
    std::erase_if(rows, [&](const Row& r) {
      return rows_at({r}, f.var, wide(0)).empty() ||
             analysis::slope_through_casts(r.first.back(), f.var) == r.elements ||
             (what == Of::Stores && bytes_of(r) < kLine);
    });
    return rows;
  }
  static bool has_prefetch(const Body& body) {
    bool found = false;
    walk(body, [&](const Stmt& s) {
      const auto* n = s.as<Call>();
      found = found || (n && n->function == kPrefetchFunction);
    });
    return found;
  }
  // The box alone, or in loops over parts of a tile.
  Stmt box(const Stmt& s, const Round& round) const {
    if (const auto* f = s.as<For>(); f && f->body.size() == 1 && constant_int(f->extent)) {
      const Stmt inner = box(f->body[0], round);
      if (inner.same(f->body[0])) return s;
      For out = *f;
      out.body = {inner};
      return make_stmt(std::move(out), s->location);
    }
    const auto* n = s.as<Call>();
    if (!n || n->function != kTransposeFunction || n->args.size() > kTransposeArguments ||
        !is_global(n->reads[0].buffer))
      return s;
    const Address& from = *n->args[2].as<Address>();
    const std::vector<Row> next = later({{from.buffer, from.indices}}, round);
    if (next.empty()) return s;
    Call with_next = *n;
    with_next.args.push_back(place_of(next[0]));
    return make_stmt(std::move(with_next), s->location);
  }

  LoopProgram& program_;
  const For& grid_;
  const Round block_;
  bool has_products_ = false;
};

}  // namespace

LoopProgram prefetch_rows(LoopProgram program) {
  for (Launch& launch : program.launches) {
    For grid = *launch.body.front().as<For>();
    const LocationId at = launch.body.front()->location;
    grid.body = Prefetch(program, grid).run();
    launch.body = {make_stmt(std::move(grid), at)};
  }
  return program;
}

}  // namespace tilewright::passes
