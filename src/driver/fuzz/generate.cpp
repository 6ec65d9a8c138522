#include "driver/fuzz/generate.h"

#include "ir/builder.h"
#include "ir/rewrite.h"
#include "scalar/functions.h"

namespace tilewright::fuzz {
namespace {

using ir::BufferId;
using ir::Expr;
using ir::Operator;
using ir::Space;
using ir::TileRef;

// Whole numbers up to this are exact in the type, and so are their sums up to it.
double largest_whole(DType t) {
  switch (t.kind) {
    case Kind::BFloat: return 0x1p8;
    case Kind::TFloat: return 0x1p11;
    case Kind::Float8E4M3FN: return 16;
    case Kind::Float8E5M2: return 8;
    case Kind::Float4E2M1: return 4;
    case Kind::Float8E8M0: return 0;
    case Kind::Float: return t.bits == 16 ? 0x1p11 : t.bits == 32 ? 0x1p24 : 0x1p53;
    default: return 0x1p53;  // integers wrap, the same way in any order
  }
}

// What the arguments hold is decided by name, so that a minimized program gets the data of the original.
// A hash that is the same in every library.
uint64_t hash_of(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ull;  // FNV-1a
  for (char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return h;
}
bool holds_whole_numbers(const std::string& name) { return name[0] == 'W'; }
double input_bound(DType t) { return t.kind == Kind::Float8E8M0 ? 0 : t.bits <= 4 ? 3 : 4; }

struct Tile {
  BufferId id;
  Space space;
  std::vector<int64_t> shape;
  DType type;
  double bound = -1;  // all values are whole and at most this; -1: any values
  bool whole() const { return bound >= 0; }
};
struct Valued {
  Expr expr;
  double bound = -1;
};

// One program of so many waits for the launches before it and lets those after it begin. No number is drawn for it: the
// others stay what they were.
constexpr uint64_t kAmongLaunches = 8;

class Generator {
 public:
  explicit Generator(uint64_t seed)
      : random_(seed), builder_("fuzz_" + std::to_string(seed)), among_launches_(seed % kAmongLaunches == 0) {}
  ir::TileProgram run();

 private:
  Expr extent_param(const char* name, int64_t value);
  BufferId input(DType type, bool whole);
  BufferId output(std::vector<Expr> shape, DType type);
  DType any_type();
  DType number_type() { return random_.pick<DType>({f32, f32, f16, bf16, i32, i32, i8, u8, i64, f64, u32, i16}); }

  TileRef whole_of(BufferId id) const { return {id, {}, true}; }
  static TileRef at(BufferId id, std::vector<Expr> indices) {
    TileRef ref{id, {}, false};
    for (Expr& e : indices) ref.indices.push_back({std::move(e), {}, false});
    return ref;
  }
  Tile make(std::vector<int64_t> shape, DType type, double bound);
  const Tile* any_tile(size_t rank, bool need_whole);
  Tile counting_tile(std::vector<int64_t> shape, DType type);
  Valued leaf(const std::vector<Tile>& sources, const std::vector<Expr>& point);
  Valued expression(int depth, const std::vector<Tile>& sources, const std::vector<Expr>& point);
  Valued combine(const Valued& a, const Valued& b);
  Valued modify(const Valued& a);
  Valued as(const Valued& v, DType type);
  void map_into(const Tile& to, const std::vector<Tile>& sources);
  void save(const Tile& tile);

  void step();
  void step_copy();
  void step_map();
  void step_gemm();
  void step_reduce();
  void step_scan();
  void forget_values(ir::BufferId id);
  void step_view();
  void step_reducer();
  void step_atomics();
  void step_threads();
  void step_loop();
  void step_scalar();

  Random random_;
  ir::Builder builder_;
  const bool among_launches_;
  int64_t m_ = 1, n_ = 1, bm_ = 1, bn_ = 1, threads_ = 32;
  Expr m_expr_, n_expr_, grid_x_, grid_y_;
  std::vector<Expr> block_;
  Expr row_, column_;  // of the block's tile
  std::vector<Tile> tiles_;
  std::vector<std::pair<BufferId, bool>> inputs_;  // whole numbers?
  BufferId counters_, per_thread_;
  int outputs_ = 0, names_ = 0, loops_ = 0;
  std::vector<std::pair<BufferId, std::vector<Expr>>> spare_outputs_;
};

DType Generator::any_type() {
  if (random_.chance(75)) return number_type();
  return random_.pick<DType>({boolean, i4, u4, u16, u64, tf32, e4m3, e5m2, e8m0, e2m1});
}

Expr Generator::extent_param(const char* name, int64_t value) {
  return random_.chance(35) ? ir::var(ir::new_free_var(name, i32), i32) : ir::constant(value);
}

BufferId Generator::input(DType type, bool whole) {
  const BufferId id = builder_.tensor(fmt::format("{}{}", whole ? 'W' : 'X', names_++), {m_expr_, n_expr_}, type);
  inputs_.push_back({id, whole && type.kind != Kind::Float8E8M0});
  return id;
}

BufferId Generator::output(std::vector<Expr> shape, DType type) {
  return builder_.tensor(fmt::format("out{}", outputs_++), std::move(shape), type);
}

Tile Generator::make(std::vector<int64_t> shape, DType type, double bound) {
  Tile t{{}, random_.chance(50) ? Space::Shared : Space::Fragment, std::move(shape), type, bound};
  std::vector<Expr> extents;
  for (int64_t e : t.shape) extents.push_back(ir::constant(e));
  t.id = builder_.alloc(t.space, fmt::format("t{}", names_++), extents, type);
  return t;
}

const Tile* Generator::any_tile(size_t rank, bool need_whole) {
  std::vector<const Tile*> fits;
  for (const Tile& t : tiles_)
    if ((rank == 0 || t.shape.size() == rank) && (!need_whole || t.whole())) fits.push_back(&t);
  return fits.empty() ? nullptr : random_.pick(fits);
}

// A tile of small whole numbers made from its indices.
Tile Generator::counting_tile(std::vector<int64_t> shape, DType type) {
  Tile t = make(shape, type, 2);
  std::vector<Expr> extents, point;
  for (int64_t e : shape) extents.push_back(ir::constant(e));
  point = builder_.open_map({"i", "j"}, extents);
  Expr mixed = ir::constant(random_.below(5));
  for (const Expr& p : point) mixed = ir::add(mixed, ir::mul(p, ir::constant(random_.between(1, 7))));
  const int64_t low = type.is_signed() && type.is_float() + type.is_int() ? -2 : 0;
  const Expr value =
      ir::add(ir::binary(ir::BinaryOp::FloorMod, mixed, ir::constant(low < 0 ? 5 : 3)), ir::constant(low));
  builder_.store(at(t.id, point), value);
  builder_.close();
  return t;
}

// ---- expressions

Valued Generator::as(const Valued& v, DType type) {
  const bool keeps = v.bound >= 0 && v.bound <= largest_whole(type) && type.kind != Kind::Float8E8M0 && !type.is_bool();
  return {ir::apply_cast(v.expr, type), keeps || type.is_int() ? std::max(v.bound, 0.0) : -1};
}

Valued Generator::leaf(const std::vector<Tile>& sources, const std::vector<Expr>& point) {
  if (!sources.empty() && random_.chance(70)) {
    const Tile& t = random_.pick(sources);
    // A source has the shape of the map, or is one row or column of it.
    std::vector<Expr> index = t.shape.size() == point.size() ? point : std::vector<Expr>{point[0]};
    const Expr value = builder_.load(at(t.id, index));
    // Scales have no arithmetic of their own.
    return {t.type.kind == Kind::Float8E8M0 ? ir::apply_cast(value, f32) : value, t.bound};
  }
  if (random_.chance(40)) return {random_.pick(point), 64};
  if (random_.chance(50)) return {ir::constant(random_.between(-3, 3)), 3};
  return {ir::constant(f32, static_cast<double>(random_.between(-8, 8)) / 4), -1};
}

Valued Generator::combine(const Valued& a, const Valued& b) {
  const auto type = ir::promote(a.expr->type, b.expr->type);
  if (!type) return a;
  const bool whole = a.bound >= 0 && b.bound >= 0;
  Valued out;
  switch (random_.below(10)) {
    case 0:
    case 1: out = {ir::apply(Operator::Add, a.expr, b.expr), a.bound + b.bound}; break;
    case 2: out = {ir::apply(Operator::Sub, a.expr, b.expr), a.bound + b.bound}; break;
    case 3: out = {ir::apply(Operator::Mul, a.expr, b.expr), a.bound * b.bound}; break;
    case 4: out = {ir::apply(Operator::Max, a.expr, b.expr), std::max(a.bound, b.bound)}; break;
    case 5: out = {ir::apply(Operator::Min, a.expr, b.expr), std::max(a.bound, b.bound)}; break;
    case 6: {
      const Operator compare =
          random_.pick({Operator::Lt, Operator::Le, Operator::Eq, Operator::Ne, Operator::Gt, Operator::Ge});
      out = {ir::apply_select(ir::apply(compare, a.expr, b.expr), a.expr, b.expr), std::max(a.bound, b.bound)};
      break;
    }
    case 7: {
      if (!type->is_int()) return a;
      const Operator bits = random_.pick({Operator::BitAnd, Operator::BitOr, Operator::BitXor});
      out = {ir::apply(bits, a.expr, b.expr), 0};
      break;
    }
    case 8: {
      if (!type->is_float() || type->kind == Kind::Float8E8M0) return b;
      out = {ir::apply(Operator::Div, a.expr, b.expr), -1};
      break;
    }
    default: {
      const Expr both = random_.chance(50) ? ir::apply(Operator::And, ir::apply(Operator::Lt, a.expr, b.expr),
                                                       ir::apply(Operator::Ne, a.expr, b.expr))
                                           : ir::apply(Operator::Or, ir::apply(Operator::Le, a.expr, b.expr),
                                                       ir::apply(Operator::Gt, a.expr, b.expr));
      out = {ir::apply_select(both, b.expr, a.expr), std::max(a.bound, b.bound)};
    }
  }
  if (!whole || out.bound > largest_whole(out.expr->type)) out.bound = out.expr->type.is_int() ? 0 : -1;
  return out;
}

Valued Generator::modify(const Valued& a) {
  const DType type = a.expr->type;
  if (type.is_int()) {
    const Expr c = ir::constant(random_.between(1, 7));
    switch (random_.below(6)) {
      case 0: return {ir::apply(Operator::FloorDiv, a.expr, c), a.bound};
      case 1: return {ir::apply(Operator::FloorMod, a.expr, c), 7};
      case 2:
        return {ir::apply(Operator::Shl, a.expr, ir::constant(random_.below(std::min<int64_t>(type.bits, 4)))), 0};
      case 3:
        return {ir::apply(Operator::Shr, a.expr, ir::constant(random_.below(std::min<int64_t>(type.bits, 4)))),
                a.bound};
      case 4: return {ir::apply_bit_not(a.expr), 0};
      default: return {ir::apply_neg(a.expr), a.bound};
    }
  }
  if (type.is_bool() || type.kind == Kind::Float8E8M0) return a;
  static const std::vector<Function> kFunctions = {Function::Exp2, Function::Exp,   Function::Abs,  Function::Floor,
                                                   Function::Ceil, Function::Sqrt,  Function::Tanh, Function::Sigmoid,
                                                   Function::Log2, Function::Rsqrt, Function::Rint, Function::Sin,
                                                   Function::Erf,  Function::Log1p};
  const Function f = random_.pick(kFunctions);
  if (!accepts(f, type)) return a;
  const bool keeps = f == Function::Abs || f == Function::Floor || f == Function::Ceil || f == Function::Rint;
  return {ir::apply_function(f, {a.expr}), keeps ? a.bound : -1};
}

Valued Generator::expression(int depth, const std::vector<Tile>& sources, const std::vector<Expr>& point) {
  if (depth == 0) return leaf(sources, point);
  if (random_.chance(25)) return modify(expression(depth - 1, sources, point));
  if (random_.chance(12)) return as(expression(depth - 1, sources, point), number_type());
  return combine(expression(depth - 1, sources, point), expression(depth - 1, sources, point));
}

// ---- steps

void Generator::map_into(const Tile& to, const std::vector<Tile>& sources) {
  std::vector<Expr> extents;
  for (int64_t e : to.shape) extents.push_back(ir::constant(e));
  const std::vector<Expr> point = builder_.open_map({"i", "j"}, extents);
  Valued v = expression(static_cast<int>(random_.between(1, 3)), sources, point);
  if (random_.chance(20)) v.expr = builder_.let("x", v.expr);
  builder_.store(at(to.id, point), ir::apply_cast(v.expr, to.type));
  builder_.close();
}

void Generator::save(const Tile& tile) {
  std::vector<Expr> position;
  std::vector<Expr> shape;
  if (tile.shape == std::vector<int64_t>{bm_, bn_}) {
    shape = {m_expr_, n_expr_}, position = {row_, column_};
  } else {  // one copy of the tile for each block
    shape = {grid_y_, grid_x_}, position = {block_[1], block_[0]};
    for (int64_t e : tile.shape) shape.push_back(ir::constant(e)), position.push_back(ir::constant(0));
  }
  const BufferId out = output(shape, tile.type);
  if (tile.shape.size() == 2 && random_.chance(30)) {  // by an elementwise loop instead of a copy
    std::vector<Expr> extents;
    for (int64_t e : tile.shape) extents.push_back(ir::constant(e));
    const std::vector<Expr> point = builder_.open_map({"i", "j"}, extents);
    std::vector<Expr> index = position;
    for (size_t d = 0; d < 2; ++d) index[index.size() - 2 + d] = ir::add(index[index.size() - 2 + d], point[d]);
    builder_.store(at(out, index), builder_.load(at(tile.id, point)));
    builder_.close();
  } else {
    builder_.copy(whole_of(tile.id), at(out, position));
  }
}

void Generator::step_copy() {
  const auto [source, whole] = random_.pick(inputs_);
  const DType from = builder_.buffer(source).type;
  const DType type = random_.chance(60) ? from : number_type();
  const double bound = whole ? input_bound(from) : -1;
  Tile t = make(
      {bm_, bn_}, type,
      (whole && bound <= largest_whole(type)) || (type.is_int() && from.is_integral()) ? std::max(bound, 0.0) : -1);
  const Expr dr = random_.chance(25) ? ir::constant(random_.between(-3, 3)) : ir::constant(0);
  builder_.copy(at(source, {ir::add(row_, dr), column_}), whole_of(t.id));
  tiles_.push_back(t);
}

// Any values may stand now in a tile, and so in all that share its memory.
void Generator::forget_values(ir::BufferId id) {
  const auto memory = [&](ir::BufferId of) { return builder_.buffer(of).root.valid() ? builder_.buffer(of).root : of; };
  for (Tile& t : tiles_)
    if (memory(t.id) == memory(id)) t.bound = t.type.is_int() ? 0 : -1;
}

void Generator::step_map() {
  const Tile* like = any_tile(0, false);
  if (!like) return step_copy();
  const std::vector<int64_t> shape = like->shape;
  std::vector<Tile> sources;
  for (const Tile& t : tiles_)
    if (t.shape == shape || (shape.size() == 2 && t.shape == std::vector<int64_t>{shape[0]})) sources.push_back(t);
  if (random_.chance(25)) {  // in place, guarded
    const Tile to = *like;
    std::vector<Expr> extents;
    for (int64_t e : shape) extents.push_back(ir::constant(e));
    const std::vector<Expr> point = builder_.open_map({"i", "j"}, extents);
    builder_.open_if(ir::apply(Operator::Lt, point[0], ir::constant(random_.between(0, shape[0]))));
    const Valued v = expression(2, {to}, point);
    builder_.store(at(to.id, point), ir::apply_cast(v.expr, to.type));
    builder_.close();
    builder_.close();
    forget_values(to.id);
    return;
  }
  const DType type = any_type();
  Tile t = make(shape, type, type.is_int() ? 0 : -1);
  map_into(t, sources);
  tiles_.push_back(t);
}

void Generator::step_gemm() {
  struct Types {
    DType in, out;
  };
  const Types types = random_.pick<Types>({{f32, f32},
                                           {f16, f32},
                                           {bf16, f32},
                                           {f16, f16},
                                           {e4m3, f32},
                                           {e5m2, f32},
                                           {i8, i32},
                                           {u8, i32},
                                           {f64, f64},
                                           {tf32, f32},
                                           {e2m1, f32}});
  const bool ta = random_.chance(30), tb = random_.chance(30);
  const int64_t k = random_.pick({1, 3, 8, 16, 17, 32});
  const Tile a = counting_tile(ta ? std::vector<int64_t>{k, bm_} : std::vector<int64_t>{bm_, k}, types.in);
  const Tile b = counting_tile(tb ? std::vector<int64_t>{bn_, k} : std::vector<int64_t>{k, bn_}, types.in);
  const int64_t trips = random_.pick({1, 1, 2, 3});
  Tile c = make({bm_, bn_}, types.out, static_cast<double>(4 * k * trips));
  builder_.fill(whole_of(c.id), ir::constant(types.out, int64_t{0}));
  ir::GemmOptions options;
  options.transpose_a = ta, options.transpose_b = tb;
  options.policy = random_.pick({ir::GemmPolicy::Square, ir::GemmPolicy::FullRow, ir::GemmPolicy::FullCol});
  if (trips > 1) {
    ir::LoopOptions loop;
    loop.kind = ir::LoopKind::Pipelined, loop.stages = random_.below(4);
    const Expr step = builder_.open_for("ko", ir::constant(0), ir::constant(trips), loop);
    if (random_.chance(30)) options.clear = ir::apply(Operator::Eq, step, ir::constant(0));
    builder_.gemm(whole_of(a.id), whole_of(b.id), whole_of(c.id), options);
    builder_.close();
  } else {
    builder_.gemm(whole_of(a.id), whole_of(b.id), whole_of(c.id), options);
  }
  if (c.bound > largest_whole(types.out)) c.bound = -1;
  tiles_.push_back(c);
}

void Generator::step_reduce() {
  const Tile* source = any_tile(2, true);
  if (!source) return step_gemm();
  const Tile from = *source;
  if (from.type.is_packed()) return;
  const int64_t dim = random_.below(2), n = from.shape[static_cast<size_t>(dim)];
  using ir::ReduceOp;
  ReduceOp op =
      random_.pick({ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::AbsMax, ReduceOp::AbsSum});
  if (from.type.is_int() && random_.chance(30))
    op = random_.pick({ReduceOp::BitAnd, ReduceOp::BitOr, ReduceOp::BitXor});
  const bool sums = op == ReduceOp::Sum || op == ReduceOp::AbsSum;
  const DType type = random_.chance(70) || from.type.is_int() || !sums ? from.type : f32;
  const double bound = (sums ? static_cast<double>(n) : 1) * from.bound + from.bound;
  if (type.is_float() && bound > largest_whole(type)) return;
  Tile to = make({from.shape[static_cast<size_t>(1 - dim)]}, type, bound);
  ir::ReduceOptions options;
  options.dim = random_.chance(50) ? dim : dim - 2;
  options.clear = random_.chance(70);
  if (!options.clear) builder_.fill(whole_of(to.id), ir::constant(type, int64_t{type.is_signed() ? -1 : 1}));
  builder_.reduce(op, whole_of(from.id), whole_of(to.id), options);
  tiles_.push_back(to);
}

void Generator::step_scan() {
  const Tile* source = any_tile(0, true);
  if (!source || source->type.is_packed()) return step_reduce();
  const Tile from = *source;
  const int64_t dim = random_.below(static_cast<int64_t>(from.shape.size()));
  const double bound = from.bound * static_cast<double>(from.shape[static_cast<size_t>(dim)]);
  if (from.type.is_float() && bound > largest_whole(from.type)) return;
  Tile to = make(from.shape, from.type, bound);
  builder_.scan(random_.chance(70) ? ir::ReduceOp::Sum : ir::ReduceOp::Max, whole_of(from.id), whole_of(to.id), dim,
                random_.chance(40));
  tiles_.push_back(to);
}

void Generator::step_view() {
  const Tile* source = any_tile(2, false);
  if (!source) return step_copy();
  const Tile from = *source;
  Tile v = from;
  v.shape = random_.chance(50) ? std::vector<int64_t>{from.shape[0] * from.shape[1]}
                               : std::vector<int64_t>{from.shape[1], from.shape[0]};
  if (from.type == i32 && random_.chance(50)) v.type = u32;
  std::vector<Expr> extents;
  for (int64_t e : v.shape) extents.push_back(ir::constant(e));
  v.id = builder_.view(fmt::format("v{}", names_++), from.id, extents, v.type);
  tiles_.push_back(v);
}

void Generator::step_reducer() {
  const Tile* source = any_tile(2, true);
  if (!source) return step_gemm();
  const Tile from = *source;
  const DType type = from.type.is_float() ? f32 : i32;
  const double bound = from.bound * static_cast<double>(from.shape[1]);
  if (bound > largest_whole(type)) return;
  const BufferId acc =
      builder_.alloc_reducer(fmt::format("r{}", names_++), {ir::constant(from.shape[0])}, type, ir::ReduceOp::Sum);
  builder_.fill(whole_of(acc), ir::constant(type, int64_t{0}));
  const std::vector<Expr> p = builder_.open_map({"i", "j"}, {ir::constant(from.shape[0]), ir::constant(from.shape[1])});
  builder_.atomic(ir::AtomicOp::Add, at(acc, {p[0]}), ir::apply_cast(builder_.load(at(from.id, p)), type), false);
  builder_.close();
  builder_.finalize_reducer(acc);
  Tile to = make({from.shape[0]}, type, bound);
  const std::vector<Expr> q = builder_.open_map({"i"}, {ir::constant(from.shape[0])});
  builder_.store(at(to.id, q), builder_.load(at(acc, q)));
  builder_.close();
  tiles_.push_back(to);
}

void Generator::step_atomics() {
  const Expr tx = builder_.thread_index(0);
  // Each operation has eight counters of its own: different operations on one element do not commute.
  static constexpr ir::AtomicOp kOps[] = {ir::AtomicOp::Add, ir::AtomicOp::Max, ir::AtomicOp::Min, ir::AtomicOp::Or,
                                          ir::AtomicOp::Xor};
  const int64_t which = random_.below(std::size(kOps));
  const ir::AtomicOp op = kOps[which];
  const Expr slot = ir::constant(8 * which);
  if (random_.chance(50)) {
    const std::vector<Expr> p = builder_.open_map({"i", "j"}, {ir::constant(bm_), ir::constant(bn_)});
    const Expr lane =
        ir::binary(ir::BinaryOp::FloorMod, ir::add(p[0], ir::mul(p[1], ir::constant(3))), ir::constant(8));
    builder_.atomic(op, at(counters_, {ir::add(slot, lane)}), ir::add(p[0], ir::constant(1)), false);
    builder_.close();
  } else {
    const Expr lane = ir::binary(ir::BinaryOp::FloorMod, random_.chance(80) ? tx : ir::constant(3), ir::constant(8));
    builder_.atomic(op, at(counters_, {ir::add(slot, lane)}), ir::constant(random_.between(1, 5)), false);
  }
}

// Code of single threads: shared memory between barriers, private variables, divergent loops, warp operations.
void Generator::step_threads() {
  const Expr tx = builder_.thread_index(0);
  const BufferId line = builder_.alloc(Space::Shared, fmt::format("line{}", names_++), {ir::constant(threads_)}, i32);
  builder_.store(at(line, {tx}),
                 ir::add(ir::mul(tx, ir::constant(random_.between(1, 9))), ir::constant(random_.between(-9, 9))));
  if (random_.chance(70)) builder_.sync(ir::SyncScope::Block);
  const Expr other = ir::binary(
      ir::BinaryOp::FloorMod, ir::add(ir::mul(tx, ir::constant(random_.between(1, 5))), ir::constant(random_.below(7))),
      ir::constant(threads_));
  Expr x = builder_.let("x", builder_.load(at(line, {other})));
  const BufferId v = builder_.alloc(Space::Local, fmt::format("v{}", names_++), {}, i32);
  builder_.store({v, {}, true}, ir::constant(random_.between(0, 3)));
  auto read = [&] { return builder_.load({v, {}, true}); };
  if (random_.chance(60)) {
    builder_.open_while(
        ir::apply(Operator::Lt, read(), ir::binary(ir::BinaryOp::FloorMod, tx, ir::constant(random_.between(2, 9)))));
    builder_.store({v, {}, true}, ir::add(read(), ir::constant(1)));
    if (random_.chance(40)) {
      builder_.open_if(ir::apply(Operator::Eq, read(), ir::constant(4)));
      random_.chance(50) ? builder_.break_loop() : builder_.continue_loop();
      builder_.close();
    }
    if (random_.chance(30) && threads_ % 32 == 0)
      builder_.store(
          {v, {}, true},
          ir::add(read(), ir::cast(builder_.vote(ir::VoteKind::Any, ir::constant(boolean, int64_t{0})), i32)));
    builder_.close();
  }
  builder_.open_if(
      ir::apply(Operator::Ne, ir::binary(ir::BinaryOp::FloorMod, tx, ir::constant(3)), ir::constant(random_.below(3))));
  builder_.store({v, {}, true}, ir::sub(ir::mul(read(), ir::constant(3)), x));
  builder_.close();
  if (random_.chance(40)) {
    builder_.open_else();
    builder_.store({v, {}, true}, ir::add(read(), ir::constant(100)));
    builder_.close();
  }
  if (threads_ % 32 == 0 && random_.chance(60)) {
    const auto kind =
        random_.pick({ir::ShuffleKind::Xor, ir::ShuffleKind::Up, ir::ShuffleKind::Down, ir::ShuffleKind::Index});
    const int64_t width = random_.pick({4, 8, 32});
    x = builder_.shuffle(kind, x, ir::constant(random_.below(32)), width);
  }
  if (random_.chance(50)) {
    const Expr vote = builder_.vote(
        random_.pick({ir::VoteKind::Ballot, ir::VoteKind::BlockCount, ir::VoteKind::All, ir::VoteKind::BlockAny}),
        ir::apply(Operator::Gt, x, ir::constant(random_.between(-5, 40))));
    x = ir::add(x, ir::cast(vote, i32));
  }
  const Expr slot =
      ir::add(ir::mul(ir::add(ir::mul(block_[1], ir::cast(grid_x_, i32)), block_[0]), ir::constant(threads_)), tx);
  builder_.store(at(per_thread_, {slot}), ir::add(read(), x));
}

void Generator::step_loop() {
  if (loops_ > 0) return step_map();
  const Tile* source = any_tile(2, true);
  if (!source) return step_copy();
  const Tile tile = *source;
  ++loops_;
  ir::LoopOptions options;
  options.kind = random_.pick({ir::LoopKind::Serial, ir::LoopKind::Unroll, ir::LoopKind::Pipelined});
  if (options.kind == ir::LoopKind::Pipelined) options.stages = random_.below(4);
  if (options.kind == ir::LoopKind::Serial && random_.chance(40)) options.step = ir::constant(random_.pick({2, 3, -1}));
  const bool down = options.step && ir::constant_int(options.step) == -1;
  const int64_t trips = random_.below(4);
  const Expr t = builder_.open_for("t", ir::constant(down ? trips : 0), ir::constant(down ? 0 : trips), options);
  Tile staged = make(tile.shape, tile.type, -1);
  builder_.copy(whole_of(tile.id), whole_of(staged.id));
  const std::vector<Expr> p = builder_.open_map({"i", "j"}, {ir::constant(tile.shape[0]), ir::constant(tile.shape[1])});
  const Expr sum = ir::apply(Operator::Add, builder_.load(at(staged.id, p)),
                             ir::apply_cast(t, tile.type.is_packed() || tile.type.is_float8() ? f32 : tile.type));
  builder_.store(at(tile.id, p), ir::apply_cast(sum, tile.type));
  builder_.close();
  builder_.close();
  --loops_;
  forget_values(tile.id);
}

void Generator::step_scalar() {
  const BufferId s =
      builder_.alloc(Space::Local, fmt::format("s{}", names_++), {}, random_.pick<DType>({i32, f32, f16}));
  builder_.store({s, {}, true}, ir::apply_cast(ir::constant(random_.between(0, 9)), builder_.buffer(s).type));
  const Expr t = builder_.open_for("t", ir::constant(0), ir::constant(random_.between(0, 4)), {});
  builder_.store({s, {}, true},
                 ir::apply_cast(ir::apply(Operator::Add, builder_.load({s, {}, true}), t), builder_.buffer(s).type));
  builder_.close();
  const Tile* like = any_tile(2, false);
  if (!like) return;
  Tile to = make(like->shape, builder_.buffer(s).type, 64);
  builder_.fill(whole_of(to.id), builder_.load({s, {}, true}));
  tiles_.push_back(to);
}

void Generator::step() {
  switch (random_.below(14)) {
    case 0:
    case 1: return step_copy();
    case 2:
    case 3:
    case 4: return step_map();
    case 5: return step_gemm();
    case 6: return step_reduce();
    case 7: return step_scan();
    case 8: return step_view();
    case 9: return step_reducer();
    case 10: return step_atomics();
    case 11: return step_threads();
    case 12: return step_loop();
    default: return step_scalar();
  }
}

ir::TileProgram Generator::run() {
  const std::vector<int64_t> extents = {1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 40};
  m_ = random_.pick(extents), n_ = random_.pick(extents);
  bm_ = random_.pick<int64_t>({1, 2, 4, 5, 8, 16, 17, 32}), bn_ = random_.pick<int64_t>({1, 3, 4, 8, 11, 16, 32});
  threads_ = random_.pick<int64_t>({1, 7, 32, 32, 33, 64, 100, 128, 128});
  m_expr_ = extent_param("M", m_), n_expr_ = extent_param("N", n_);
  grid_x_ = ir::ceildiv(n_expr_, ir::constant(bn_)), grid_y_ = ir::ceildiv(m_expr_, ir::constant(bm_));
  for (int64_t i = random_.between(1, 3); i > 0; --i) {
    const bool whole = random_.chance(60);
    input(any_type(), whole);
  }
  counters_ = builder_.tensor("counters", {ir::constant(40)}, i32);
  per_thread_ = builder_.tensor("lanes", {ir::mul(ir::mul(grid_y_, grid_x_), ir::constant(threads_))}, i32);
  ir::LaunchOptions launch;
  launch.threads = {threads_};
  block_ = builder_.open_launch({grid_x_, grid_y_}, launch);
  row_ = ir::mul(block_[1], ir::constant(bm_)), column_ = ir::mul(block_[0], ir::constant(bn_));
  if (random_.chance(20))
    builder_.use_swizzle(random_.between(1, 4), random_.chance(50) ? ir::RasterOrder::Row : ir::RasterOrder::Column);
  if (among_launches_) builder_.sync(ir::SyncScope::Launches, {}, 0, false, true);
  for (int64_t steps = random_.between(1, 7); steps > 0; --steps) step();
  if (among_launches_) builder_.sync(ir::SyncScope::Launches, {}, 0, true);
  if (tiles_.empty()) step_copy();
  const size_t first = tiles_.size() > 4 ? tiles_.size() - 4 : 0;
  for (size_t i = first; i < tiles_.size(); ++i) save(tiles_[i]);
  builder_.close_launch();
  return builder_.finish();
}

int64_t value_of(const Expr& e, const std::map<std::string, int64_t>& symbols, const ir::TileProgram& program) {
  ir::Substitution values;
  for (ir::VarId id : ir::used_vars(e))
    values[id] = ir::constant(program.var(id).type, symbols.at(program.var(id).name));
  return ir::constant_int(ir::substitute(e, values)).value();
}

void fill_input(NDArray& array, const std::string& name, Random random) {
  const DType t = array.dtype();
  const int64_t n = array.size();
  if (t.is_float() && t.kind != Kind::Float8E8M0) {
    std::vector<double> values;
    const auto bound = static_cast<int64_t>(input_bound(t));
    for (int64_t i = 0; i < n; ++i)
      values.push_back(holds_whole_numbers(name) ? static_cast<double>(random.between(-bound, bound))
                                                 : static_cast<double>(random.between(-4000, 4000)) / 1000);
    array.assign_floats(values);
  } else if (t.is_float()) {
    std::vector<double> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(std::ldexp(1.0, static_cast<int>(random.between(-3, 3))));
    array.assign_floats(values);
  } else {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < n; ++i)
      values.push_back(t.is_bool() ? random.below(2) : t.is_signed() ? random.between(-4, 3) : random.below(4));
    array.assign_ints(values);
  }
}

}  // namespace

Sample generate(uint64_t seed) {
  Sample sample;
  sample.program = Generator(seed).run();
  sample.arguments = arguments_for(sample.program, seed);
  return sample;
}

std::vector<Argument> arguments_for(const ir::TileProgram& program, uint64_t seed) {
  Random random(seed);
  const std::vector<int64_t> extents = {1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 40};
  // The generator draws M and N first.
  const std::map<std::string, int64_t> symbols = [&] {
    std::map<std::string, int64_t> out;
    out["M"] = random.pick(extents);
    out["N"] = random.pick(extents);
    return out;
  }();
  std::vector<Argument> arguments;
  for (const ir::Param& p : program.params) {
    const ir::Buffer& b = program.buffer(p.buffer);
    std::vector<int64_t> shape;
    for (const Expr& e : b.shape) shape.push_back(value_of(e, symbols, program));
    Argument a;
    a.array = NDArray::zeros(shape, b.type);
    a.is_output = b.name[0] != 'W' && b.name[0] != 'X';
    if (!a.is_output) fill_input(a.array, b.name, Random(seed ^ hash_of(b.name)));
    arguments.push_back(std::move(a));
  }
  return arguments;
}

}  // namespace tilewright::fuzz
