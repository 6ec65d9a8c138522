// Tile ops and order: which extents each operand has, and what does not fit.
#include "ir/builder.h"
#include "ir/extent.h"
#include "ir/rewrite.h"
#include "scalar/functions.h"
#include "scalar/sparse_group.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

bool is_one(const Expr& e) { return constant_int(e) == 1; }

// Whatever their types: that of a slice is its bounds'.
bool same_extent(const Expr& a, const Expr& b) { return equal(cast(a, i64), cast(b, i64)); }

bool same_extents(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_extent);
}

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
              fmt::format("'{}' has {} dimensions, but {} indices are given", b.name, b.rank(), ref.indices.size()),
              "give an index in every dimension; slices and all are indices too",
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
      fail_here(Code::IndexType,
                fmt::format("slice {} of '{}' is from {} to {}", d, b.name, begin->type.name(), end->type.name()),
                "cast its bounds to int32");
    Expr extent = sub(cast(end, *type), cast(begin, *type));
    auto length = constant_int(extent), first = constant_int(begin);
    if (length && *length < 1)
      fail_here(Code::EmptySlice,
                first ? fmt::format("slice {} of '{}' is from {} to {}", d, b.name, *first, *first + *length)
                      : fmt::format("slice {} of '{}' has {} elements", d, b.name, *length),
                "a slice ends after it begins, and has no negative bounds");
    if (!i.end && first && *first < 0)
      fail_here(Code::EmptySlice, fmt::format("slice {} of '{}' is from {} to its end", d, b.name, *first),
                "a slice ends after it begins, and has no negative bounds");
    r.min.push_back(cast(begin, *type));
    r.extent.push_back(std::move(extent));
  }
  need_inside(r);
  return r;
}

// On chip there is nothing around a buffer; global tensors guard their edges.
void Builder::need_inside(const Region& r) const {
  const Buffer& b = program_.buffer(r.buffer);
  if (b.space == Space::Global || may_be_skipped()) return;
  for (size_t d = 0; d < r.extent.size(); ++d) {
    const auto first = range(r.min[d]);
    const auto length = constant_int(r.extent[d]), full = constant_int(b.shape[d]);
    if (first && length && full && (first->low + *length > *full || first->high < 0))
      fail_here(
          Code::IndexOutOfBounds,
          fmt::format("dimension {} of the tile of '{}' is from {} to {}", d, b.name, first->low, first->low + *length),
          fmt::format("the extent of that dimension is {}", *full),
          {{fmt::format("'{}' is declared here", b.name), program_.location(b.location)}});
  }
}

// A tile of fewer extents than the box that it is read from: what is dynamic there is 1, if that makes them alike.
void Builder::narrow_to(const Region& to, Region& from) const {
  const std::vector<size_t> wide = wide_dims(from);
  const size_t wanted = wide_dims(to).size();
  if (distance_from_registers(program_.buffer(to.buffer).space) >=
      distance_from_registers(program_.buffer(from.buffer).space))
    return;
  std::vector<size_t> dynamic;
  for (size_t d : wide)
    if (!constant_int(from.extent[d])) dynamic.push_back(d);
  if (wide.size() <= wanted || wide.size() - wanted != dynamic.size()) return;
  for (size_t d : dynamic) from.extent[d] = constant(from.extent[d]->type, int64_t{1});
}

// The boxes of both sides of a copy, an atomic tile op or their like: extents other than 1 agree in order afterwards,
// except where one side broadcasts (it has fewer of them).
// Whether the box has all of a dimension of a global tensor from where it begins.
bool Builder::ends_with_tensor(const Region& r, size_t d) const {
  const Buffer& b = program_.buffer(r.buffer);
  if (b.space != Space::Global) return false;
  const auto begin = constant_int(r.min[d]), extent = constant_int(r.extent[d]), end = constant_int(b.shape[d]);
  return begin && extent && end && *begin + *extent == *end;
}

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
              what, tile.extent.size(), name_of(ref), n),
          "use slices, which say the extents of both sides");
    for (size_t d = 0; d < tile.extent.size() - skip; ++d)
      head.extent[n - 1 - d] = tile.extent[tile.extent.size() - 1 - d];
  };
  if (from.is_element() && !to.is_element()) give_extents(a, b, from);
  if (to.is_element() && !from.is_element()) give_extents(b, a, to);
  narrow_to(b, a);
  std::vector<size_t> wa = wide_dims(a), wb = wide_dims(b);
  // Align in order when both have as many extents other than 1, else from the last dimension.
  const size_t common = std::min(wa.size(), wb.size());
  for (size_t i = 0; i < common; ++i) {
    const size_t da = wa[wa.size() - 1 - i], db = wb[wb.size() - 1 - i];
    Expr &ea = a.extent[da], &eb = b.extent[db];
    if (same_extent(ea, eb)) continue;
    auto ca = constant_int(ea), cb = constant_int(eb);
    // The side closer to registers decides, ties go to the source.
    const bool source_decides = distance_from_registers(program_.buffer(a.buffer).space) <=
                                distance_from_registers(program_.buffer(b.buffer).space);
    if (ca && cb && !(from.whole && to.whole)) {
      // A tile that is larger than a whole dimension of a tensor: what is beyond reads zero, and is not written.
      const bool reaches = source_decides ? *ca > *cb && ends_with_tensor(b, db) : *cb > *ca && ends_with_tensor(a, da);
      // Of two boxes the source says how much is written.
      const bool fills_in_part = source_decides && !from.whole && !to.whole && *ca < *cb;
      if (reaches || fills_in_part) {
        (source_decides ? eb : ea) = cast(source_decides ? ea : eb, (source_decides ? eb : ea)->type);
        continue;
      }
    }
    if (ca && cb)
      fail_here(Code::CopyExtents,
                fmt::format("{}: the extents differ: '{}' has {}, '{}' has {}", what, name_of(from), text_of(a.extent),
                            name_of(to), text_of(b.extent)),
                "give both sides the same tile, or an element reference on the global side");
    (source_decides ? eb : ea) = cast(source_decides ? ea : eb, (source_decides ? eb : ea)->type);
  }
  need_inside(a), need_inside(b);
  return {std::move(a), std::move(b)};
}

// A copy whose source has fewer extents than its destination repeats the source: the same as an elementwise loop.
void Builder::broadcast_copy(const Region& from, const Region& to, const CopyOptions& options) {
  const std::vector<size_t> wf = wide_dims(from), wt = wide_dims(to);
  if (wf.size() > wt.size() || options.combine != Combine::None || !options.completion.immediate())
    fail_here(Code::CopyExtents,
              fmt::format("copy: the extents differ: '{}' has {}, '{}' has {}", program_.buffer(from.buffer).name,
                          text_of(from.extent), program_.buffer(to.buffer).name, text_of(to.extent)),
              "give both sides the same tile; only a plain copy repeats a source of fewer dimensions");
  std::vector<Expr> extents;
  for (size_t d : wt) extents.push_back(to.extent[d]);
  Element source{from.buffer, from.min}, target{to.buffer, to.min};
  if (extents.empty()) {
    const Expr value = ir::load(source.buffer, source.indices, program_.buffer(from.buffer).type);
    emit(Store{target, cast(value, program_.buffer(to.buffer).type)});
    return;
  }
  std::vector<Expr> points = open_map({"i", "j", "k", "l", "m", "n", "o", "p"}, extents);
  for (size_t i = 0; i < wt.size(); ++i) target.indices[wt[i]] = apply(Operator::Add, to.min[wt[i]], points[i]);
  for (size_t i = 0; i < wf.size(); ++i)
    source.indices[wf[i]] = apply(Operator::Add, from.min[wf[i]], points[wt.size() - wf.size() + i]);
  const Expr value = ir::load(source.buffer, source.indices, program_.buffer(from.buffer).type);
  emit(Store{target, cast(value, program_.buffer(to.buffer).type)});
  close();
}

void Builder::copy(const TileRef& from, const TileRef& own, CopyOptions options) {
  TileRef to = own;
  if (options.cta) {
    need_no_map("copy_cluster");
    if (const Buffer& b = program_.buffer(from.buffer); b.space != Space::Shared && b.space != Space::Fragment)
      fail_here(Code::ClusterCopy, fmt::format("copy_cluster from '{}', a {} buffer", b.name, ir::name_of(b.space)),
                "a block sends what is in its own shared memory or fragments: copy it there first");
    to.buffer = peer_view(own.buffer, options.cta);
  }
  const Buffer &source = program_.buffer(from.buffer), &target = program_.buffer(to.buffer);
  if (source.space == Space::Barrier || target.space == Space::Barrier)
    fail_here(
        Code::BarrierAccess,
        fmt::format("a copy of '{}', which is a barrier", source.space == Space::Barrier ? source.name : target.name),
        "barriers are used by barrier_arrive and barrier_wait");
  if (target.reducer)
    fail_here(Code::ReducerStore, fmt::format("a copy to '{}', which is a reducer", target.name),
              "reducers are updated by acc(i) += v, atomic_max or atomic_min, and read after finalize_reducer");
  const bool tells = options.completion.barrier.valid();
  if (from.is_element() && to.is_element() && options.combine == Combine::None && !tells) {
    store(to, load(from));
    return;
  }
  if (((from.whole && source.rank() == 0) || (to.whole && target.rank() == 0)) && !tells) {
    store(to, load(from));
    return;
  }
  need_no_map("copy");
  if (source.reducer) {  // what is finalized is read by its elements
    const auto [a, b] = matched(from, to, "copy");
    return broadcast_copy(a, b, options);
  }
  if (source.type.is_pointer() != target.type.is_pointer())
    fail_here(Code::BadCast, fmt::format("a copy of {} to {}", source.type.name(), target.type.name()),
              "addresses and numbers do not convert: use reinterpret on elements");
  if (options.combine != Combine::None && target.space != Space::Global && target.space != Space::Shared)
    fail_here(Code::AtomicSpace, fmt::format("an atomic on '{}', a {} buffer", target.name, ir::name_of(target.space)),
              "atomics work on global and shared memory");
  if (options.combine != Combine::None) need_atomic(atomic_op_of(options.combine), target.type);
  if (tells && !options.cta && !(source.space == Space::Global && target.space == Space::Shared))
    fail_here(Code::AsyncCopySpaces,
              fmt::format("a copy that signals a barrier goes from global to shared memory, not from {} to {}",
                          ir::name_of(source.space), ir::name_of(target.space)),
              "use copy(), which works between any two spaces");
  if (options.completion.queue == Queue::CpAsync && !(source.space == Space::Global && target.space == Space::Shared))
    fail_here(
        Code::AsyncCopySpaces,
        fmt::format("async_copy goes from global to shared memory, not from {} to {}", ir::name_of(source.space),
                    ir::name_of(target.space)),
        "T.async_copy only supports global->shared/shared.dyn copies: use copy(), which works between any two spaces");
  if (options.completion.queue == Queue::BulkStore && !(source.space == Space::Shared && target.space == Space::Global))
    fail_here(Code::AsyncCopySpaces,
              fmt::format("tma_store goes from shared to global memory, not from {} to {}", ir::name_of(source.space),
                          ir::name_of(target.space)),
              "use copy(), which works between any two spaces");
  if (!options.completion.immediate() && !options.cta && source.type != target.type)
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
  copy.prefer = std::move(options.prefer), copy.multicast = options.multicast;
  emit(std::move(copy));
}

void Builder::im2col(const TileRef& image, const TileRef& to, const Im2col& shape) {
  need_no_map("im2col");
  const Buffer &source = program_.buffer(image.buffer), &target = program_.buffer(to.buffer);
  if (!image.whole || source.rank() != 4 || source.space != Space::Global)
    fail_here(Code::Im2colShape,
              fmt::format("im2col from '{}', a {} buffer of {} dimensions", source.name, ir::name_of(source.space),
                          source.rank()),
              "it reads a whole global tensor of 4 dimensions: (N, H, W, C)");
  Region tile = region(to);
  if (wide_dims(tile).size() > 2 || tile.extent.size() < 2)
    fail_here(Code::Im2colShape,
              fmt::format("im2col to '{}', a tile of {} dimensions", target.name, tile.extent.size()),
              "it writes a tile of 2 dimensions: output positions and channels");
  if (shape.kernel < 1 || shape.stride < 1 || shape.dilation < 1 || shape.pad < 0)
    fail_here(Code::Im2colShape,
              fmt::format("im2col: kernel {}, stride {}, dilation {}, pad {}", shape.kernel, shape.stride,
                          shape.dilation, shape.pad),
              "kernel, stride and dilation are 1 or more, pad is 0 or more");
  Copy copy;
  copy.from = region(image), copy.to = std::move(tile), copy.im2col = shape;
  emit(std::move(copy));
}

void Builder::fill(const TileRef& to, const Expr& value) {
  need_no_map("fill");
  const Buffer& b = program_.buffer(to.buffer);
  if (b.space == Space::Barrier)
    fail_here(Code::BarrierAccess, fmt::format("a fill of '{}', which is a barrier", b.name),
              "barriers are used by barrier_arrive and barrier_wait");
  if (value->type.is_pointer() != b.type.is_pointer())
    fail_here(Code::BadCast,
              fmt::format("a fill of '{}', which holds {}, with {}", b.name, b.type.name(), value->type.name()),
              "give a value that converts to the elements");
  if (b.rank() == 0) {
    emit(Store{{to.buffer, {}}, cast(value, b.type)});
    return;
  }
  emit(Fill{region(to), cast(value, b.type)});
}

// A tile that a gemm multiplies: a matrix on chip, of a size that is known.
std::pair<int64_t, int64_t> Builder::gemm_matrix(const Region& r, bool transposed) const {
  const Buffer& b = program_.buffer(r.buffer);
  if (b.space != Space::Shared && b.space != Space::Fragment)
    fail_here(
        Code::GemmSpace,
        fmt::format("gemm: '{}' is a {} buffer; operands are shared or fragment tiles", b.name, ir::name_of(b.space)),
        "copy the tile to shared memory first");
  if (b.rank() < 2)
    fail_here(Code::GemmRank, fmt::format("gemm: '{}' has {} dimensions", b.name, b.rank()),
              "an operand is a matrix: reshape it, to (1, n) or (n, 1)");
  for (size_t d = 0; d + 2 < r.extent.size(); ++d)
    if (!is_one(r.extent[d]))
      fail_here(Code::GemmRank, fmt::format("gemm: '{}' is a tile of {}", b.name, text_of(r.extent)),
                "all extents but the last two are 1: multiply one matrix at a time, in a loop");
  for (const Expr& e : r.extent)
    if (!constant_int(e))
      fail_here(Code::DynamicTile, fmt::format("gemm: the extents of '{}' are not constants", b.name),
                "give slices of constant extent");
  const size_t n = r.extent.size();
  std::pair<int64_t, int64_t> size{*constant_int(r.extent[n - 2]), *constant_int(r.extent[n - 1])};
  if (transposed) std::swap(size.first, size.second);
  return size;
}

// The k of a sparse a, of whose elements `kept` are there.
int64_t Builder::need_metadata(const Gemm& g, int64_t rows, int64_t kept) const {
  const Buffer &a = program_.buffer(g.a.buffer), &words = program_.buffer(g.metadata.buffer);
  const auto group = sparse_group(a.type);
  if (!group)
    fail_here(
        Code::GemmType, fmt::format("gemm of a sparse '{}' of {}", a.name, a.type.name()),
        "two of four elements are kept of float16, bfloat16, int8, uint8, float8_e4m3 and float8_e5m2, one of two "
        "of float32 and tfloat32");
  if (!words.type.is_int() || words.type.bits > 32 || words.type.bits < 8)
    fail_here(Code::GemmMetadata, fmt::format("gemm: the metadata '{}' holds {}", words.name, words.type.name()),
              "it is of integers of 8, 16 or 32 bits");
  const int64_t bits = kept / group->kept * kGroupBits;
  const auto [r, c] = gemm_matrix(g.metadata, g.transpose_metadata);
  if (kept % group->kept != 0 || r != rows || c * words.type.bits != bits)
    fail_here(
        Code::GemmMetadata,
        fmt::format("gemm: the metadata '{}' has {} rows of {} bits, but the sparse '{}' has {} rows of {} groups",
                    words.name, r, c * words.type.bits, a.name, rows, kept / group->kept),
        c == rows && r * words.type.bits == bits
            ? fmt::format(
                  "it fits with transpose_E={}: by place, transpose_E stands between transpose_A and transpose_B",
                  g.transpose_metadata ? "False" : "True")
            : "there are four bits for each group of a row, and rows are as those of the matrix");
  return kept / group->kept * group->size;
}

void Builder::gemm(const TileRef& ra, const TileRef& rb, const TileRef& rc, GemmOptions options) {
  need_no_map("gemm");
  Gemm g;
  g.a = region(ra), g.b = region(rb), g.c = region(rc);
  g.transpose_a = options.transpose_a, g.transpose_b = options.transpose_b, g.policy = options.policy;
  g.completion = std::move(options.completion);
  auto [m, k] = gemm_matrix(g.a, g.transpose_a);
  const auto [kb, n] = gemm_matrix(g.b, g.transpose_b);
  const auto [mc, nc] = gemm_matrix(g.c, false);
  if (options.metadata) {
    g.metadata = region(*options.metadata), g.transpose_metadata = options.transpose_metadata;
    k = need_metadata(g, m, k);
  }
  if (k != kb)
    fail_here(Code::GemmInner,
              fmt::format("gemm: the inner extents differ: '{}' has K = {}, '{}' has K = {}", name_of(ra), k,
                          name_of(rb), kb),
              n == k    ? "pass .transpose_B = true if B is stored as (N, K)"
              : m == kb ? "pass .transpose_A = true if A is stored as (K, M)"
                        : "A is (M, K) and B is (K, N)");
  if (m != mc || n != nc)
    fail_here(Code::GemmOuter,
              fmt::format("gemm: the product is {} x {}, but '{}' is {} x {}", m, n, name_of(rc), mc, nc),
              "C is (M, N)");
  const DType a = program_.buffer(g.a.buffer).type, b = program_.buffer(g.b.buffer).type,
              c = program_.buffer(g.c.buffer).type;
  const bool ints = a.is_int() && b.is_int() && c.is_int(), floats = a.is_float() && b.is_float() && c.is_float();
  if (!ints && !floats)
    fail_here(Code::GemmType, fmt::format("gemm of {} and {} into {}", a.name(), b.name(), c.name()),
              "integers accumulate in integers, floats in floats");
  if (c.is_packed() || c.is_float8() || (ints && c.bits < 32))
    fail_here(Code::GemmType, fmt::format("gemm accumulates in {}", c.name()),
              "use int32, float16, bfloat16, float32 or float64 for C");
  if (options.clear) g.clear = as_condition(options.clear, location_);
  if (constant_int(g.clear) == 0) g.clear = {};
  emit(std::move(g));
}

int64_t Builder::normalized_dim(int64_t dim, const Region& r, const char* what) const {
  const auto rank = static_cast<int64_t>(r.extent.size());
  if (dim < -rank || dim >= rank)
    fail_here(Code::ReduceDim,
              fmt::format("{}: dim is {}, but '{}' has {} dimensions", what, dim, program_.buffer(r.buffer).name, rank),
              "dimensions count from 0, or from -1 at the end");
  return dim < 0 ? dim + rank : dim;
}

namespace {

Expr combined(const Reduce& r, const Expr& a, const Expr& b) {
  const bool nans = r.nan_propagate && a->type.is_float();
  switch (r.op) {
    case ReduceOp::Sum:
    case ReduceOp::AbsSum: return binary(BinaryOp::Add, a, b);
    case ReduceOp::Max:
    case ReduceOp::AbsMax: return binary(nans ? BinaryOp::MaxNan : BinaryOp::Max, a, b);
    case ReduceOp::Min: return binary(nans ? BinaryOp::MinNan : BinaryOp::Min, a, b);
    case ReduceOp::BitAnd: return binary(BinaryOp::BitAnd, a, b);
    case ReduceOp::BitOr: return binary(BinaryOp::BitOr, a, b);
    case ReduceOp::BitXor: return binary(BinaryOp::BitXor, a, b);
  }
  return {};
}

// What each thread has for itself is reduced by each thread: the loops that a user would write. Sums of short floats
// are kept in float32.
void reduce_by_threads(Builder& b, const Reduce& r) {
  const DType stored = b.buffer(r.to.buffer).type;
  const DType type = stored.is_float() && stored.bits < 32 ? f32 : stored;
  const auto dim = static_cast<size_t>(r.dim);
  std::vector<Expr> source = r.from.min, target = r.to.min;
  const std::vector<int> kept = kept_dims(r);
  LoopOptions unrolled;
  unrolled.kind = LoopKind::Unroll;
  int opened = 0;
  for (size_t d = 0; d < source.size(); ++d) {
    if (d == dim || constant_int(r.from.extent[d]) == 1) continue;
    const Expr i = b.open_for("i", constant(0), r.from.extent[d], unrolled);
    source[d] = apply(Operator::Add, source[d], i);
    for (size_t to = 0; to < target.size(); ++to)
      if (kept[to] == static_cast<int>(d)) target[to] = apply(Operator::Add, target[to], i);
    ++opened;
  }
  const auto element = [](BufferId id, const std::vector<Expr>& indices) {
    TileRef ref{id, {}, false};
    for (const Expr& e : indices) ref.indices.push_back({e, {}, false});
    return ref;
  };
  const auto value_at = [&](const Expr& k) {
    std::vector<Expr> index = source;
    index[dim] = apply(Operator::Add, index[dim], k);
    Expr value = cast(b.load(element(r.from.buffer, index)), type);
    return r.op == ReduceOp::AbsSum || r.op == ReduceOp::AbsMax ? apply_function(Function::Abs, {value}) : value;
  };
  const TileRef total{b.alloc(Space::Local, "total", {}, type), {}, true};
  b.store(total, r.clear ? value_at(constant(0)) : cast(b.load(element(r.to.buffer, target)), type));
  const Expr k = b.open_for("k", constant(r.clear ? 1 : 0), r.from.extent[dim], unrolled);
  b.store(total, combined(r, b.load(total), value_at(k)));
  b.close();
  b.store(element(r.to.buffer, target), b.load(total));
  for (; opened > 0; --opened) b.close();
}

}  // namespace

void Builder::reduce(ReduceOp op, const TileRef& from, const TileRef& to, ReduceOptions options) {
  need_no_map("reduce");
  Reduce r;
  r.op = op, r.from = region(from), r.to = region(to), r.nan_propagate = options.nan_propagate;
  r.clear = options.clear;
  r.dim = normalized_dim(options.dim, r.from, "reduce");
  const Buffer &source = program_.buffer(from.buffer), &target = program_.buffer(to.buffer);
  if (source.space == Space::Global || target.space == Space::Global)
    fail_here(Code::ReduceSpace, "reduce: the operands are tiles on chip, not global tensors",
              "copy the tile to shared memory or a fragment first");
  const bool bits = op >= ReduceOp::BitAnd;
  if (bits && !(source.type.is_integral() && target.type.is_integral()))
    fail_here(Code::ReduceType,
              fmt::format("a bit reduction takes integers, but '{}' is {} and '{}' is {}", source.name,
                          source.type.name(), target.name, target.type.name()),
              "reinterpret the elements as integers first");
  std::vector<Expr> without, with_one = r.from.extent;
  for (size_t d = 0; d < r.from.extent.size(); ++d)
    if (static_cast<int64_t>(d) != r.dim) without.push_back(r.from.extent[d]);
  with_one[static_cast<size_t>(r.dim)] = constant(1);
  // One value may land in a scalar or a tile of one element.
  auto fits = [&](const std::vector<Expr>& want) { return same_extents(want, r.to.extent); };
  const bool single = std::all_of(without.begin(), without.end(), is_one) &&
                      std::all_of(r.to.extent.begin(), r.to.extent.end(), is_one);
  if (!fits(without) && !fits(with_one) && !single)
    fail_here(Code::ReduceShape,
              fmt::format("reduce: '{}' is {}; without dimension {} that is {} or {}, but '{}' is {}", source.name,
                          text_of(r.from.extent), r.dim, text_of(without), text_of(with_one), target.name,
                          text_of(r.to.extent)),
              "allocate the result without the reduced dimension, or pass another .dim");
  if (source.space == Space::Local && target.space == Space::Local) return reduce_by_threads(*this, r);
  emit(std::move(r));
}

void Builder::scan(ReduceOp op, const TileRef& from, const TileRef& to, int64_t dim, bool reverse) {
  need_no_map("a scan");
  if (op != ReduceOp::Sum && op != ReduceOp::Max)
    fail_here(Code::ScanOp, fmt::format("a scan by {}", ir::name_of(op)), "there are cumsum and cummax");
  Scan s;
  s.op = op, s.from = region(from), s.to = region(to), s.reverse = reverse;
  s.dim = normalized_dim(dim, s.from, "scan");
  if (program_.buffer(from.buffer).space == Space::Global || program_.buffer(to.buffer).space == Space::Global)
    fail_here(Code::ReduceSpace, "a scan: the operands are tiles on chip, not global tensors",
              "copy the tile to shared memory or a fragment first");
  if (!same_extents(s.from.extent, s.to.extent))
    fail_here(Code::ReduceShape,
              fmt::format("a scan: '{}' is {}, but '{}' is {}", name_of(from), text_of(s.from.extent), name_of(to),
                          text_of(s.to.extent)),
              "the result of a scan has the shape of its source");
  emit(std::move(s));
}

void Builder::finalize_reducer(BufferId id) {
  need_no_map("finalize_reducer");
  if (!program_.buffer(id).reducer)
    fail_here(Code::ReducerOp, fmt::format("finalize_reducer: '{}' is no reducer", program_.buffer(id).name),
              "reducers are allocated by alloc_reducer");
  emit(FinalizeReducer{id});
}

// ---- order

Element Builder::barrier(const TileRef& ref, const char* what) const {
  const Buffer& b = program_.buffer(ref.buffer);
  if (b.space != Space::Barrier)
    fail_here(Code::NeedsBarrier, fmt::format("{}: '{}' is no barrier", what, b.name),
              "allocate one by alloc_barrier({count})");
  if (ref.whole) {
    if (b.arrive_counts.size() != 1)
      fail_here(Code::NeedsBarrier, fmt::format("{}: '{}' holds {} barriers", what, b.name, b.arrive_counts.size()),
                fmt::format("say which, for example {}(0)", b.name));
    return {ref.buffer, {constant(0)}};
  }
  return element(ref, what);
}

void Builder::arrive(const TileRef& ref, Queue queue, const Expr& cta, ArriveBy by) {
  need_no_map("barrier_arrive");
  if (cta) need_integer(cta, "the block of an arrival");
  emit(Arrive{barrier(ref, "barrier_arrive"), cta ? cast(cta, i32) : Expr(), queue, by});
}
void Builder::expect(const TileRef& ref, const Expr& bytes, bool and_arrive) {
  need_no_map("mbarrier_expect_tx");
  need_integer(bytes, "the number of bytes");
  emit(Expect{barrier(ref, "mbarrier_expect_tx"), cast(bytes, i32), and_arrive});
}
void Builder::wait(const TileRef& ref, const Expr& parity) {
  need_no_map("barrier_wait");
  if (!parity->type.is_bool()) need_integer(parity, "the parity of a wait");
  emit(Wait{barrier(ref, "barrier_wait"), cast(parity, i32)});
}
void Builder::commit(Queue queue) {
  need_no_map("a commit");
  emit(Commit{queue});
}
void Builder::drain(Queue queue, int64_t pending) {
  need_no_map("a wait for a queue");
  if (pending < 0)
    fail_here(Code::QueueDepth, fmt::format("a wait until {} groups are pending", pending), "0 waits for all of them");
  emit(Drain{queue, pending});
}
void Builder::sync(SyncScope scope, const Expr& id, int64_t count, bool arrive_only, bool wait_only) {
  // Among the points of a Parallel loop: those up to here, the barrier, and the rest as a loop of its own.
  if (scope != SyncScope::Named && !scopes_.empty() && std::holds_alternative<Map>(scopes_.back().op)) {
    Scope rest = std::move(scopes_.back());
    scopes_.pop_back();
    Map done = std::get<Map>(rest.op);
    Substitution names;
    for (VarId& v : done.vars) {
      const VarInfo info = program_.var(v);
      const VarId own = program_.new_var(info.name, info.type);
      for (auto* ranges : {&ranges_, &ranges_of_any_extents_})
        if (const auto range = ranges->find(v); range != ranges->end()) (*ranges)[own] = Range(range->second);
      names[v] = var(own, info.type);
      v = own;
    }
    done.body = substitute(rest.body, names);
    Body& parent = body();
    parent.back() = Stmt(StmtNode{std::move(done), rest.location});
    sync(scope, id, count, arrive_only, wait_only);
    emit(std::get<Map>(rest.op));
    rest.body.clear();
    scopes_.push_back(std::move(rest));
    return;
  }
  need_no_map("a barrier");
  if (scope == SyncScope::Named && (count < 32 || count % 32 != 0))
    fail_here(Code::NamedBarrierCount, fmt::format("a named barrier of {} threads", count),
              "the count is a multiple of 32, whole warps");
  if (scope == SyncScope::Named) need_integer(id, "the number of a named barrier");
  if (auto c = constant_int(id); c && (*c < 0 || *c > 15))
    fail_here(Code::NamedBarrierId, fmt::format("named barrier {}", *c), "a block has named barriers 0 to 15");
  emit(Sync{scope, id, count, arrive_only, wait_only});
}
void Builder::fence(FenceProxy proxy) {
  need_no_map("a fence");
  emit(Fence{proxy, {}});
}
void Builder::set_registers(int64_t count) {
  if (!SetRegisters::takes(count))
    fail_here(Code::RegisterCount, fmt::format("set_max_nreg({})", count),
              "the number of registers is a multiple of 8 from 24 to 256");
  emit(SetRegisters{count});
}

}  // namespace tilewright::ir
