#include "passes/stream_stores.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/index.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What is smaller may still be in the last-level cache when it is read next; there, streaming is slower (51 against 58
// GB/s at 16 MiB).
constexpr int64_t kLargeBytes = int64_t{32} << 20;
constexpr int64_t kRowBytes = 4096, kLine = 64;

class Stream {
 public:
  Stream(LoopProgram& program, int32_t launch) : program_(program), launch_(launch) {}

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
    if (!found) return nullptr;
    const Buffer& b = program_.buffer(found->to.buffer);
    if (b.rank() == 0 || b.type.is_packed() || (!b.strides.empty() && constant_int(b.strides.back()) != 1))
      return nullptr;
    bool reads = false;
    walk_exprs(f.body, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      reads = reads || (n && program_.root(n->buffer) == program_.root(found->to.buffer));
    });
    for (size_t d = 0; d + 1 < b.rank(); ++d)
      if (used_vars(found->to.indices[d]).contains(f.var)) return nullptr;
    return reads || !steps_by_one(found->to.indices.back(), f.var) ? nullptr : found;
  }
  static bool steps_by_one(const Expr& index, VarId v) {
    std::vector<Term> terms{{1, index}};
    if (const auto* s = index.as<Sum>()) terms = s->terms;
    bool steps = false;
    for (const Term& t : terms) {
      const auto* c = t.value.as<Cast>();
      const auto* n = (c ? c->value : t.value).as<Var>();
      if (n && n->id == v && t.coefficient == 1)
        steps = true;
      else if (used_vars(t.value).contains(v))
        return false;
    }
    return steps;
  }

  std::optional<Body> streamed(const For& f, const Store& store, LocationId at) {
    const Buffer& target = program_.buffer(store.to.buffer);
    const Expr large = is_large(target);
    if (constant_int(large) == 0) return std::nullopt;
    const int64_t size = target.type.storage_bits() / 8, most = kRowBytes / size;
    const Expr zero = constant(i64, int64_t{0}), begin = cast(f.begin, i64), extent = cast(f.extent, i64);
    const auto known = constant_int(extent);
    if (known && *known * size < kLine) return std::nullopt;
    if (known && *known <= most) return row(f, store, large, begin, extent, *known, at);
    const VarId part = program_.new_var("part", i64);
    const Expr first = add(begin, mul(var(part, i64), constant(i64, most)));
    const Expr whole = binary(BinaryOp::FloorDiv, extent, constant(i64, most));
    For parts;
    parts.var = part, parts.begin = zero, parts.extent = whole;
    parts.body = row(f, store, large, first, constant(i64, most), most, at);
    Body out{make_stmt(std::move(parts), at)};
    const Expr done = mul(whole, constant(i64, most)), rest = sub(extent, done);
    if (constant_int(rest) == 0) return out;
    const Body last = row(f, store, large, add(begin, done), rest, most, at);
    out.insert(out.end(), last.begin(), last.end());
    return out;
  }

  // The part [begin, begin + count) of the loop by way of a local row.
  Body row(const For& f, const Store& store, const Expr& large, const Expr& begin, const Expr& count, int64_t most,
           LocationId at) {
    Buffer b;
    b.name = "row", b.type = program_.buffer(store.to.buffer).type, b.space = Space::Local;
    b.shape = {constant(i32, most)}, b.launch = launch_;
    const BufferId staged = program_.new_buffer(std::move(b));
    const VarId lane = program_.new_var("lane", i64);
    const Expr zero = constant(i64, int64_t{0}), one = constant(i64, int64_t{1});
    For loop = f;
    loop.var = lane, loop.begin = zero, loop.extent = count;
    loop.body = rewrite(f.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Store>();
      if (!n || n->to.buffer != store.to.buffer) return std::nullopt;
      return Body{make_stmt(Store{{staged, {var(lane, i64)}}, n->value}, s->location)};
    });
    For named = loop;
    named.var = f.var;
    loop.body = with_index(named, add(begin, var(lane, i64)), program_);
    Call move;
    move.function = kStreamFunction, move.args = {large};
    move.reads = {{staged, {zero}, {count}}};
    For place = f;  // the indices of the first element
    place.body = {make_stmt(Store{store.to, constant(program_.buffer(store.to.buffer).type, int64_t{0})}, at)};
    const Body first = with_index(place, begin, program_);
    Region to{store.to.buffer, first[0].as<Store>()->to.indices, {}};
    to.extent.assign(to.min.size(), one);
    to.extent.back() = count;
    move.writes = {to};
    return {make_stmt(std::move(loop), at), make_stmt(std::move(move), at)};
  }

  LoopProgram& program_;
  int32_t launch_;
};

}  // namespace

Expr is_large(const Buffer& tensor) {
  Expr bytes = constant(i64, int64_t{tensor.type.storage_bits() / 8});
  for (const Expr& e : tensor.shape) bytes = mul(bytes, cast(e, i64));
  return binary(BinaryOp::Lt, constant(i64, kLargeBytes), bytes);
}

LoopProgram stream_stores(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    program.launches[i].body = Stream(program, static_cast<int32_t>(i)).body(program.launches[i].body);
  return program;
}

}  // namespace tilewright::passes
