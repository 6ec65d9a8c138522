#include "passes/schedule/stage_results.h"

#include "analysis/tma.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/widen.h"
#include "passes/threads/collectives.h"

namespace tilewright::passes {

using namespace ir;
using analysis::tma_misfit;

namespace {

constexpr int64_t kRowBytes = 128;     // of a chunk: a panel of the widest swizzle
constexpr int64_t kSlotBytes = 32768;  // for chunks: one is written while TMA reads the other
constexpr int64_t kMaxWhole = 65536;   // bytes of a result in one piece: more would cost the rings a slot
constexpr int64_t kGroupRows = 64;     // of a warpgroup's accumulators that lie side by side
constexpr int64_t kWarpRows = 16;      // of them, a warp's

class Stager {
 public:
  Stager(TileProgram& p, int64_t threads, Staging how, bool once, const analysis::StoredTensors& stored,
         std::vector<BufferId>& staged)
      : p_(p), threads_(threads), how_(how), once_(once), stored_(stored), staged_(staged) {}

  // The body without detours. Threads' own stores do not wait for those by TMA: tensors that may get elements again are
  // stored by one of the two alone.
  Body direct(const Body& in) {
    while (true) {
      Body out = without_detours(in, in);
      if (how_ == Staging::Straight || !leave_mixed(out)) return out;
    }
  }
  // What the program brings to shared memory only to copy it from there goes straight to global memory, and so the way
  // of all results: its own tile would take the room of a ring's slot and the time of a generic copy.
  Body without_detours(const Body& whole, const Body& in) {
    Body out = in;
    for (size_t i = 0; i < out.size(); ++i) {
      if (const auto* loop = out[i].as<For>()) {
        For f = *loop;
        f.body = without_detours(whole, f.body);
        out[i] = make_stmt(std::move(f), out[i]->location);
      } else if (const auto* n = out[i].as<If>()) {
        out[i] = make_stmt(If{n->condition, without_detours(whole, n->then_body), without_detours(whole, n->else_body)},
                           out[i]->location);
      } else if (const auto* down = out[i].as<Copy>()) {
        const auto away = end_of_detour(*down, whole, out, i);
        if (!away) continue;
        Copy direct = *out[*away].as<Copy>();
        direct.from = down->from;
        if (how_ != Staging::Straight && !can_stage(direct)) continue;
        out[*away] = make_stmt(std::move(direct), out[*away]->location);
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(i--));
      }
    }
    return out;
  }
  Body run(Body in) {
    Body out;
    for (Stmt& s : in) {
      if (const auto* loop = s.as<For>()) {
        For f = *loop;
        const bool once = std::exchange(once_, false);
        f.body = run(f.body);
        once_ = once;
        out.push_back(make_stmt(std::move(f), s->location));
        continue;
      }
      if (const auto* n = s.as<If>()) {
        out.push_back(make_stmt(If{n->condition, run(n->then_body), run(n->else_body)}, s->location));
        continue;
      }
      const auto* copy = s.as<Copy>();
      const auto chunks = copy ? chunks_of(*copy) : std::vector<Chunk>{};
      if (chunks.empty()) {
        out.push_back(std::move(s));
        continue;
      }
      staged_.push_back(copy->from.buffer);
      const bool again = stored_.again.contains(p_.root(copy->to.buffer));
      for (const Chunk& c : chunks) {
        if (again && &c == chunks.data())  // which all of the result's chunks come behind
          out.push_back(make_stmt(Drain{Queue::BulkStore, 0, {}, true}, s->location));
        else if (c.pending)
          out.push_back(make_stmt(Drain{Queue::BulkStore, *c.pending, {}}, s->location));
        out.push_back(make_stmt(c.down, s->location));
        out.push_back(make_stmt(c.away, s->location));
        out.push_back(make_stmt(Commit{Queue::BulkStore}, s->location));
      }
    }
    return out;
  }

 private:
  bool leave_mixed(const Body& body) {
    std::map<BufferId, int> copies;  // by threads
    walk(body, [&](const Stmt& s) {
      if (const auto* copy = s.as<Copy>()) ++copies[p_.root(copy->to.buffer)];
    });
    take_off_staged(body, copies);
    return std::erase_if(stored_.again, [&](BufferId id) { return copies[id] > 0; }) > 0;
  }
  void take_off_staged(const Body& body, std::map<BufferId, int>& copies) {  // where run() finds them
    for (const Stmt& s : body) {
      if (const auto* copy = s.as<Copy>(); copy && can_stage(*copy)) --copies[p_.root(copy->to.buffer)];
      if (!s.as<For>() && !s.as<If>()) continue;
      const bool once = std::exchange(once_, once_ && !s.as<For>());
      for_each_body(s, [&](const Body& inner) { take_off_staged(inner, copies); });
      once_ = once;
    }
  }
  // The copy to global memory, or to a fragment, of what `down` brought to shared memory, which nothing else uses.
  std::optional<size_t> end_of_detour(const Copy& down, const Body& whole, const Body& body, size_t at) const {
    const BufferId tile = down.to.buffer;
    const Buffer &from = p_.buffer(down.from.buffer), &to = p_.buffer(tile);
    if (from.space != Space::Fragment || to.space != Space::Shared || to.is_view() || !down.completion.immediate())
      return std::nullopt;
    if (down.combine != ir::Combine::None || !is_whole(down.to, to) || !is_first_of(down.from, from))
      return std::nullopt;
    int uses = 0;
    walk(whole, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list) uses += e.region.valid() && p_.root(e.region.buffer) == tile;
    });
    if (uses != 2) return std::nullopt;
    for (size_t i = at + 1; i < body.size(); ++i) {
      if (const auto* away = body[i].as<Copy>(); away && away->from.buffer == tile) {
        const Buffer& end = p_.buffer(away->to.buffer);
        const bool whole = is_whole(away->from, to) && (end.space == Space::Global || is_whole(away->to, end));
        return whole && end.type == to.type ? std::optional(i) : std::nullopt;
      }
      bool changes = false;  // what is copied
      walk({body[i]}, [&](const Stmt& s) {
        for (const Effect& e : effects_of(s).list)
          changes = changes || (e.region.valid() && e.access != Access::Read &&
                                p_.root(e.region.buffer) == p_.root(down.from.buffer));
      });
      if (changes) return std::nullopt;
    }
    return std::nullopt;
  }
  // All of it, or its first rows and columns: more than what threads would bring for nothing.
  bool is_first_of(const Region& r, const Buffer& b) const {
    return is_whole(r, b) || (b.rank() == 2 && constant_int(r.min[0]) == 0 && constant_int(r.min[1]) == 0 &&
                              2 * bytes_in(r, p_) > bytes_on_chip(b));
  }
  bool can_stage(const Copy& c) {
    const size_t buffers = p_.buffers.size(), known = made_.size();
    const bool can = !chunks_of(c).empty();
    p_.buffers.resize(buffers), made_.resize(known);
    return can;
  }
  struct Chunk {
    Copy down, away;                 // into shared memory; from there
    std::optional<int64_t> pending;  // stores after the last one that read the slot; none: no other has read it
  };
  struct Piece {  // of the result, in elements
    int64_t row, column, columns;
    bool is_tail;
    int64_t slot;
  };
  // Pieces of a result for which there are slots in turn, rows of columns that may end in a narrower one.
  static std::vector<Piece> cut(int64_t rows, int64_t height, int64_t columns, int64_t width, int64_t slots) {
    std::vector<Piece> out;
    int64_t next = 0;
    for (int64_t row = 0; row < rows; row += height)
      for (int64_t column = 0; column < columns; column += width) {
        const bool is_tail = column + width > columns;
        out.push_back({row, column, std::min(width, columns - column), is_tail, is_tail ? 0 : next++ % slots});
      }
    return out;
  }
  // The stores since the slot of piece i was last used, if the pieces come again and again.
  static int64_t stores_since(const std::vector<Piece>& pieces, size_t i) {
    for (size_t back = 1; back < pieces.size(); ++back) {
      const Piece& before = pieces[(i + pieces.size() - back) % pieces.size()];
      if (before.slot == pieces[i].slot && before.is_tail == pieces[i].is_tail) return static_cast<int64_t>(back) - 1;
    }
    return static_cast<int64_t>(pieces.size()) - 1;
  }
  // Empty: TMA cannot take the result there.
  std::vector<Chunk> chunks_of(const Copy& c) {
    const Buffer from = p_.buffer(c.from.buffer);
    const DType type = p_.buffer(c.to.buffer).type;
    if (from.space != Space::Fragment || from.is_view() || p_.buffer(c.to.buffer).space != Space::Global) return {};
    if (from.rank() != 2 || type.bits < 8 || !c.completion.immediate()) return {};
    const BufferId root = p_.root(c.to.buffer);
    if (!stored_.once.contains(root) && !stored_.again.contains(root)) return {};
    // TMA adds as atomics do.
    if (c.combine != ir::Combine::None && (c.combine != ir::Combine::Add || type != f32)) return {};
    if (c.im2col.present() || !is_first_of(c.from, from)) return {};
    if (constant_int(c.to.extent.back()) != constant_int(c.from.extent.back())) return {};
    const int64_t rows = *constant_int(from.shape[0]), columns = *constant_int(from.shape[1]);
    const bool whole = how_ == Staging::Whole, by_rows = how_ == Staging::RowChunks;
    if (whole && rows * columns * type.bits / 8 > kMaxWhole) return {};
    if (by_rows && (rows == kGroupRows || rows % kGroupRows != 0)) return {};
    const int64_t row = std::min(columns, kRowBytes * 8 / type.bits);
    const int64_t width = by_rows || (whole && !once_) ? columns : row, rest = columns % width;
    const bool cuts_rows = by_rows || (!whole && threads_ == target::kWarpgroupThreads && rows % kGroupRows == 0);
    const int64_t height = cuts_rows ? kGroupRows : rows;
    int64_t slots = std::clamp<int64_t>(kSlotBytes / (height * width * type.bits / 8), 1, 2);
    if (rest > 0) slots = 1;  // the tail has a slot of its own
    if (whole) slots = columns / width;
    const std::vector<Piece> pieces = cut(rows, height, columns, width, slots);
    const size_t mark = p_.buffers.size(), known = made_.size();
    // A product with other rows than warpgroups take is done the other way round: a warp has columns of its result,
    // which it may add by itself (warp_boxes.h).
    const bool turned = whole && c.combine != ir::Combine::None && rows % kGroupRows != 0 && columns % kGroupRows == 0;
    const int64_t panel = turned ? kWarpRows * type.bits / 8 : 0;
    const BufferId ring =
        slots_for(from, type, std::min<int64_t>(slots, pieces.size()), height, width, pieces.size(), panel);
    const BufferId tail = rest > 0 ? slots_for(from, type, 1, height, rest, pieces.size(), panel) : BufferId{};
    const bool own = whole && once_ && made_.size() == known + (rest > 0 ? 2 : 1);
    std::vector<Chunk> out;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].row >= constant_int(c.from.extent[0]) || pieces[i].column >= constant_int(c.from.extent[1]))
        continue;
      out.push_back(chunk_of(c, pieces[i], pieces[i].is_tail ? tail : ring, height));
      if (!own) out.back().pending = stores_since(pieces, i);
      if (tma_misfit(out.back().away, p_).empty()) continue;
      p_.buffers.resize(mark), made_.resize(known);
      return {};
    }
    return out;
  }
  Chunk chunk_of(const Copy& c, const Piece& piece, BufferId ring, int64_t height) const {
    auto number = [](int64_t value) { return constant(i32, value); };
    const std::vector<Expr> size{number(height), number(piece.columns)};
    const Region staged{ring, {number(piece.slot), number(0), number(0)}, {number(1), size[0], size[1]}};
    Chunk out;
    out.down.from = {c.from.buffer, {number(piece.row), number(piece.column)}, size};
    out.down.to = staged;
    out.away.from = staged, out.away.to = c.to, out.away.completion.queue = Queue::BulkStore;
    out.away.combine = c.combine;
    // Threads bring all of a piece; of that, what the copy has goes on.
    const auto inside = [&](size_t d, int64_t first) {
      return number(std::min(*constant_int(size[d]), *constant_int(c.from.extent[d]) - first));
    };
    const Expr rows = inside(0, piece.row), columns = inside(1, piece.column);
    out.away.from.extent = {number(1), rows, columns};
    Region& to = out.away.to;
    auto shift = [&](size_t d, int64_t by, const Expr& extent) {
      to.min[d] = offset_by(to.min[d], constant(i32, by)), to.extent[d] = extent;
    };
    shift(to.min.size() - 1, piece.column, columns);
    for (size_t d = 0; d + 1 < to.min.size(); ++d)  // the dimension along which the rows lie
      if (constant_int(to.extent[d]) != 1) shift(d, piece.row, rows);
    return out;
  }
  // Results in as many pieces of the same size use the same slots: what stands between two uses of one is then the same
  // number of stores, or more, whichever result they are of.
  BufferId slots_for(const Buffer& from, DType type, int64_t slots, int64_t rows, int64_t columns, size_t pieces,
                     int64_t panel) {
    const Slots wanted{type, slots, rows, columns, pieces, panel, {}};
    for (const Slots& s : made_)
      if (s.is_like(wanted)) return s.buffer;
    Buffer b;
    b.name = from.name + "_staged", b.type = type, b.space = Space::Shared;
    b.shape = {constant(i32, slots), constant(i32, rows), constant(i32, columns)};
    b.launch = from.launch, b.location = from.location;
    b.panel = panel;
    made_.push_back(wanted);
    return made_.back().buffer = p_.new_buffer(std::move(b));
  }

  struct Slots {
    DType type;
    int64_t slots, rows, columns;
    size_t pieces;
    int64_t panel;  // bytes; 0: as wide as it can be
    BufferId buffer;
    bool is_like(const Slots& o) const {
      return std::tie(type, slots, rows, columns, pieces, panel) ==
             std::tie(o.type, o.slots, o.rows, o.columns, o.pieces, o.panel);
    }
  };
  TileProgram& p_;
  const int64_t threads_;
  const Staging how_;
  bool once_;  // the statements run once
  analysis::StoredTensors stored_;
  std::vector<BufferId>& staged_;
  std::vector<Slots> made_;
};

}  // namespace

Body stage_results(TileProgram& program, Body body, int64_t threads, Staging how, bool once,
                   const analysis::StoredTensors& stored, std::vector<BufferId>& staged) {
  Stager stager(program, threads, how, once, stored, staged);
  if (how == Staging::None) return body;
  Body direct = stager.direct(body);
  return how == Staging::Straight ? direct : stager.run(std::move(direct));
}

}  // namespace tilewright::passes
