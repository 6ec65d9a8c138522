// Tile ops and order: which extents each operand has, and what does not fit.
#include "ir/builder.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

bool is_one(const Expr& e) { return constant_int(e) == 1; }

std::vector<size_t> wide_dims(const Region& r) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < r.extent.size(); ++d)
    if (!is_one(r.extent[d])) dims.push_back(d);
  return dims;
}

std::string text_of(const std::vector<Expr>& extents) {
  std::string out = "(";
  for (size_t d = 0; d < extents.size(); ++d) {
    auto c = constant_int(extents[d]);
    out += (d ? ", " : "") + (c ? std::to_string(*c) : std::string("?"));
  }
  return out + ")";
}

int distance_from_registers(Space space) { return space == Space::Global ? 2 : space == Space::Shared ? 1 : 0; }

}  // namespace

// The box a reference names. An element reference has no extents yet: its box is one element.
Region Builder::region(const TileRef& ref) const {
  const Buffer& b = program_.buffer(ref.buffer);
  Region r{ref.buffer, {}, {}};
  if (ref.whole) {
    for (const Expr& e : b.shape) r.min.push_back(constant(e->type, int64_t{0}));
    r.extent = b.shape;
    return r;
  }
  if (ref.indices.size() != b.rank())
    fail_here(Code::IndexCount,
              fmt::format("'{}' has {} dimensions, but {} indices are given", b.name, b.rank(), ref.indices.size()), "",
              {{fmt::format("'{}' is declared here", b.name), program_.location(b.location)}});
  for (size_t d = 0; d < ref.indices.size(); ++d) {
    const IndexSpec& i = ref.indices[d];
    if (!i.is_slice) {
      r.min.push_back(normalized_index(b, d, i.begin));
      r.extent.push_back(constant(1));
      continue;
    }
    const Expr begin = i.begin ? i.begin : constant(0), end = i.end ? i.end : b.shape[d];
    const auto type = promote(begin->type, end->type);
    if (!type || !type->is_int())
      fail_here(Code::IndexType, fmt::format("slice {} of '{}' is not made of integers", d, b.name),
                "cast its bounds to int32");
    Expr extent = sub(cast(end, *type), cast(begin, *type));
    auto length = constant_int(extent), first = constant_int(begin), full = constant_int(b.shape[d]);
    if (length && *length < 1)
      fail_here(Code::EmptySlice, fmt::format("slice {} of '{}' has {} elements", d, b.name, *length));
    if (b.space != Space::Global && first && length && full && *first + *length > *full)
      fail_here(Code::IndexOutOfBounds,
                fmt::format("slice {} of '{}' ends at {}, the extent is {}", d, b.name, *first + *length, *full));
    r.min.push_back(cast(begin, *type));
    r.extent.push_back(std::move(extent));
  }
  return r;
}

// The boxes of both sides of a copy, an atomic tile op or their like: extents other than 1 agree in order afterwards,
// except where one side broadcasts (it has fewer of them).
std::pair<Region, Region> Builder::matched(const TileRef& from, const TileRef& to, const char* what) const {
  Region a = region(from), b = region(to);
  auto give_extents = [&](Region& head, const Region& tile, const TileRef& ref) {
    const size_t n = head.extent.size();
    size_t skip = 0;  // leading extents of 1 of the tile need no dimension here
    while (tile.extent.size() - skip > n && is_one(tile.extent[skip])) ++skip;
    if (tile.extent.size() - skip > n)
      fail_here(
          Code::CopyRank,
          fmt::format(
              "{}: the tile has {} dimensions, but '{}', which is given by the position of its first element, has {}",
              what, tile.extent.size(), name_of(ref), n));
    for (size_t d = 0; d < tile.extent.size() - skip; ++d)
      head.extent[n - 1 - d] = tile.extent[tile.extent.size() - 1 - d];
  };
  if (from.is_element() && !to.is_element()) give_extents(a, b, from);
  if (to.is_element() && !from.is_element()) give_extents(b, a, to);
  std::vector<size_t> wa = wide_dims(a), wb = wide_dims(b);
  // Align in order when both have as many extents other than 1, else from the last dimension.
  const size_t common = std::min(wa.size(), wb.size());
  for (size_t i = 0; i < common; ++i) {
    const size_t da = wa[wa.size() - 1 - i], db = wb[wb.size() - 1 - i];
    Expr &ea = a.extent[da], &eb = b.extent[db];
    if (equal(ea, eb)) continue;
    auto ca = constant_int(ea), cb = constant_int(eb);
    if (ca && cb)
      fail_here(Code::CopyExtents,
                fmt::format("{}: the extents differ: '{}' has {}, '{}' has {}", what, name_of(from), text_of(a.extent),
                            name_of(to), text_of(b.extent)),
                "give both sides the same tile, or an element reference on the global side");
    // One is dynamic: the side closer to registers decides, ties go to the source.
    const bool source_decides = distance_from_registers(program_.buffer(a.buffer).space) <=
                                distance_from_registers(program_.buffer(b.buffer).space);
    (source_decides ? eb : ea) = cast(source_decides ? ea : eb, (source_decides ? eb : ea)->type);
  }
  return {std::move(a), std::move(b)};
}

// A copy whose source has fewer extents than its destination repeats the source: the same as an elementwise loop.
void Builder::broadcast_copy(const Region& from, const Region& to, const CopyOptions& options) {
  const std::vector<size_t> wf = wide_dims(from), wt = wide_dims(to);
  if (wf.size() > wt.size() || options.combine != Combine::None || !options.completion.immediate())
    fail_here(Code::CopyExtents,
              fmt::format("copy: the extents differ: '{}' has {}, '{}' has {}", program_.buffer(from.buffer).name,
                          text_of(from.extent), program_.buffer(to.buffer).name, text_of(to.extent)));
  std::vector<Expr> extents;
  for (size_t d : wt) extents.push_back(to.extent[d]);
  std::vector<Expr> points = open_map({"i", "j", "k", "l", "m", "n", "o", "p"}, extents);
  Element source{from.buffer, from.min}, target{to.buffer, to.min};
  for (size_t i = 0; i < wt.size(); ++i) target.indices[wt[i]] = apply(Operator::Add, to.min[wt[i]], points[i]);
  for (size_t i = 0; i < wf.size(); ++i)
    source.indices[wf[i]] = apply(Operator::Add, from.min[wf[i]], points[wt.size() - wf.size() + i]);
  const Expr value = ir::load(source.buffer, source.indices, program_.buffer(from.buffer).type);
  emit(Store{target, cast(value, program_.buffer(to.buffer).type)});
  close();
}

void Builder::copy(const TileRef& from, const TileRef& to, CopyOptions options) {
  const Buffer &source = program_.buffer(from.buffer), &target = program_.buffer(to.buffer);
  if (source.space == Space::Barrier || target.space == Space::Barrier)
    fail_here(Code::BarrierAccess, "copy of a barrier: it is not read or written");
  if (target.reducer || source.reducer)
    fail_here(Code::ReducerStore, fmt::format("copy: '{}' is a reducer", target.reducer ? target.name : source.name),
              "finalize_reducer into a fragment first");
  if (from.is_element() && to.is_element() && options.combine == Combine::None) {
    store(to, load(from));
    return;
  }
  if ((from.whole && source.rank() == 0) || (to.whole && target.rank() == 0)) {
    store(to, load(from));
    return;
  }
  need_no_map("copy");
  if (source.type.is_pointer() != target.type.is_pointer())
    fail_here(Code::BadCast, fmt::format("copy of {} to {}", source.type.name(), target.type.name()));
  if (options.combine != Combine::None && target.space != Space::Global && target.space != Space::Shared)
    fail_here(Code::AtomicSpace, fmt::format("an atomic on '{}', a {} buffer", target.name, ir::name_of(target.space)),
              "atomics work on global and shared memory");
  const bool barrier = options.completion.barrier.valid();
  if (barrier && !(source.space == Space::Global && target.space == Space::Shared))
    fail_here(Code::AsyncCopySpaces,
              fmt::format("a copy that signals a barrier goes from global to shared memory, not from {} to {}",
                          ir::name_of(source.space), ir::name_of(target.space)));
  if (options.completion.queue == Queue::CpAsync && !(source.space == Space::Global && target.space == Space::Shared))
    fail_here(Code::AsyncCopySpaces, fmt::format("async_copy goes from global to shared memory, not from {} to {}",
                                                 ir::name_of(source.space), ir::name_of(target.space)));
  if (!options.completion.immediate() && source.type != target.type)
    fail_here(Code::AsyncCopyCast,
              fmt::format("an asynchronous copy cannot convert {} to {}", source.type.name(), target.type.name()),
              "copy first, then convert in a Parallel loop");
  auto [a, b] = matched(from, to, options.combine == Combine::None ? "copy" : "atomic");
  if (wide_dims(a).size() != wide_dims(b).size()) {
    broadcast_copy(a, b, options);
    return;
  }
  Copy copy;
  copy.from = std::move(a), copy.to = std::move(b);
  copy.combine = options.combine, copy.completion = std::move(options.completion),
  copy.prefer = std::move(options.prefer);
  emit(std::move(copy));
}

void Builder::im2col(const TileRef& image, const TileRef& to, const Im2col& shape) {
  need_no_map("im2col");
  const Buffer &source = program_.buffer(image.buffer), &target = program_.buffer(to.buffer);
  if (!image.whole || source.rank() != 4 || source.space != Space::Global)
    fail_here(
        Code::Im2colShape,
        fmt::format("im2col reads a whole NHWC tensor of 4 dimensions in global memory; '{}' is none", source.name));
  Region tile = region(to);
  if (wide_dims(tile).size() > 2 || tile.extent.size() < 2)
    fail_here(Code::Im2colShape,
              fmt::format("im2col writes a tile of 2 dimensions; '{}' has {}", target.name, tile.extent.size()));
  if (shape.kernel < 1 || shape.stride < 1 || shape.dilation < 1 || shape.pad < 0)
    fail_here(Code::Im2colShape, fmt::format("im2col: kernel {}, stride {}, dilation {}, pad {}", shape.kernel,
                                             shape.stride, shape.dilation, shape.pad));
  Copy copy;
  copy.from = region(image), copy.to = std::move(tile), copy.im2col = shape;
  emit(std::move(copy));
}

void Builder::fill(const TileRef& to, const Expr& value) {
  need_no_map("fill");
  const Buffer& b = program_.buffer(to.buffer);
  if (b.space == Space::Barrier)
    fail_here(Code::BarrierAccess, fmt::format("'{}' is a barrier: it is not read or written", b.name));
  if (value->type.is_pointer() != b.type.is_pointer())
    fail_here(Code::BadCast,
              fmt::format("fill of '{}', which holds {}, with a {}", b.name, b.type.name(), value->type.name()));
  if (b.rank() == 0) {
    emit(Store{{to.buffer, {}}, cast(value, b.type)});
    return;
  }
  emit(Fill{region(to), cast(value, b.type)});
}

void Builder::gemm(const TileRef& ra, const TileRef& rb, const TileRef& rc, GemmOptions options) {
  need_no_map("gemm");
  Gemm g;
  g.a = region(ra), g.b = region(rb), g.c = region(rc);
  g.transpose_a = options.transpose_a, g.transpose_b = options.transpose_b, g.policy = options.policy;
  g.completion = std::move(options.completion);
  for (const Region* r : {&g.a, &g.b, &g.c}) {
    const Buffer& b = program_.buffer(r->buffer);
    if (b.space != Space::Shared && b.space != Space::Fragment)
      fail_here(
          Code::GemmSpace,
          fmt::format("gemm: '{}' is a {} buffer; operands are shared or fragment tiles", b.name, ir::name_of(b.space)),
          "copy the tile to shared memory first");
    if (b.rank() < 2)
      fail_here(Code::GemmRank, fmt::format("gemm: '{}' has {} dimensions; an operand is a matrix", b.name, b.rank()));
    for (size_t d = 0; d + 2 < r->extent.size(); ++d)
      if (!is_one(r->extent[d]))
        fail_here(Code::GemmRank,
                  fmt::format("gemm: the leading extents of '{}' must be 1, but it is {}", b.name, text_of(r->extent)));
  }
  auto matrix = [](const Region& r, bool transposed) {
    const size_t n = r.extent.size();
    std::pair<int64_t, int64_t> size{*constant_int(r.extent[n - 2]), *constant_int(r.extent[n - 1])};
    if (transposed) std::swap(size.first, size.second);
    return size;
  };
  for (const Region* r : {&g.a, &g.b, &g.c})
    for (const Expr& e : r->extent)
      if (!constant_int(e))
        fail_here(Code::DynamicTile,
                  fmt::format("gemm: the extents of '{}' are not constants", program_.buffer(r->buffer).name));
  const auto [m, k] = matrix(g.a, g.transpose_a);
  const auto [kb, n] = matrix(g.b, g.transpose_b);
  const auto [mc, nc] = matrix(g.c, false);
  if (k != kb)
    fail_here(Code::GemmInner,
              fmt::format("gemm: the inner extents differ: '{}' has K = {}, '{}' has K = {}", name_of(ra), k,
                          name_of(rb), kb),
              n == k    ? "pass transpose_b if B is stored as (N, K)"
              : m == kb ? "pass transpose_a if A is stored as (K, M)"
                        : "");
  if (m != mc || n != nc)
    fail_here(Code::GemmOuter,
              fmt::format("gemm: the product is {} x {}, but '{}' is {} x {}", m, n, name_of(rc), mc, nc));
  const DType a = program_.buffer(g.a.buffer).type, b = program_.buffer(g.b.buffer).type,
              c = program_.buffer(g.c.buffer).type;
  const bool ints = a.is_int() && b.is_int() && c.is_int(), floats = a.is_float() && b.is_float() && c.is_float();
  if (!ints && !floats)
    fail_here(Code::GemmType,
              fmt::format("gemm of {} and {} into {}: integers accumulate in integers, floats in floats", a.name(),
                          b.name(), c.name()));
  if (c.is_packed() || c.is_float8() || (ints && c.bits < 32))
    fail_here(Code::GemmType,
              fmt::format("gemm accumulates in {}: use int32, float16, bfloat16, float32 or float64", c.name()));
  if (options.clear) g.clear = as_condition(options.clear, location_);
  if (constant_int(g.clear) == 0) g.clear = {};
  emit(std::move(g));
}

int64_t Builder::normalized_dim(int64_t dim, const Region& r, const char* what) const {
  const auto rank = static_cast<int64_t>(r.extent.size());
  if (dim < -rank || dim >= rank)
    fail_here(Code::ReduceDim, fmt::format("{}: dim is {}, but '{}' has {} dimensions", what, dim,
                                           program_.buffer(r.buffer).name, rank));
  return dim < 0 ? dim + rank : dim;
}

void Builder::reduce(ReduceOp op, const TileRef& from, const TileRef& to, ReduceOptions options) {
  need_no_map("reduce");
  Reduce r;
  r.op = op, r.from = region(from), r.to = region(to), r.nan_propagate = options.nan_propagate;
  r.clear = options.clear || op == ReduceOp::AbsSum;
  r.dim = normalized_dim(options.dim, r.from, "reduce");
  const Buffer &source = program_.buffer(from.buffer), &target = program_.buffer(to.buffer);
  if (source.space == Space::Global || target.space == Space::Global)
    fail_here(Code::ReduceSpace, "reduce: the operands are tiles on chip, not global tensors",
              "copy the tile to shared memory or a fragment first");
  const bool bits = op >= ReduceOp::BitAnd;
  if (bits && !(source.type.is_integral() && target.type.is_integral()))
    fail_here(Code::ReduceType, fmt::format("reduce_{} takes integers, but '{}' is {}", ir::name_of(op), source.name,
                                            source.type.name()));
  std::vector<Expr> without, with_one = r.from.extent;
  for (size_t d = 0; d < r.from.extent.size(); ++d)
    if (static_cast<int64_t>(d) != r.dim) without.push_back(r.from.extent[d]);
  with_one[static_cast<size_t>(r.dim)] = constant(1);
  // One value may land in a scalar or a tile of one element.
  auto fits = [&](const std::vector<Expr>& want) { return equal(want, r.to.extent); };
  const bool single = std::all_of(without.begin(), without.end(), is_one) &&
                      std::all_of(r.to.extent.begin(), r.to.extent.end(), is_one);
  if (!fits(without) && !fits(with_one) && !single)
    fail_here(Code::ReduceShape,
              fmt::format("reduce: '{}' is {}; without dimension {} that is {} or {}, but '{}' is {}", source.name,
                          text_of(r.from.extent), r.dim, text_of(without), text_of(with_one), target.name,
                          text_of(r.to.extent)));
  emit(std::move(r));
}

void Builder::scan(ReduceOp op, const TileRef& from, const TileRef& to, int64_t dim, bool reverse) {
  need_no_map("a scan");
  if (op != ReduceOp::Sum && op != ReduceOp::Max)
    fail_here(Code::ScanOp, fmt::format("a scan by {}; there are cumsum and cummax", ir::name_of(op)));
  Scan s;
  s.op = op, s.from = region(from), s.to = region(to), s.reverse = reverse;
  s.dim = normalized_dim(dim, s.from, "scan");
  if (program_.buffer(from.buffer).space == Space::Global || program_.buffer(to.buffer).space == Space::Global)
    fail_here(Code::ReduceSpace, "a scan: the operands are tiles on chip, not global tensors",
              "copy the tile to shared memory or a fragment first");
  if (!equal(s.from.extent, s.to.extent))
    fail_here(Code::ReduceShape, fmt::format("a scan: '{}' is {}, but '{}' is {}", name_of(from),
                                             text_of(s.from.extent), name_of(to), text_of(s.to.extent)));
  emit(std::move(s));
}

void Builder::finalize_reducer(BufferId id) {
  need_no_map("finalize_reducer");
  if (!program_.buffer(id).reducer)
    fail_here(Code::ReducerOp, fmt::format("finalize_reducer: '{}' is no reducer", program_.buffer(id).name));
  emit(FinalizeReducer{id});
}

// ---- order

Element Builder::barrier(const TileRef& ref, const char* what) const {
  const Buffer& b = program_.buffer(ref.buffer);
  if (b.space != Space::Barrier)
    fail_here(Code::NeedsBarrier, fmt::format("{}: '{}' is no barrier", what, b.name),
              "allocate one by alloc_barrier(count)");
  if (ref.whole) {
    if (b.arrive_counts.size() != 1)
      fail_here(Code::NeedsBarrier,
                fmt::format("{}: '{}' holds {} barriers; say which", what, b.name, b.arrive_counts.size()));
    return {ref.buffer, {constant(0)}};
  }
  return element(ref, what);
}

void Builder::arrive(const TileRef& ref) {
  need_no_map("barrier_arrive");
  emit(Arrive{barrier(ref, "barrier_arrive"), {}});
}
void Builder::expect(const TileRef& ref, const Expr& bytes, bool and_arrive) {
  need_no_map("mbarrier_expect_tx");
  emit(Expect{barrier(ref, "mbarrier_expect_tx"), cast(bytes, i32), and_arrive});
}
void Builder::wait(const TileRef& ref, const Expr& parity) {
  need_no_map("barrier_wait");
  if (!parity->type.is_integral())
    fail_here(Code::NeedsIntegers,
              fmt::format("the parity of a wait is an integer, but this is {}", parity->type.name()));
  emit(Wait{barrier(ref, "barrier_wait"), cast(parity, i32)});
}
void Builder::commit(Queue queue) {
  need_no_map("a commit");
  emit(Commit{queue});
}
void Builder::drain(Queue queue, int64_t pending) {
  need_no_map("a wait for a queue");
  if (pending < 0) fail_here(Code::QueueDepth, fmt::format("wait until {} groups are pending", pending));
  emit(Drain{queue, pending});
}
void Builder::sync(SyncScope scope, const Expr& id, int64_t count, bool arrive_only) {
  need_no_map("a barrier");
  if (scope == SyncScope::Named && (count < 32 || count % 32 != 0))
    fail_here(Code::NamedBarrierCount,
              fmt::format("a named barrier of {} threads; the count is a multiple of 32", count));
  if (auto c = constant_int(id); c && (*c < 0 || *c > 15))
    fail_here(Code::NamedBarrierId, fmt::format("named barrier {}; there are 0 to 15", *c));
  emit(Sync{scope, id, count, arrive_only});
}
void Builder::fence(FenceProxy proxy) {
  need_no_map("a fence");
  emit(Fence{proxy});
}
void Builder::set_registers(int64_t count) {
  if (count < 24 || count > 256 || count % 8 != 0)
    fail_here(Code::RegisterCount, fmt::format("set_max_nreg({}): a multiple of 8 from 24 to 256", count));
  emit(SetRegisters{count});
}

}  // namespace tilewright::ir
