// Rules of launches, parameters, symbols and buffers.
#include "ir/cluster.h"
#include "ir/rewrite.h"
#include "ir/verify_rules.h"

namespace tilewright::ir {
namespace {

constexpr size_t kMaxRank = 8;
constexpr int64_t kMaxBlocksOfOne = 32;    // of a multiprocessor at once, same table
constexpr int64_t kMaxThreads = 1024;      // of a block, CUDA C++ Programming Guide, table of compute capabilities
constexpr int64_t kMaxClusterBlocks = 16;  // the non-portable limit of sm_90
constexpr int64_t kMaxArrivals = (1 << 20) - 1;  // PTX ISA, mbarrier.init
constexpr int64_t kMaxTileElements = int64_t{1} << 31;

bool on_chip(const Buffer& b) { return b.space != Space::Global; }

}  // namespace

std::string extents_text(const std::vector<Expr>& extents, const ProgramTables& program) {
  std::string text;
  for (const Expr& e : extents) text += (text.empty() ? "" : ", ") + (e ? print(e, program) : std::string("?"));
  return "(" + text + ")";
}

// ---- header -------------------------------------------------------------------------------------------------------

void Verifier::header() {
  for (VarId symbol : program_.symbols) {
    bind(symbol);
    if (symbol.index < program_.vars.size() && !program_.var(symbol).type.is_int())
      add(Code::VerifySymbolType, fmt::format("the symbol '{}' is {}; a dimension is an integer", name(symbol),
                                              program_.var(symbol).type.name()));
  }
  std::set<BufferId> tensors;
  for (const Param& param : program_.params)
    if (!param.is_tensor()) bind(param.var);
  for (const Param& param : program_.params) check_param(param, tensors);
  for (uint32_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& b = program_.buffers[i];
    location_ = b.location;
    if (b.launch >= static_cast<int32_t>(program_.launches.size()) || (on_chip(b) && b.launch < 0))
      add(Code::VerifyBufferLaunch, fmt::format("'{}' is on chip but belongs to no launch of this program", b.name));
    if (!on_chip(b) && !b.workspace && !b.is_view() && !b.address && !tensors.contains(BufferId{i}))
      add(Code::VerifyGlobalMemory,
          fmt::format("'{}' is in global memory, but no parameter, workspace, view or address says where", b.name));
    if (b.launch < 0) check_buffer(BufferId{i});
  }
  for (const Assumption& a : program_.assumptions) {
    location_ = a.location;
    check_condition(a.condition, "an assumption");
  }
  location_ = {};
  if (program_.launches.empty()) add(Code::VerifyNoLaunch, fmt::format("'{}' launches nothing", program_.name));
}

void Verifier::check_param(const Param& param, std::set<BufferId>& tensors) {
  if (!param.is_tensor()) {
    if (!check_id(param.var)) return;
    const DType type = program_.var(param.var).type;
    if (type.is_packed() || type.is_float8())
      add(Code::VerifyScalarParam, fmt::format("the scalar parameter '{}' is {}", name(param.var), type.name()),
          "scalars are bool, pointer, integers of 8 bits or more, or float16, bfloat16, float32, float64");
    return;
  }
  if (!check_id(param.buffer)) return;
  const Buffer& b = row(param.buffer);
  location_ = b.location;
  if (!tensors.insert(param.buffer).second) add(Code::VerifyParam, fmt::format("'{}' is a parameter twice", b.name));
  if (on_chip(b) || b.is_view() || b.address || b.workspace)
    add(Code::VerifyParam, fmt::format("the parameter '{}' must be a plain global tensor", b.name));
}

// ---- launches -----------------------------------------------------------------------------------------------------

void Verifier::check_launch(const Launch& launch) {
  if (launch.grid.empty() || launch.grid.size() > 3)
    add(Code::VerifyGrid, fmt::format("a grid has 1 to 3 extents, but this has {}", launch.grid.size()));
  for (const Expr& e : launch.grid) {
    if (!check_integer(e, "an extent of the grid")) continue;
    walk(e, [&](const Expr& x) {
      if (x.as<Load>()) add(Code::VerifyGrid, "an extent of the grid reads memory");
    });
    if (auto c = constant_int(e); c && *c < 0)
      add(Code::VerifyNegativeExtent, fmt::format("an extent of the grid is {}", *c));
  }
  if (launch.threads.empty() || launch.threads.size() > 3)
    add(Code::VerifyThreads, fmt::format("a block has 1 to 3 thread extents, but this has {}", launch.threads.size()));
  int64_t total = 1;
  for (int64_t n : launch.threads) {
    if (n < 1 || n > kMaxThreads || (total *= n) > kMaxThreads) {
      add(Code::VerifyThreads,
          fmt::format("a block of {} threads; it has 1 to {}", fmt::join(launch.threads, " x "), kMaxThreads));
      break;
    }
  }
  if (launch.min_blocks < 0 || launch.min_blocks > kMaxBlocksOfOne)
    add(Code::VerifyThreads,
        fmt::format("a multiprocessor of {} blocks or more; it holds 1 to {}", launch.min_blocks, kMaxBlocksOfOne));
  if (launch.block.size() != launch.grid.size() || launch.thread.size() != launch.threads.size())
    add(Code::VerifyLaunchVars,
        fmt::format("the launch '{}' needs one variable per extent of its grid and block", launch.name));
  for (const auto* vars : {&launch.block, &launch.thread}) {
    for (VarId id : *vars) {
      if (level_ != Level::Loop) bind(id);  // loops bind them inside, where the grid and the block are loops
      if (id.index < program_.vars.size() && program_.var(id).type != i32)
        add(Code::VerifyLaunchVars,
            fmt::format("the index '{}' of a launch is {}; it is int32", name(id), program_.var(id).type.name()));
    }
  }
  total = 1;
  for (int64_t n : launch.cluster) {
    if (n < 1 || n > kMaxClusterBlocks || (total *= n) > kMaxClusterBlocks) {
      add(Code::VerifyCluster,
          fmt::format("a cluster of {} blocks; it has 1 to {}", fmt::join(launch.cluster, " x "), kMaxClusterBlocks));
      break;
    }
  }
  if (launch.cluster.size() > 3)
    add(Code::VerifyCluster, fmt::format("a cluster has 1 to 3 extents, but this has {}", launch.cluster.size()));
  if (launch.swizzle.panel < 0)
    add(Code::VerifySwizzle, fmt::format("the swizzle has panels of {} blocks", launch.swizzle.panel));
}

// ---- buffers ------------------------------------------------------------------------------------------------------

void Verifier::check_buffer(BufferId id) {
  const Buffer& b = row(id);
  const LocationId before = std::exchange(location_, b.location);
  checked_.clear();
  check_shape(b);
  if (b.is_view()) check_view(b);
  check_special(b);
  if (b.layout.kind != LayoutHint::None) check_layout(b);
  location_ = before;
}

void Verifier::check_shape(const Buffer& b) {
  if (b.rank() > kMaxRank)
    add(Code::VerifyRank, fmt::format("'{}' has {} dimensions; a buffer has at most {}", b.name, b.rank(), kMaxRank));
  int64_t elements = 1;
  for (size_t d = 0; d < b.rank(); ++d) {
    const Expr& e = b.shape[d];
    if (!e || !e->type.is_int()) {
      add(Code::VerifyExtentType, fmt::format("dimension {} of '{}' is no integer", d, b.name));
      continue;
    }
    const auto c = constant_int(e);
    if (on_chip(b) && !c) {
      add(Code::VerifyTileShape,
          fmt::format("dimension {} of '{}' is {}; buffers on chip have constant shapes", d, b.name, text(e)),
          "use a constant tile size; copies cut what reaches past a tensor");
    } else if (on_chip(b) && *c < 1) {
      add(Code::VerifyTileShape,
          fmt::format("dimension {} of '{}' is {}; buffers on chip are not empty", d, b.name, *c));
    } else if (c && *c < 0) {
      add(Code::VerifyNegativeExtent, fmt::format("dimension {} of '{}' is {}", d, b.name, *c));
    } else if (on_chip(b) && (*c > kMaxTileElements || (elements *= *c) > kMaxTileElements)) {
      add(Code::VerifyTileTooLarge, fmt::format("'{}' has more than 2^31 elements", b.name));
      break;
    }
  }
  if (!b.strides.empty() && b.strides.size() != b.rank())
    add(Code::VerifyStrideCount,
        fmt::format("'{}' has {} dimensions, but {} strides", b.name, b.rank(), b.strides.size()));
  for (const Expr& e : b.strides)
    if (!e || !e->type.is_int()) add(Code::VerifyStrideCount, fmt::format("a stride of '{}' is no integer", b.name));
  if (level_ == Level::Tile && !b.strides.empty() && on_chip(b) && !b.is_view())
    add(Code::VerifyStrideCount,
        fmt::format("'{}' is on chip and has strides; only views and global tensors have them", b.name),
        "annotate a layout instead");
  if (b.type.is_pointer() && (b.space == Space::Shared || b.space == Space::Fragment))
    add(Code::VerifyPointerTile,
        fmt::format("'{}' holds addresses; only local buffers and global tensors may", b.name));
}

std::optional<int64_t> Verifier::span_of(const Buffer& b) const {
  // An upper bound keeps the products below within 64 bits.
  constexpr int64_t kLimit = int64_t{1} << 40;
  int64_t last = 0, elements = 1;
  for (size_t d = b.rank(); d-- > 0;) {
    const auto extent = constant_int(b.shape[d]);
    const auto stride = d < b.strides.size() ? constant_int(b.strides[d]) : std::optional<int64_t>(elements);
    if (!extent || !stride || *extent < 1 || *extent > kLimit || *stride < 0 || *stride > kLimit) return std::nullopt;
    if (*extent > 1 && *stride > kLimit / *extent) return std::nullopt;
    last += (*extent - 1) * *stride;
    if (*extent > kLimit / elements) return std::nullopt;
    elements *= *extent;
  }
  return last + 1;
}

void Verifier::check_view(const Buffer& b) {
  if (!check_id(b.root)) return;
  const Buffer& root = row(b.root);
  if (root.is_view())
    return add(Code::VerifyViewRoot, fmt::format("'{}' views '{}', which is a view itself", b.name, root.name),
               "name the buffer that owns the memory");
  if (root.space != b.space || (on_chip(b) && root.launch != b.launch) || b.space == Space::Barrier)
    return add(
        Code::VerifyViewRoot,
        fmt::format("'{}' is a {} view of '{}', a {} buffer", b.name, name_of(b.space), root.name, name_of(root.space)),
        "a view has the memory of its root; barriers have no views");
  if (b.cta) check_peer_view(b);
  const auto offset = b.offset ? constant_int(b.offset) : std::optional<int64_t>(0);
  if (b.offset && !b.offset->type.is_int())
    return add(Code::VerifyViewRange,
               fmt::format("the offset of the view '{}' is {}; it is an integer", b.name, b.offset->type.name()));
  if (offset && *offset < 0)
    return add(Code::VerifyViewRange,
               fmt::format("the view '{}' begins {} elements before '{}'", b.name, -*offset, root.name));
  const auto span = span_of(b), room = span_of(root);
  if (!offset || !span || !room || *offset > kMaxTileElements) return;
  const int64_t need = (*offset + *span) * b.type.storage_bits(), have = *room * root.type.storage_bits();
  if (need > have)
    add(Code::VerifyViewRange,
        fmt::format("the view '{}' reaches over {} bits of '{}', which has {}", b.name, need, root.name, have));
}

void Verifier::check_peer_view(const Buffer& b) {
  if (b.space != Space::Shared || b.launch < 0 || static_cast<size_t>(b.launch) >= program_.launches.size())
    return add(Code::VerifyCluster,
               fmt::format("'{}' is a {} view of another block's memory", b.name, name_of(b.space)),
               "blocks of a cluster reach each other's shared memory");
  const int64_t blocks = cluster_blocks(program_.launches[static_cast<size_t>(b.launch)]);
  if (!b.cta->type.is_int())
    return add(Code::VerifyCluster,
               fmt::format("the block of the view '{}' is {}; it is an integer", b.name, b.cta->type.name()));
  const auto rank = constant_int(b.cta);
  if (blocks == 1 || (rank && (*rank < 0 || *rank >= blocks)))
    add(Code::VerifyCluster,
        rank ? fmt::format("the view '{}' is of block {} of a cluster of {}", b.name, *rank, blocks)
             : fmt::format("the view '{}' is of another block, but the launch has no cluster", b.name),
        "a launch says how many blocks form a cluster; they have the numbers from 0 on");
}

void Verifier::check_special(const Buffer& b) {
  if (b.cta && !b.is_view())
    add(Code::VerifyCluster, fmt::format("'{}' is of another block, but no view", b.name),
        "a view names the buffer of that block");
  if (b.space == Space::Barrier) {
    const auto count = span_of(b);
    const bool counts_fit = count == static_cast<int64_t>(b.arrive_counts.size());
    const bool in_range = std::all_of(b.arrive_counts.begin(), b.arrive_counts.end(),
                                      [](int64_t n) { return n >= 1 && n <= kMaxArrivals; });
    if (b.rank() != 1 || !counts_fit || b.type != u64)
      add(Code::VerifyBarrierShape,
          fmt::format("the barriers '{}' need one dimension of uint64 and an arrive count for each", b.name));
    else if (!in_range)
      add(Code::VerifyArriveCount, fmt::format("an arrive count of '{}' is not between 1 and 2^20 - 1", b.name));
  } else if (b.use != BarrierUse::None) {
    add(Code::VerifyBarrierShape,
        fmt::format("'{}' has a use of barriers but is a {} buffer", b.name, name_of(b.space)));
  } else if (!b.arrive_counts.empty()) {
    add(Code::VerifyBarrierShape, fmt::format("'{}' has arrive counts but is a {} buffer", b.name, name_of(b.space)));
  }
  if (b.reducer) {
    const bool has_form = *b.reducer == ReduceOp::Sum || *b.reducer == ReduceOp::Max || *b.reducer == ReduceOp::Min;
    if (b.space != Space::Fragment || !has_form)
      add(Code::VerifyReducer,
          fmt::format("the reducer '{}' is a {} buffer combined by {}", b.name, name_of(b.space), name_of(*b.reducer)),
          "a reducer is a fragment combined by sum, max or min");
  }
  if (b.fill && (b.fill->type != b.type || on_chip(b)))
    add(Code::VerifyFillValue, fmt::format("'{}' reads {} out of bounds; it must be a global tensor of {}", b.name,
                                           text(b.fill), b.fill->type.name()));
  if (b.address && (!b.address->type.is_pointer() || on_chip(b)))
    add(Code::VerifyAddress, fmt::format("'{}' is made from the address {}; it must be a global tensor at a pointer",
                                         b.name, text(b.address)));
  if (b.workspace && (on_chip(b) || b.is_view() || b.address))
    add(Code::VerifyWorkspace, fmt::format("the workspace '{}' must be a plain global tensor", b.name));
  if (b.zeroed && !b.workspace)
    add(Code::VerifyWorkspace, fmt::format("'{}' holds zeros when a call begins, but is no workspace", b.name));
}

void Verifier::check_layout(const Buffer& b) {
  const LayoutAnnotation& layout = b.layout;
  if (b.space != Space::Shared && b.space != Space::Fragment && b.space != Space::Local)
    add(Code::VerifyLayout, fmt::format("'{}' has a layout but is a {} buffer", b.name, name_of(b.space)));
  if (layout.replicate < 1)
    add(Code::VerifyLayout, fmt::format("'{}' is replicated {} times", b.name, layout.replicate));
  if (layout.kind != LayoutHint::Function) return;
  const size_t wanted = b.rank() + (layout.replicate > 1 && layout.vars.size() == b.rank() + 1);
  if (layout.vars.size() != wanted)
    add(Code::VerifyLayout,
        fmt::format("the layout of '{}' has {} variables for {} dimensions", b.name, layout.vars.size(), b.rank()));
  if (layout.image.empty() || (b.space == Space::Fragment && layout.image.size() != 2))
    add(Code::VerifyLayout, fmt::format("the layout of '{}' gives {} indices", b.name, layout.image.size()),
        "a fragment's gives a thread and a register");
  const size_t depth = scope_.size();
  for (VarId id : layout.vars) bind(id);
  for (const Expr& e : layout.image) check_integer(e, "an index of the layout");
  leave_scope(depth);
}

}  // namespace tilewright::ir
