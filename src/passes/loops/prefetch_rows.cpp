#include "passes/loops/prefetch_rows.h"

#include "analysis/slope.h"
#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/index.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Rows shorter than kLongRow are over before memory answers; more than kMost, and what is fetched pushes out what is in
// use (32 KiB are nearest on the processors we know). A tile is in use for longer than a row, and often copied or
// beside another of its size: of one larger than kMostOfTile, the second cache holds the next.
// Of what a block reads more than once, half the second cache at most: the next block's rows lie beside it.
constexpr int64_t kMostAhead = 524288;
constexpr int64_t kLongRow = 1024, kMost = 24576, kMostOfTile = 8192, kMostOfBlock = 65536, kLine = 64, kPage = 4096;
constexpr int64_t kFewRows = 16;   // of a product
constexpr size_t kMostNested = 2;  // loops around one of lanes: over chunks, over parts of chunks
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

class NextRows {
 public:
  NextRows(LoopProgram& program, const For& grid) : program_(program), grid_(grid), block_(round_of(grid)) {
    walk(grid.body, [&](const Stmt& s) {
      has_products_ = has_products_ || s.as<Gemm>();
      if (const auto* f = s.as<For>()) loop_vars_.insert(f->var);
    });
  }

  Body run() {
    Body out;
    for (const Stmt& s : grid_.body) {
      out.push_back(inside(s));
      note_rows({s});
    }
    return ahead(std::move(out), block_);
  }

 private:
  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) out.push_back(inside(s));
    return out;
  }
  // Rows that the block has read when it comes to what follows.
  void note_rows(const Body& body) {
    walk(body, [&](const Stmt& s) {
      const auto* f = s.as<For>();
      if (!f || f->kind != LoopKind::Serial) return;
      for (const Row& r : rows_of(*f, Of::Loads)) read_.push_back(of_loops(r));
    });
  }
  // The first of the rows that the loops of a block name with it.
  Row of_loops(Row r) const {
    for (Expr& e : r.first)
      for (VarId v : used_vars(e))
        if (loop_vars_.contains(v)) e = replaced(e, v, wide(0));
    return r;
  }
  Stmt inside(const Stmt& s) {
    if (const auto* n = s.as<If>())
      return make_stmt(If{n->condition, body(n->then_body), body(n->else_body)}, s->location);
    const auto* n = s.as<For>();
    if (!n || n->kind != LoopKind::Serial) return s;
    For f = *n;
    around_.push_back(n);
    const bool done = long_rows(f);
    f.body = done ? nearer(f.body) : body(n->body);
    around_.pop_back();
    if (!done) {
      // A loop around nothing but another walks one tile with it.
      if (f.body.size() > 1) f.body = ahead(std::move(f.body), round_of(f));
    }
    return make_stmt(std::move(f), s->location);
  }

  // Loops inside of one that is done: what they read again.
  Body nearer(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      const auto* n = s.as<For>();
      if (!n || n->kind != LoopKind::Serial) {
        out.push_back(s);
        continue;
      }
      For f = *n;
      around_.push_back(n);
      if (!rows_again(f)) f.body = nearer(n->body);
      around_.pop_back();
      out.push_back(make_stmt(std::move(f), s->location));
    }
    return out;
  }

  // A loop and its own variables, which name places in terms of the loop's.
  struct Round {
    VarId var;
    std::unordered_map<VarId, Expr> lets;
    std::set<VarId> bound;
  };
  static Round round_of(const For& f) {
    Round round{f.var, {}, bound_vars(f.body)};
    for (const Stmt& s : f.body)
      if (const auto* n = s.as<Let>()) round.lets[n->var] = n->value;
    return round;
  }
  // The same rows an iteration later; none if that depends on what is read: an index, or a tensor's address.
  std::vector<Row> later(std::vector<Row> rows, const Round& round) const {
    for (Row& r : rows) {
      for (VarId v : vars_of_buffer(program_, r.buffer))
        if (v == round.var || round.bound.contains(v)) return {};
      for (Expr& e : r.first) {
        e = inlined(e, round.lets);
        if (has_loads(e)) return {};
      }
    }
    return rows_at(rows, round.var, add(cast(var(round.var, program_.var(round.var).type), i64), wide(1)));
  }

  bool is_global(BufferId id) const { return program_.buffer(program_.root(id)).space == Space::Global; }

  // ---- what a loop reads
  enum class Of { Loads, LoadsByParts, Stores };
  // The rows of an iteration: those of vectorized loops of the body, alone, by chunks, or by parts of chunks; of lanes
  // that read several rows only by parts.
  std::vector<Row> rows_of(const For& f, Of what) const {
    std::vector<Row> rows;
    add_rows(f.body, {}, f, what, rows);
    return rows;
  }
  void add_rows(const Body& body, const std::vector<const For*>& chunks, const For& around, Of what,
                std::vector<Row>& rows) const {
    for (const Stmt& s : body) {
      const auto* n = s.as<For>();
      if (n && n->kind == LoopKind::Vectorized) add_rows(*n, chunks, around, what, rows);
      if (!n || n->kind != LoopKind::Serial || chunks.size() == kMostNested) continue;
      std::vector<const For*> inner{n};
      inner.insert(inner.end(), chunks.begin(), chunks.end());
      add_rows(n->body, inner, around, what, rows);
    }
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
  void add_rows(const For& lanes, const std::vector<const For*>& chunks, const For& around, Of what,
                std::vector<Row>& rows) const {
    const std::vector<Body> turns = what == Of::LoadsByParts ? turns_of(lanes.body) : std::vector<Body>{lanes.body};
    for (const Body& turn : turns) {
      std::unordered_map<VarId, Expr> lets;
      for (const Stmt& s : turn)
        if (const auto* n = s.as<Let>()) lets[n->var] = n->value;
      auto add = [&](BufferId buffer, const std::vector<Expr>& indices) {
        const std::optional<Row> row = row_of(lanes, chunks, lets, buffer, indices);
        if (row && is_known_outside(*row, around.body) && !has(rows, *row)) rows.push_back(*row);
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
  // The elements that all lanes, and chunks of them, name together; the innermost loop comes first.
  std::optional<Row> row_of(const For& lanes, const std::vector<const For*>& chunks,
                            const std::unordered_map<VarId, Expr>& lets, BufferId buffer,
                            const std::vector<Expr>& indices) const {
    const auto width = most(lanes.extent);
    if (!width || constant_int(lanes.begin) != 0) return {};
    std::vector<int64_t> widths{*width};  // of an iteration
    for (const For* f : chunks) {
      const auto count = constant_int(f->extent);
      if (!count || constant_int(f->begin) != 0) return {};
      widths.push_back(widths.back() * *count);
    }
    const Buffer& b = program_.buffer(buffer);
    if (!is_global(buffer) || b.rank() == 0 || b.type.is_packed()) return {};
    if (!b.strides.empty() && constant_int(b.strides.back()) != 1) return {};
    Row row{buffer, {}, widths.back()};
    for (size_t d = 0; d < b.rank(); ++d) {
      const bool last = d + 1 == b.rank();
      const Expr index = inlined(indices[d], lets);
      if (has_loads(index) || analysis::slope_through_casts(index, lanes.var) != (last ? 1 : 0)) return {};
      Expr first = replaced(index, lanes.var, wide(0));
      for (size_t k = 0; k < chunks.size(); ++k) {
        if (analysis::slope_through_casts(index, chunks[k]->var) != (last ? widths[k] : 0)) return {};
        first = replaced(first, chunks[k]->var, wide(0));
      }
      row.first.push_back(first);
    }
    return row;
  }
  // The rows that go around the caches.
  std::vector<Row> rows_streamed(const For& f) const {
    std::vector<Row> rows;
    for (const Stmt& s : f.body) {
      const auto* n = s.as<Stream>();
      if (!n || !n->rest) continue;
      Row row{n->to.buffer, n->to.min, constant_int(n->to.extent.back()).value_or(0)};
      if (row.elements > 0 && is_known_outside(row, f.body) && !has(rows, row)) rows.push_back(std::move(row));
    }
    return rows;
  }
  // Can the row's place be told before the body begins?
  bool is_known_outside(const Row& row, const Body& body) const {
    const std::set<VarId> bound = bound_vars(body);
    std::set<VarId> used = vars_of_buffer(program_, row.buffer);
    for (const Expr& e : row.first) used.merge(used_vars(e));
    return std::none_of(used.begin(), used.end(), [&](VarId v) { return bound.contains(v); });
  }
  bool has(const std::vector<Row>& rows, const Row& row) const {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& r) {
      return program_.root(r.buffer) == program_.root(row.buffer) && bytes_of(r) == bytes_of(row) &&
             equal(r.first, row.first);
    });
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
    return make_stmt(Prefetch{start, offset, bytes, nearest}, location);
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
    if (at == f.body.size()) return rows_again(f);
    const LocationId location = f.body[at]->location;
    For chunks = *f.body[at].as<For>();
    const int64_t turns = *constant_int(chunks.extent);
    const Expr turn = cast(var(chunks.var, program_.var(chunks.var).type), i64);
    Body starts, calls;
    for (const std::vector<Row>* rows : {&read, &written})
      for (const Row& row : *rows) {
        const Expr again = rows == &read ? of_next_block(row) : Expr();
        const Expr start = again ? again : next_of(row, f);
        if (!start) continue;
        const VarId next = program_.new_var("next", pointer);
        starts.push_back(make_stmt(Let{next, start}, location));
        const int64_t share = lines_per_turn(row, turns) * kLine;
        calls.push_back(rows == &read ? call(var(next, pointer), mul(turn, wide(share)), share, !again, location)
                                      : touch(var(next, pointer), turn, share, location));
      }
    chunks.body.insert(chunks.body.begin(), calls.begin(), calls.end());
    f.body[at] = make_stmt(std::move(chunks), location);
    f.body.insert(f.body.begin() + static_cast<std::ptrdiff_t>(at), starts.begin(), starts.end());
    return true;
  }
  // Without a loop over chunks: at the end of an iteration.
  bool rows_again(For& f) {
    const LocationId location = f.body.empty() ? LocationId{} : f.body.back()->location;
    Body calls;
    for (const Row& row : rows_of(f, Of::Loads))
      if (const Expr start = of_next_block(row); start && bytes_of(row) >= kLongRow)
        calls.push_back(call(start, wide(0), lines_per_turn(row, 1) * kLine, false, location));
    f.body.insert(f.body.end(), calls.begin(), calls.end());
    return !calls.empty();
  }
  // Of a row that the block has read before, and that is still in the second cache: where the next block's begins.
  Expr of_next_block(const Row& row) const {
    int64_t bytes = bytes_of(row);
    for (const For* f : around_) bytes *= constant_int(f->extent).value_or(kMostAhead);
    if (bytes > kMostAhead || !has(read_, of_loops(row))) return {};
    const std::vector<Row> next = later({row}, block_);
    return next.empty() ? Expr() : place_of(next[0]);
  }
  // Where the row of the next iteration begins; behind the last, that of the next block's first. Empty if it stays.
  Expr next_of(const Row& row, const For& f) const {
    const Expr now = cast(var(f.var, program_.var(f.var).type), i64), next = add(now, wide(1));
    const std::vector<Row> here = rows_at({row}, f.var, next);
    if (here.empty()) return {};
    const auto known = constant_int(f.extent);
    const std::vector<Row> there = later(rows_at({row}, f.var, cast(f.begin, i64)), block_);
    if (!known || constant_int(f.begin) != 0 || there.empty() || !is_known_outside(there[0], grid_.body))
      return place_of(here[0]);
    return select(binary(BinaryOp::Lt, next, wide(*known)), place_of(here[0]), place_of(there[0]));
  }
  // The loop over chunks that has the memory for itself: none of its own to read that is not near by now, best none to
  // write.
  size_t place_in(const Body& body) const {
    size_t best = body.size();
    int least = 3;
    std::set<BufferId> near;  // read by the loops before
    for (size_t k = 0; k < body.size(); ++k) {
      const auto* n = body[k].as<For>();
      bool computes = false, writes = false, reads = false;
      walk_exprs({body[k]}, [&](const Expr& e) {
        const auto* l = e.as<Load>();
        if (l && is_global(l->buffer)) reads = near.insert(program_.root(l->buffer)).second || reads;
      });
      if (!n || n->kind != LoopKind::Serial || constant_int(n->extent).value_or(0) < 4 || constant_int(n->begin) != 0)
        continue;
      for (const Stmt& inner : n->body) computes = computes || inner.as<For>();
      walk(n->body, [&](const Stmt& x) {
        const auto* store = x.as<Store>();
        writes = writes || x.as<Stream>() || x.as<Transpose>() || (store && is_global(store->to.buffer));
      });
      const int busy = reads ? 2 : writes ? 1 : 0;
      if (computes && busy < least) best = k, least = busy;
    }
    return best;
  }

  // ---- short rows, and boxes that are transposed: those of the loop's next iteration, or of the next block
  Body ahead(Body in, const Round& round) {
    if (Body out = in_products(in, round); !out.empty()) return out;
    for (size_t k = 0; k < in.size(); ++k) {
      if (const auto* n = in[k].as<If>())
        in[k] = make_stmt(If{n->condition, ahead(n->then_body, round), ahead(n->else_body, round)}, in[k]->location);
      if (in[k].as<For>()) short_rows(in, k, round);
      in[k] = box(in[k], round);
    }
    return in;
  }
  // A tile of which the next iteration reads another: rows of one size and distance.
  struct Box {
    Row first, second;
    int64_t rows = 0;
  };
  // Each tile's next with a product of few rows, if there is one for each; empty if not.
  Body in_products(const Body& in, const Round& round) const {
    std::vector<size_t> products;
    std::vector<Box> boxes;
    for (size_t k = 0; k < in.size(); ++k) {
      if (const auto* g = in[k].as<Gemm>(); g && has_few_rows(*g)) products.push_back(k);
      const auto* n = in[k].as<If>();
      if (!add_boxes(n ? n->then_body : Body{in[k]}, round, boxes)) return {};
    }
    if (boxes.empty() || products.size() < boxes.size() || has_prefetch(in)) return {};
    Body out;
    size_t next = 0;
    for (size_t k = 0; k < in.size(); ++k) {
      if (next < boxes.size() && k == products[next]) {
        const Box& b = boxes[next++];
        Gemm product = *in[k].as<Gemm>();
        product.next = {place_of(b.first), place_of(b.second), bytes_of(b.first), b.rows};
        out.push_back(make_stmt(std::move(product), in[k]->location));
      } else {
        out.push_back(in[k]);
      }
    }
    return out;
  }
  static bool has_few_rows(const Gemm& g) {
    auto extent = [](const Region& r, size_t from_end) {
      return constant_int(r.extent[r.extent.size() - from_end]).value_or(kFewRows + 1);
    };
    return std::min(extent(g.c, 1), extent(g.c, 2)) <= kFewRows;
  }
  // False: there is a tile of which that cannot be told.
  bool add_boxes(const Body& body, const Round& round, std::vector<Box>& boxes) const {
    for (const Stmt& s : body) {
      const auto* f = s.as<For>();
      if (!f || f->kind != LoopKind::Serial) continue;
      const std::vector<Row> rows = short_rows_of(*f, Of::LoadsByParts, round);
      const bool copies = bytes_of(rows) * constant_int(f->extent).value_or(kLongRow) >= kLongRow;
      std::optional<Box> box = copies ? copied_box(*f, rows) : transposed_box(s, round);
      if (box && !(is_known_outside(box->first, body) && is_known_outside(box->second, body))) box.reset();
      if (box) boxes.push_back(std::move(*box));
      if (copies && !box) return false;
    }
    return true;
  }
  // An iteration's rows and those of all others follow one another at one distance.
  std::optional<Box> copied_box(const For& f, const std::vector<Row>& rows) const {
    const auto turns = constant_int(f.extent);
    if (!turns || constant_int(f.begin) != 0) return {};
    const auto count = static_cast<int64_t>(rows.size());
    auto at = [&](size_t r, int64_t turn) {
      Row row = rows[r];
      for (Expr& e : row.first) e = replaced(e, f.var, wide(turn));
      return row;
    };
    const Row first = at(0, 0), second = count > 1 ? at(1, 0) : at(0, 1);
    auto steps = [&](const Row& from, const Row& to, int64_t times) {
      bool fits = from.buffer == to.buffer && from.elements == to.elements;
      for (size_t d = 0; fits && d < first.first.size(); ++d) {
        fits = from.first[d]->type == to.first[d]->type && first.first[d]->type == second.first[d]->type;
        if (!fits) break;
        const auto one = constant_int(sub(second.first[d], first.first[d]));
        const auto all = constant_int(sub(to.first[d], from.first[d]));
        fits = one && all && *all == *one * times;
      }
      return fits;
    };
    for (size_t r = 0; r < rows.size(); ++r)
      if (!steps(first, at(r, 0), static_cast<int64_t>(r)) || !steps(at(r, 0), at(r, 1), count)) return {};
    return Box{first, second, *turns * count};
  }
  // Boxes side by side in rows, and rows below one another, in loops of nothing else.
  std::optional<Box> transposed_box(const Stmt& s, const Round& round) const {
    Nest nest;
    const Stmt* inner = &s;
    for (const For* f = s.as<For>(); f && f->body.size() == 1; f = inner->as<For>()) {
      if (!constant_int(f->extent) || constant_int(f->begin) != 0) return {};
      nest.push_back(f), inner = &f->body[0];
    }
    const auto* n = inner->as<Transpose>();
    if (!n || !is_global(n->from.first.buffer)) return {};
    const Element& from = n->from.first;
    const auto last = from.indices.size() - 1, down = static_cast<size_t>(n->from.down);
    const int64_t step = n->from.down_step;
    if (down == last) return {};
    Row row{from.buffer, from.indices, n->rows * n->unit};
    int64_t rows = n->columns;
    for (size_t k = nest.size(); k-- > 0;) {
      const int64_t extent = *constant_int(nest[k]->extent);
      for (size_t d = 0; d <= last; ++d) {
        const auto slope = analysis::slope_through_casts(from.indices[d], nest[k]->var);
        if (!slope || (d != last && d != down && *slope != 0)) return {};
        if (d == last && *slope != 0 && *slope != row.elements) return {};
        if (d == down && *slope != 0 && *slope != rows * step) return {};
      }
      const bool along = analysis::slope_through_casts(from.indices[last], nest[k]->var) != 0;
      const bool below_it = analysis::slope_through_casts(from.indices[down], nest[k]->var) != 0;
      if (along == below_it) return {};
      (along ? row.elements : rows) *= extent;
      for (Expr& e : row.first) e = replaced(e, nest[k]->var, wide(0));
    }
    const std::vector<Row> first = later({row}, round);
    if (first.empty()) return {};
    Row second = first[0];
    second.first[down] = add(second.first[down], constant(second.first[down]->type, step));
    return Box{first[0], second, rows};
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
    walk(body, [&](const Stmt& s) { found = found || s.as<Prefetch>(); });
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
    const auto* n = s.as<Transpose>();
    if (!n || n->next.valid() || !is_global(n->from.first.buffer)) return s;
    const std::vector<Row> next = later({{n->from.first.buffer, n->from.first.indices}}, round);
    if (next.empty()) return s;
    Transpose with_next = *n;
    with_next.next = {next[0].buffer, next[0].first};
    return make_stmt(std::move(with_next), s->location);
  }

  LoopProgram& program_;
  const For& grid_;
  const Round block_;
  bool has_products_ = false;
  std::set<VarId> loop_vars_;
  std::vector<Row> read_;           // by the statements of the block so far
  std::vector<const For*> around_;  // what is looked at
};

}  // namespace

LoopProgram prefetch_rows(LoopProgram program) {
  for (Launch& launch : program.launches) {
    For grid = *launch.body.front().as<For>();
    const LocationId at = launch.body.front()->location;
    grid.body = NextRows(program, grid).run();
    launch.body = {make_stmt(std::move(grid), at)};
  }
  return program;
}

}  // namespace tilewright::passes
