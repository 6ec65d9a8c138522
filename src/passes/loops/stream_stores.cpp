#include "passes/loops/stream_stores.h"

#include "analysis/slope.h"
#include "ir/buffer_vars.h"
#include "ir/names.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/index.h"
#include "passes/lower/strands.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What is smaller may still be in the last-level cache when it is read next; there, streaming is slower (51 against 58
// GB/s at 16 MiB).
constexpr int64_t kLargeBytes = int64_t{32} << 20;
// Of what a launch moves, if it is more than that: the last-level cache keeps little of what was stored on the way, and
// lines that are stored need not be read first (casts of 32 to 16 MiB take a third less).
constexpr int64_t kGoodPart = 8;
constexpr int64_t kLine = 64;
// Elements computed between two stores of lines. More than 16, of which GCC makes no loop that it could vectorize.
constexpr int64_t kChunk = 64;

class Streaming {
 public:
  Streaming(LoopProgram& program, int32_t launch, const Body& all) : program_(program), launch_(launch), all_(all) {}

  Body body(const Body& in) {
    return rewrite(in, [&](const Stmt& s) -> std::optional<Body> {
      const auto* f = s.as<For>();
      if (!f || f->kind != LoopKind::Vectorized) return std::nullopt;
      const Store* store = streamed_store(*f);
      return store ? streamed(*f, *store, s->location) : std::nullopt;
    });
  }

 private:
  // The one store of the loop to global memory, if it walks through memory element by element.
  const Store* streamed_store(const For& f) const {
    const Store* found = nullptr;
    for (const Stmt& s : f.body) {
      const auto* n = s.as<Store>();
      if (!n && !s.as<Let>()) return nullptr;
      if (!n || program_.buffer(program_.root(n->to.buffer)).space != Space::Global) continue;
      if (found) return nullptr;
      found = n;
    }
    if (!found || stands_by(program_, found->to.buffer, bound_vars(f.body))) return nullptr;
    const Buffer& b = program_.buffer(found->to.buffer);
    const std::vector<Expr> indices = indices_of(f, *found);
    if (indices.empty() || b.type.is_packed() || (!b.strides.empty() && constant_int(b.strides.back()) != 1))
      return nullptr;
    bool reads = false;
    walk_exprs(f.body, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      reads = reads || (n && program_.root(n->buffer) == program_.root(found->to.buffer));
    });
    for (const Expr& index : indices) walk(index, [&](const Expr& e) { reads = reads || e.as<Load>(); });
    for (size_t d = 0; d + 1 < b.rank(); ++d)
      if (used_vars(indices[d]).contains(f.var)) return nullptr;
    return reads || !steps_by_one(indices.back(), f.var) ? nullptr : found;
  }
  // Where the store goes, in words that are known before the loop: names of its body stand for what they are. Empty: it
  // has no indices, or they are too long in such words.
  static std::vector<Expr> indices_of(const For& f, const Store& store) {
    Substitution names;
    for (const Stmt& s : f.body)
      if (const auto* n = s.as<Let>())
        if (const auto whole = spelled_out(n->value, names)) names[n->var] = *whole;
    const std::set<VarId> inside = bound_vars(f.body);
    std::vector<Expr> out;
    for (const Expr& e : store.to.indices) {
      const auto whole = spelled_out(e, names);
      if (!whole || uses_any(*whole, inside)) return {};
      out.push_back(*whole);
    }
    return out;
  }
  static bool steps_by_one(const Expr& index, VarId v) {
    std::vector<Term> terms{{1, index}};
    if (const auto* s = index.as<Sum>()) terms = s->terms;
    bool steps = false;
    for (const Term& t : terms) {
      const Var* n = analysis::variable_of(t.value);
      if (n && n->id == v && t.coefficient == 1)
        steps = true;
      else if (used_vars(t.value).contains(v))
        return false;
    }
    return steps;
  }

  std::optional<Body> streamed(const For& f, const Store& store, LocationId at) {
    const Buffer& target = program_.buffer(store.to.buffer);
    const DType type = target.type;
    const Expr large = is_large(program_, all_, store.to.buffer);
    if (constant_int(large) == 0) return std::nullopt;
    const int64_t line = kLine * 8 / type.storage_bits();
    const Expr begin = cast(f.begin, i64), extent = at_least_none(cast(f.extent, i64));
    const int64_t lanes = std::min(kChunk, constant_int(extent).value_or(kChunk) / line * line);
    if (lanes == 0) return std::nullopt;
    const Expr chunks = binary(BinaryOp::FloorDiv, extent, constant(i64, lanes)), done = mul(chunks, wide(lanes));
    Buffer b;
    b.name = "row", b.type = type, b.space = Space::Local, b.launch = launch_;
    b.shape = {constant(i32, line + lanes)};
    const BufferId row = program_.new_buffer(std::move(b));
    const Staged staged{f, store, row, line, large, at};
    const VarId chunk = program_.new_var("chunk", i64);
    const Expr first = mul(var(chunk, i64), wide(lanes)), rest = sub(extent, done);
    For loop;
    loop.var = chunk, loop.begin = wide(0), loop.extent = chunks;
    loop.body = {computed(staged, add(begin, first), wide(lanes)),
                 moved(staged, add(begin, first), wide(lanes), first)};
    Body out{make_stmt(std::move(loop), at)};
    if (constant_int(rest) != 0) out.push_back(computed(staged, add(begin, done), rest));
    out.push_back(moved(staged, begin, extent, done, rest));
    return out;
  }

  // A loop whose results go by way of a row: its elements from `line` on.
  struct Staged {
    const For& loop;
    const Store& store;
    BufferId row;
    int64_t line;
    Expr large;
    LocationId at;
  };
  static Expr wide(int64_t value) { return constant(i64, value); }
  // Below zero there are no turns, but the quotient of chunks would leave some.
  static Expr at_least_none(const Expr& extent) { return binary(BinaryOp::Max, extent, wide(0)); }

  // The part [begin, begin + count) of the loop, into the row.
  Stmt computed(const Staged& s, const Expr& begin, const Expr& count) {
    const VarId lane = program_.new_var("lane", i64);
    For loop = s.loop;
    loop.body = rewrite(s.loop.body, [&](const Stmt& x) -> std::optional<Body> {
      const auto* n = x.as<Store>();
      if (!n || n->to.buffer != s.store.to.buffer) return std::nullopt;
      return Body{make_stmt(Store{{s.row, {sum({{1, var(lane, i64)}}, s.line, i64)}}, n->value}, x->location)};
    });
    loop.body = with_index(loop, add(begin, var(lane, i64)), program_);
    loop.var = lane, loop.begin = wide(0), loop.extent = count;
    return make_stmt(std::move(loop), s.at);
  }
  // The row's elements on their way to [begin, begin + count).
  Stmt moved(const Staged& s, const Expr& begin, const Expr& count, const Expr& done, const Expr& rest = {}) {
    For place = s.loop;  // the indices of the first element
    place.body = {make_stmt(Store{{s.store.to.buffer, indices_of(s.loop, s.store)},
                                  constant(program_.buffer(s.store.to.buffer).type, int64_t{0})},
                            s.at)};
    const Body first = with_index(place, begin, program_);
    Region to{s.store.to.buffer, first[0].as<Store>()->to.indices, {}};
    to.extent.assign(to.min.size(), constant(1));
    to.extent.back() = count;
    const Region row{s.row, {constant(0)}, {program_.buffer(s.row).shape[0]}};
    return make_stmt(Stream{row, std::move(to), s.large, done, rest}, s.at);
  }

  LoopProgram& program_;
  int32_t launch_;
  const Body& all_;
};

Expr bytes_of(const Buffer& b) {
  Expr bytes = constant(i64, std::max(int64_t{1}, int64_t{b.type.storage_bits() / 8}));
  for (const Expr& e : b.shape) bytes = mul(bytes, cast(e, i64));
  return bytes;
}
// Where extents tell, which are not negative.
std::optional<bool> is_positive(const Expr& e) {
  if (const auto c = constant_int(e)) return *c > 0;
  std::vector<Term> terms{{1, e}};
  int64_t rest = 0;
  if (const auto* s = e.as<Sum>()) terms = s->terms, rest = s->constant;
  auto all = [&](int64_t sign) {
    return sign * rest >= 0 &&
           std::all_of(terms.begin(), terms.end(), [&](const Term& t) { return sign * t.coefficient > 0; });
  };
  if (all(1)) return true;
  return all(-1) ? std::optional(false) : std::nullopt;
}

}  // namespace

Expr is_large(const LoopProgram& program, const Body& launch, BufferId tensor) {
  std::set<BufferId> moved;
  const std::set<VarId> bound = bound_vars(launch);
  for (BufferId id : used_buffers(launch)) {
    const BufferId root = program.root(id);  // how large it is may be known somewhere else
    const bool is_known = root == program.root(tensor) || !stands_by(program, root, bound);
    if (program.buffer(root).space == Space::Global && is_known) moved.insert(root);
  }
  Expr all = constant(i64, int64_t{0});
  for (BufferId id : moved) all = add(all, bytes_of(program.buffer(id)));
  const Expr own = bytes_of(program.buffer(tensor)), limit = constant(i64, kLargeBytes);
  const Expr lead = sub(mul(own, constant(i64, kGoodPart)), all);
  const auto is_part = is_positive(lead);
  const Expr alone = binary(BinaryOp::Lt, limit, own), together = binary(BinaryOp::Lt, limit, all);
  if (is_part) return *is_part ? together : alone;
  const Expr part = binary(BinaryOp::Lt, constant(i64, int64_t{0}), lead);
  return binary(BinaryOp::Or, alone, binary(BinaryOp::And, together, part));
}

LoopProgram stream_stores(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    if (has_waits(program.launches[i])) continue;
    const Body all = program.launches[i].body;
    program.launches[i].body = Streaming(program, static_cast<int32_t>(i), all).body(all);
  }
  return program;
}

}  // namespace tilewright::passes
