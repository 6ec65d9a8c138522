// Rules of tile ops: which boxes, types and memories fit together.
#include "ir/cluster.h"
#include "ir/operators.h"
#include "ir/verify_rules.h"
#include "scalar/sparse_group.h"

namespace tilewright::ir {

bool may_be_equal(const Expr& a, const Expr& b) {
  const auto x = constant_int(a), y = constant_int(b);
  return !x || !y || *x == *y;
}

std::vector<Expr> wide_extents(const Region& region) {
  std::vector<Expr> wide;
  for (const Expr& e : region.extent)
    if (constant_int(e) != 1) wide.push_back(e);
  return wide;
}

namespace {

bool may_be_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const Expr& x, const Expr& y) { return ir::may_be_equal(x, y); });
}

// Either may have extents of 1 in front.
bool agree_at_end(std::vector<Expr> a, std::vector<Expr> b) {
  while (a.size() > b.size() && constant_int(a[0]) == 1) a.erase(a.begin());
  while (b.size() > a.size() && constant_int(b[0]) == 1) b.erase(b.begin());
  return may_be_equal(a, b);
}

}  // namespace

// ---- regions ------------------------------------------------------------------------------------------------------

bool Verifier::check_region(const Region& region, const char* what) {
  if (!region.valid()) {
    add(Code::VerifyMissing, fmt::format("{} is missing", what));
    return false;
  }
  if (!use(region.buffer)) return false;
  const Buffer& b = row(region.buffer);
  // At the loop level the row of a gemm's tile describes its memory; the region still speaks of the tile.
  const std::vector<Expr> shape = b.tile ? std::vector{constant(b.tile->rows), constant(b.tile->columns)} : b.shape;
  if (region.min.size() != shape.size() || region.extent.size() != shape.size()) {
    add_about(Code::VerifyRegionRank, region.buffer,
              fmt::format("{}: '{}' has {} dimensions, but the region has {}", what, b.name, shape.size(),
                          region.extent.size()));
    return false;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!check_integer(region.min[d], "the begin of a region") ||
        !check_integer(region.extent[d], "the extent of a region"))
      return false;
    const auto min = constant_int(region.min[d]), extent = constant_int(region.extent[d]),
               full = constant_int(shape[d]);
    if (extent && *extent < 1) {
      add_about(Code::VerifyRegionExtent, region.buffer,
                fmt::format("{}: extent {} of {} is {}", what, d, text(region), *extent));
      return false;
    }
    if (b.space == Space::Global || !full) continue;
    const int64_t begin = min.value_or(0);
    if (begin < 0 || begin >= *full || (extent && *extent > *full - begin))
      add_about(
          Code::VerifyRegionBounds, region.buffer,
          fmt::format("{}: {} reaches outside of dimension {}, which has {} elements", what, text(region), d, *full));
  }
  return true;
}

bool Verifier::check_tile(const Region& region, const char* what, bool written) {
  if (!check_region(region, what)) return false;
  const Buffer& b = row(region.buffer);
  if (b.space == Space::Barrier) {
    add(Code::VerifyBarrierAccess, fmt::format("'{}' is a barrier: it is not read or written", b.name));
    return false;
  }
  if (written && b.reducer) {
    add_about(Code::VerifyReducerAccess, region.buffer,
              fmt::format("{}: '{}' is a reducer; only fills and atomics change it", what, b.name));
    return false;
  }
  return true;
}

// ---- copy ---------------------------------------------------------------------------------------------------------

namespace {

// What TMA copies: rows of one length, as many on both sides, whatever dimensions of the tensor they run over.
bool is_one_box(const Copy& node) {
  auto elements = [](const std::vector<Expr>& extents) {
    int64_t count = 1;
    for (const Expr& e : extents) count *= constant_int(e).value_or(0);
    return count;
  };
  return elements(node.from.extent) > 0 && elements(node.from.extent) == elements(node.to.extent) &&
         constant_int(node.from.extent.back()) == constant_int(node.to.extent.back());
}

}  // namespace

template <>
void Verifier::check(const Copy& given) {
  // One thread's cp_async brings zeros beyond what it reads, which may be nothing.
  Copy node = given;
  if (level_ == Level::Thread && node.completion.queue == Queue::CpAsync && node.from.valid() &&
      node.to.extent.size() > 0 && !node.from.extent.empty() && constant_int(node.from.extent.back()) == 0)
    node.from.extent.back() = node.to.extent.back();
  const bool from = check_tile(node.from, "the source of a copy", false),
             to = check_tile(node.to, "the destination of a copy", true);
  if (!from || !to) return;
  const Buffer &source = row(node.from.buffer), &target = row(node.to.buffer);
  if (source.type.is_pointer() != target.type.is_pointer())
    add(Code::VerifyCopyType, fmt::format("copy: '{}' holds {}, but '{}' holds {}", source.name, source.type.name(),
                                          target.name, target.type.name()));
  if (node.combine != Combine::None) {
    const bool place = target.space == Space::Global || target.space == Space::Shared;
    if (!place || !has_atomic(atomic_op_of(node.combine), target.type))
      add_about(Code::VerifyCopyCombine, node.to.buffer,
                fmt::format("copy with combine={} to '{}', a {} buffer of {}", name_of(node.combine), target.name,
                            name_of(target.space), target.type.name()),
                "atomics work on global and shared memory, on integers, float16, bfloat16, float32 and float64");
  }
  if (node.im2col.present())
    check_im2col(node);
  else if (level_ != Level::Thread || node.completion.immediate() || !is_one_box(node))
    check_extents(node);
  check_completion(node);
}

void Verifier::check_extents(const Copy& node) {
  if (may_be_equal(wide_extents(node.from), wide_extents(node.to))) return;
  add(Code::VerifyCopyExtents,
      fmt::format("copy: the extents differ: '{}' has {}, '{}' has {}", name(node.from.buffer),
                  extents_text(node.from.extent, program_), name(node.to.buffer),
                  extents_text(node.to.extent, program_)),
      "the extents other than 1 must agree in order");
}

void Verifier::check_im2col(const Copy& node) {
  const Buffer& source = row(node.from.buffer);
  check_integer(node.im2col.row_block, "the row block of an im2col");
  check_integer(node.im2col.column_block, "the column block of an im2col");
  const std::span<const Expr> tile = node.to.extent;
  const bool is_matrix =
      tile.size() >= 2 && std::all_of(tile.begin(), tile.end() - 2, [](const Expr& e) { return constant_int(e) == 1; });
  if (source.rank() != 4 || source.space != Space::Global || !is_matrix)
    add(Code::VerifyIm2col, fmt::format("im2col from '{}' to {}: it reads a global NHWC tensor and writes a matrix",
                                        source.name, text(node.to)));
  if (node.im2col.kernel < 1 || node.im2col.stride < 1 || node.im2col.dilation < 1 || node.im2col.pad < 0)
    add(Code::VerifyIm2col, fmt::format("im2col with kernel {}, stride {}, dilation {}, pad {}", node.im2col.kernel,
                                        node.im2col.stride, node.im2col.dilation, node.im2col.pad));
}

void Verifier::check_completion(const Copy& node) {
  const Completion& completion = node.completion;
  const int64_t blocks = in_launch_ ? cluster_blocks(*in_launch_) : 1;
  if (node.multicast < 0 || node.multicast >> blocks != 0)
    add(Code::VerifyCluster, fmt::format("a copy to blocks {:#x} of a cluster of {}", node.multicast, blocks),
        "it has a bit for each block of the cluster that gets it");
  if (node.multicast != 0 && (row(node.from.buffer).space != Space::Global ||
                              row(node.to.buffer).space != Space::Shared || completion.queue != Queue::None))
    add(Code::VerifyCluster,
        fmt::format("a copy to blocks of a cluster from {} to {} memory", name_of(row(node.from.buffer).space),
                    name_of(row(node.to.buffer).space)),
        "it goes from global to shared memory and completes on a barrier or at once");
  if (completion.barrier.valid()) check_barrier(completion.barrier, "the completion of a copy");
  if (completion.queue == Queue::StAsync) {
    const Buffer &source = row(node.from.buffer), &target = row(node.to.buffer);
    const int bits = target.type.storage_bits();
    if (!is_to_peer(program_, node) || !completion.barrier.valid() || source.space != Space::Shared ||
        source.type != target.type || (bits != 32 && bits != 64) || node.combine != Combine::None)
      add(Code::VerifyAsyncCopy,
          fmt::format("a copy of the queue st_async from '{}' to '{}'", source.name, target.name),
          "it brings elements of 4 or 8 bytes of shared memory to another block of the cluster, whose barrier tells");
    return;
  }
  if (is_to_peer(program_, node)) {
    if (row(node.from.buffer).space == Space::Global || completion.queue != Queue::None || node.multicast != 0)
      add(Code::VerifyCluster,
          fmt::format("a copy to another block of the cluster from {} memory", name_of(row(node.from.buffer).space)),
          "it goes from the block's own shared memory or fragments, and completes at once or on that block's barrier");
    return;
  }
  if (completion.immediate()) return;
  const Buffer &source = row(node.from.buffer), &target = row(node.to.buffer);
  const bool load = source.space == Space::Global && target.space == Space::Shared;
  const bool store = source.space == Space::Shared && target.space == Space::Global;
  const bool plain = completion.queue == Queue::BulkStore || completion.queue == Queue::Prefetch;
  const bool fits = (completion.queue == Queue::BulkStore ? store : load && completion.queue != Queue::Wgmma) &&
                    !(plain && completion.barrier.valid());
  if (!fits)
    add(Code::VerifyAsyncCopy,
        fmt::format("an asynchronous copy from {} to {} memory that completes by {}", name_of(source.space),
                    name_of(target.space), completion.queue == Queue::None ? "a barrier" : name_of(completion.queue)),
        "barriers and cp_async complete copies from global to shared memory, bulk_store the reverse");
  if (source.type != target.type)
    add(Code::VerifyAsyncCopy,
        fmt::format("an asynchronous copy cannot convert {} to {}", source.type.name(), target.type.name()),
        "copy first, then convert in a map");
}

// ---- fill, map ----------------------------------------------------------------------------------------------------

template <>
void Verifier::check(const Fill& node) {
  const bool to = check_tile(node.to, "the destination of a fill", false);
  if (!check_value(node.value, "the value of a fill") || !to) return;
  const Buffer& b = row(node.to.buffer);
  if (node.value->type != b.type)
    add_about(Code::VerifyFillType, node.to.buffer,
              fmt::format("fill: '{}' holds {}, but {} is {}", b.name, b.type.name(), text(node.value),
                          node.value->type.name()));
}

template <>
void Verifier::check(const Map& node) {
  if (node.vars.empty() || node.vars.size() != node.extents.size())
    return add(Code::VerifyMapRank,
               fmt::format("a map with {} variables and {} extents", node.vars.size(), node.extents.size()));
  for (size_t d = 0; d < node.extents.size(); ++d) {
    if (!check_integer(node.extents[d], "an extent of a map") || !check_id(node.vars[d])) continue;
    const DType type = program_.var(node.vars[d]).type;
    if (node.extents[d]->type != type)
      add(Code::VerifyMapType, fmt::format("the map over '{}' of {} has an extent of {}", name(node.vars[d]),
                                           type.name(), node.extents[d]->type.name()));
    if (auto c = constant_int(node.extents[d]); c && *c < 0)
      add(Code::VerifyNegativeExtent, fmt::format("the map over '{}' has the extent {}", name(node.vars[d]), *c));
  }
}

// ---- gemm ---------------------------------------------------------------------------------------------------------

template <>
void Verifier::check(const Gemm& node) {
  if (node.clear) check_condition(node.clear, "clear of a gemm");
  if (node.completion.barrier.valid()) check_barrier(node.completion.barrier, "the completion of a gemm");
  check_next(node.next);
  const bool good = check_tile(node.a, "a of a gemm", false) & check_tile(node.b, "b of a gemm", false) &
                    check_tile(node.c, "c of a gemm", true) &
                    (!node.is_sparse() || check_tile(node.metadata, "the metadata of a gemm", false));
  if (!good) return;
  for (const Region* r : {&node.a, &node.b, &node.c, &node.metadata}) {
    if (!r->valid()) continue;
    const Buffer& b = row(r->buffer);
    if (level_ == Level::Tile && b.space != Space::Shared && b.space != Space::Fragment)
      add_about(
          Code::VerifyGemmSpace, r->buffer,
          fmt::format("gemm: '{}' is a {} buffer; operands are shared or fragment tiles", b.name, name_of(b.space)),
          "copy the tile to shared memory first");
  }
  const DType a = row(node.a.buffer).type, b = row(node.b.buffer).type, c = row(node.c.buffer).type;
  const bool ints = a.is_int() && b.is_int() && c.is_int(), floats = a.is_float() && b.is_float() && c.is_float();
  if ((!ints && !floats) || c.is_packed() || c.is_float8() || (ints && c.bits < 32))
    add(Code::VerifyGemmType, fmt::format("gemm of {} and {} into {}", a.name(), b.name(), c.name()),
        "integers accumulate in integers of 32 bits or more, floats in float16, bfloat16, float32 or float64");
  check_gemm_shape(node);
}

void Verifier::check_gemm_shape(const Gemm& node) {
  for (const Region* r : {&node.a, &node.b, &node.c, &node.metadata}) {
    if (!r->valid()) continue;
    const size_t rank = r->extent.size();
    bool matrix = rank >= 2;
    for (size_t d = 0; d + 2 < rank; ++d) matrix = matrix && constant_int(r->extent[d]) == 1;
    if (!matrix)
      return add_about(
          Code::VerifyGemmRank, r->buffer,
          fmt::format("gemm: {} is no matrix: it has the extents {}", text(*r), extents_text(r->extent, program_)),
          "extents before the last two must be 1");
    if (level_ == Level::Tile && (!constant_int(r->extent[rank - 2]) || !constant_int(r->extent[rank - 1])))
      return add_about(
          Code::VerifyGemmDynamic, r->buffer,
          fmt::format("gemm: the extents {} of {} are not constant", extents_text(r->extent, program_), text(*r)));
  }
  const auto side = [](const Region& r, bool transposed, int which) {
    return r.extent[r.extent.size() - 2 + static_cast<size_t>(transposed ? 1 - which : which)];
  };
  if (node.is_sparse()) check_metadata(node);
  const auto group = sparse_group(row(node.a.buffer).type);
  const Expr m = side(node.a, node.transpose_a, 0), stored = side(node.a, node.transpose_a, 1);
  const Expr k = node.is_sparse() && group ? mul(stored, constant(stored->type, group->size / group->kept)) : stored;
  const Expr k_of_b = side(node.b, node.transpose_b, 0), n = side(node.b, node.transpose_b, 1);
  if (!may_be_equal(k, k_of_b))
    return add(Code::VerifyGemmInner,
               fmt::format("gemm: the inner extents differ: '{}' has K = {}, '{}' has K = {}", name(node.a.buffer),
                           text(k), name(node.b.buffer), text(k_of_b)),
               may_be_equal(k, n)        ? "set transpose_b=true if B is stored as (N, K)"
               : may_be_equal(m, k_of_b) ? "set transpose_a=true if A is stored as (K, M)"
                                         : "");
  if (!may_be_equal(m, side(node.c, false, 0)) || !may_be_equal(n, side(node.c, false, 1)))
    add(Code::VerifyGemmOuter,
        fmt::format("gemm: the product is {} x {}, but '{}' is {} x {}", text(m), text(n), name(node.c.buffer),
                    text(side(node.c, false, 0)), text(side(node.c, false, 1))));
}

void Verifier::check_metadata(const Gemm& node) {
  const Buffer &a = row(node.a.buffer), &words = row(node.metadata.buffer);
  const auto group = sparse_group(a.type);
  if (!group || level_ != Level::Tile)
    return add(Code::VerifyGemmMetadata, fmt::format("gemm of a sparse '{}' of {}", a.name, a.type.name()),
               "there are sparse tiles of float16, bfloat16, 8-bit types, float32 and tfloat32");
  const auto size = [&](const Region& r, bool transposed, size_t from_end) {
    return *constant_int(r.extent[r.extent.size() - (transposed ? 3 - from_end : from_end)]);
  };
  const int64_t rows = size(node.a, node.transpose_a, 2), kept = size(node.a, node.transpose_a, 1);
  const int64_t bits = size(node.metadata, node.transpose_metadata, 1) * words.type.bits;
  const bool words_fit = words.type.is_int() && words.type.bits >= 8 && words.type.bits <= 32;
  if (!words_fit || kept % group->kept != 0 || size(node.metadata, node.transpose_metadata, 2) != rows ||
      bits != kept / group->kept * kGroupBits)
    add_about(Code::VerifyGemmMetadata, node.metadata.buffer,
              fmt::format("gemm: {} of {} is no metadata of {}", text(node.metadata), words.type.name(), text(node.a)),
              "it has four bits for each group of a row, in integers of up to 32 bits");
}

// ---- reductions ---------------------------------------------------------------------------------------------------

template <>
void Verifier::check(const Reduce& node) {
  const bool from = check_tile(node.from, "the source of a reduce", false),
             to = check_tile(node.to, "the destination of a reduce", true);
  if (!from || !to) return;
  const Buffer &source = row(node.from.buffer), &target = row(node.to.buffer);
  if (source.space == Space::Global || target.space == Space::Global)
    add(Code::VerifyReduceSpace,
        fmt::format("reduce: '{}' is a global tensor; its operands are on chip",
                    (source.space == Space::Global ? source : target).name),
        "copy the tile to shared memory or a fragment first");
  const bool bits = node.op >= ReduceOp::BitAnd;
  const bool types = bits ? source.type.is_integral() && target.type.is_integral()
                          : !source.type.is_pointer() && !target.type.is_pointer();
  if (!types)
    add(Code::VerifyReduceType,
        fmt::format("reduce {} of {} into {}", name_of(node.op), source.type.name(), target.type.name()),
        bits ? "bit operations take integers" : "");
  if (node.dim < 0 || node.dim >= static_cast<int64_t>(node.from.extent.size()))
    return add(Code::VerifyReduceDim, fmt::format("reduce along dimension {} of '{}', which has {}", node.dim,
                                                  source.name, node.from.extent.size()));
  std::vector<Expr> without = node.from.extent, with_one = node.from.extent;
  without.erase(without.begin() + node.dim);
  with_one[static_cast<size_t>(node.dim)] = constant(1);
  const auto is_one = [](const Expr& e) { return constant_int(e) == 1; };
  const auto agrees = [&](const std::vector<Expr>& e) { return agree_at_end(e, node.to.extent); };
  const bool single = std::all_of(without.begin(), without.end(), is_one) &&
                      std::all_of(node.to.extent.begin(), node.to.extent.end(), is_one);
  if (!single && !agrees(without) && !agrees(with_one))
    add(Code::VerifyReduceShape,
        fmt::format("reduce: '{}' without dimension {} is {}, but '{}' is {}", source.name, node.dim,
                    extents_text(without, program_), target.name, extents_text(node.to.extent, program_)));
}

template <>
void Verifier::check(const Scan& node) {
  if (node.op != ReduceOp::Sum && node.op != ReduceOp::Max)
    add(Code::VerifyScanOp, fmt::format("a scan by {}; there are sum and max", name_of(node.op)));
  const bool from = check_tile(node.from, "the source of a scan", false),
             to = check_tile(node.to, "the destination of a scan", true);
  if (!from || !to) return;
  const Buffer &source = row(node.from.buffer), &target = row(node.to.buffer);
  if (source.space == Space::Global || target.space == Space::Global)
    add(Code::VerifyReduceSpace,
        fmt::format("scan: '{}' is a global tensor; its operands are on chip",
                    (source.space == Space::Global ? source : target).name),
        "copy the tile to shared memory or a fragment first");
  if (node.dim < 0 || node.dim >= static_cast<int64_t>(node.from.extent.size()))
    return add(Code::VerifyReduceDim, fmt::format("scan along dimension {} of '{}', which has {}", node.dim,
                                                  source.name, node.from.extent.size()));
  const int64_t more = static_cast<int64_t>(node.from.extent.size()) - static_cast<int64_t>(node.to.extent.size());
  if (!agree_at_end(node.from.extent, node.to.extent) || node.dim < more)
    add(Code::VerifyScanShape,
        fmt::format("scan: '{}' is {}, but '{}' is {}", source.name, extents_text(node.from.extent, program_),
                    target.name, extents_text(node.to.extent, program_)));
}

template <>
void Verifier::check(const FinalizeReducer& node) {
  if (!use(node.buffer)) return;
  if (!row(node.buffer).reducer)
    add_about(Code::VerifyNoReducer, node.buffer,
              fmt::format("finalize_reducer: '{}' is no reducer", name(node.buffer)));
}

}  // namespace tilewright::ir
