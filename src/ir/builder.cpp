// Tables, launches and elements. Scopes and thread code are in builder_scopes.cpp, tile ops in builder_tiles.cpp.
#include "ir/builder.h"

#include <mutex>

#include "ir/cluster.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright::ir {
namespace {

constexpr uint32_t kFirstFree = 1u << 31;
constexpr int64_t kMaxThreads = 1024, kMaxBlocksOfOne = 32;

struct FreeVars {
  std::mutex mutex;
  std::vector<VarInfo> infos;
};
// Whether loops, maps and threads alone decide an index: the same in every grid.
bool is_of_any_grid(const Expr& index, const Launch& launch) {
  const auto used = used_vars(index);
  return std::none_of(launch.block.begin(), launch.block.end(), [&](VarId v) { return used.count(v) != 0; });
}

FreeVars& free_vars() {
  static FreeVars table;
  return table;
}
VarInfo free_var(VarId id) {
  std::lock_guard lock(free_vars().mutex);
  return free_vars().infos[id.index - kFirstFree];
}

bool is_loop(const StmtOp& op) { return std::holds_alternative<For>(op) || std::holds_alternative<While>(op); }
bool is_map(const StmtOp& op) { return std::holds_alternative<Map>(op); }

}  // namespace

VarId new_free_var(const std::string& name, DType type) {
  std::lock_guard lock(free_vars().mutex);
  free_vars().infos.push_back({name, type});
  return VarId{kFirstFree + static_cast<uint32_t>(free_vars().infos.size() - 1)};
}
bool is_free_var(VarId id) { return id.index >= kFirstFree && id.valid(); }

Builder::Builder(std::string name) { program_.name = std::move(name); }

void Builder::fail_here(Code code, std::string message, std::string help, std::vector<Note> notes) const {
  fail(code, location_, std::move(message), std::move(help), std::move(notes));
}

LocationId Builder::location_id(const SourceLocation& at) {
  if (!at.known()) return {};
  auto [found, added] = location_ids_.try_emplace({at.file, at.line, at.column});
  if (added) {
    program_.locations.push_back(at);
    found->second = LocationId{static_cast<uint32_t>(program_.locations.size() - 1)};
  }
  return found->second;
}

void Builder::report_abandoned() {
  if (!abandoned_) return;
  SourceLocation at = *std::exchange(abandoned_, std::nullopt);
  fail(Code::ScopeAbandoned, at,
       "the scope of a range-for was left by break, return or goto while the program was being built",
       "the body of a tile loop runs once, at build time; for a loop exit at run time write break_loop()");
}

void Builder::emit(StmtOp op) {
  report_abandoned();
  need_launch("a statement");
  body().push_back(Stmt(StmtNode{std::move(op), location_id(location_)}));
}

void Builder::abandon(const SourceLocation& at) {
  if (!abandoned_) abandoned_ = at;
}

void Builder::need_launch(const char* what) const {
  if (launch_ < 0)
    fail_here(Code::OutsideKernel, fmt::format("{} stands outside of a Kernel", what),
              "open one first: for (auto bx : Kernel(...))");
}

bool Builder::in_scope_of(bool (*is)(const StmtOp&)) const {
  return std::any_of(scopes_.begin(), scopes_.end(), [&](const Scope& s) { return is(s.op); });
}

void Builder::need_no_map(const char* what) const {
  if (in_scope_of(is_map))
    fail_here(Code::TileOpInParallel, fmt::format("{} inside of Parallel, whose body is the code of one point", what),
              "move it out of the Parallel loop");
}

// A loop of the same thread or point: a Parallel between them is no loop, and its points cannot leave those around it.
void Builder::need_loop(const char* what) const {
  const auto inner =
      std::find_if(scopes_.rbegin(), scopes_.rend(), [](const Scope& s) { return is_loop(s.op) || is_map(s.op); });
  if (inner == scopes_.rend())
    fail_here(Code::OutsideLoop, fmt::format("{}_loop() outside of a loop", what),
              "to leave the kernel write thread_return()");
  if (is_map(inner->op))
    fail_here(Code::OutsideLoop, fmt::format("{} in Parallel, whose points all run", what),
              "put what some points leave out under an if; serial() is a loop that can be left");
}

std::string Builder::fresh_name(const std::string& name) const { return name.empty() ? "v" : name; }

VarId Builder::new_result(const char* name, DType type) { return program_.new_var(name, type); }

// ---- parameters

void Builder::need_parameter_name(const std::string& name) const {
  for (const Param& p : program_.params)
    if ((p.is_tensor() ? program_.buffer(p.buffer).name : free_var(p.var).name) == name)
      fail_here(Code::DuplicateParameter, fmt::format("two parameters are named '{}'", name),
                "arguments and error messages go by the names of parameters: give each its own");
}

void Builder::need_integer(const Expr& value, const char* what) const {
  if (!value->type.is_int())
    fail_here(Code::NeedsIntegers, fmt::format("{} is an integer, but this is {}", what, value->type.name()),
              "cast it to int32");
}

void Builder::need_extent(const Expr& extent, const std::string& what) const {
  if (!extent->type.is_int())
    fail_here(Code::ExtentType, fmt::format("{} is {}", what, extent->type.name()),
              "an extent is an integer: divide by ceildiv, or cast it to int32");
}

BufferId Builder::tensor(const std::string& name, std::vector<Expr> shape, DType type, BufferOptions options) {
  need_parameter_name(name);
  check_shape(shape, name, false);
  if (!options.strides.empty() && options.strides.size() != shape.size())
    fail_here(Code::StrideCount,
              fmt::format("'{}' has {} dimensions, but {} strides", name, shape.size(), options.strides.size()),
              "give one stride for each dimension, in elements");
  for (const Expr& stride : options.strides) need_integer(stride, "a stride");
  Buffer b;
  b.name = name, b.type = type, b.shape = std::move(shape), b.strides = std::move(options.strides);
  b.location = location_id(location_);
  BufferId id = program_.new_buffer(std::move(b));
  program_.params.push_back({id, {}});
  return id;
}

void Builder::scalar(VarId id) {
  const VarInfo info = free_var(id);
  if (info.type.is_packed() || info.type.is_float8())
    fail_here(Code::ScalarType, fmt::format("scalar parameter '{}' has type {}", info.name, info.type.name()),
              "scalars are bool, integers of 8 bits or more, or float16, bfloat16, float32, float64");
  need_parameter_name(info.name);
  program_.params.push_back({{}, id});
}

void Builder::check_shape(const std::vector<Expr>& shape, const std::string& name, bool on_chip) const {
  if (shape.size() > 8)
    fail_here(Code::TooManyDimensions,
              fmt::format("'{}' has {} dimensions; a tensor has at most 8", name, shape.size()),
              "join dimensions that are next to each other in memory");
  for (size_t d = 0; d < shape.size(); ++d) {
    const Expr& e = shape[d];
    need_extent(e, fmt::format("dimension {} of '{}'", d, name));
    std::optional<int64_t> c = constant_int(e);
    if (on_chip && !c)
      fail_here(Code::DynamicTile,
                fmt::format("dimension {} of '{}' is not a constant; tiles on chip have constant shapes", d, name),
                "use a constant tile size, and guard or let copies cut what reaches past the tensor");
    if (c && (*c < 0 || (on_chip && *c == 0)))
      fail_here(Code::BadExtent, fmt::format("dimension {} of '{}' is {}", d, name, *c),
                on_chip ? "an extent on chip is 1 or more" : "an extent is 0 or more");
  }
}

// ---- launches

std::vector<Expr> Builder::open_launch(std::vector<Expr> grid, LaunchOptions options) {
  report_abandoned();
  if (launch_ >= 0)
    fail_here(Code::NestedKernel, "a Kernel inside of a Kernel",
              "several launches of one program stand one after the other");
  if (grid.empty() || grid.size() > 3)
    fail_here(Code::GridRank, fmt::format("a grid has 1 to 3 extents, but this has {}", grid.size()),
              "join extents into one, and split the block index by floordiv and %");
  if (options.threads.empty() || options.threads.size() > 3)
    fail_here(Code::ThreadRank, fmt::format("threads has 1 to 3 extents, but this has {}", options.threads.size()),
              "write .threads = 128, or .threads = {x, y, z}");
  int64_t total = 1;
  for (int64_t t : options.threads) {
    if (t < 1)
      fail_here(Code::ThreadCount, fmt::format("an extent of threads is {}", t), "a block has at least 1 thread");
    if (t > kMaxThreads || (total *= t) > kMaxThreads)
      fail_here(Code::ThreadCount, fmt::format("the block has more than {} threads", kMaxThreads),
                "use fewer threads and let each do more, or more blocks");
  }
  if (options.cluster.size() > 3 ||
      std::any_of(options.cluster.begin(), options.cluster.end(), [](int64_t c) { return c < 1; }))
    fail_here(Code::ClusterShape, fmt::format("cluster_dims is ({})", fmt::join(options.cluster, ", ")),
              "it has at most 3 extents, each 1 or more");
  Launch launch;
  launch.name =
      program_.launches.empty() ? program_.name : fmt::format("{}_{}", program_.name, program_.launches.size());
  launch.threads = options.threads;
  launch.cluster = options.cluster;
  launch.location = location_id(location_);
  std::vector<Expr> blocks;
  for (size_t d = 0; d < grid.size(); ++d) {
    need_extent(grid[d], fmt::format("grid extent {}", d));
    walk(grid[d], [&](const Expr& e) {
      const auto* load = e.as<Load>();
      if (load)
        fail_here(
            Code::ExtentType,
            fmt::format("grid extent {} reads '{}', and launches are made before anybody reads memory", d,
                        program_.buffer(load->buffer).name),
            "make the number a parameter of its own (n: T.int32), or launch as many blocks as there may be, and let "
            "those beyond it do nothing");
    });
    if (auto c = constant_int(grid[d]); c && *c < 0)
      fail_here(Code::BadExtent, fmt::format("grid extent {} is {}", d, *c), "an extent is 0 or more");
    launch.block.push_back(program_.new_var(options.block_names[d], i32));
    blocks.push_back(var(launch.block.back(), i32));
    set_range(launch.block.back(), constant(0), range(grid[d]));
  }
  static constexpr const char* kThreadNames[] = {"tx", "ty", "tz"};
  for (size_t d = 0; d < options.threads.size(); ++d) {
    launch.thread.push_back(program_.new_var(kThreadNames[d], i32));
    set_range(launch.thread.back(), constant(0), Range{options.threads[d], options.threads[d]});
  }
  launch.grid = std::move(grid);
  program_.launches.push_back(std::move(launch));
  launch_ = static_cast<int32_t>(program_.launches.size() - 1);
  return blocks;
}

void Builder::close_launch() {
  report_abandoned();
  check_internal(scopes_.empty(), "a launch is closed with {} open scopes", scopes_.size());
  program_.launches.back().body = std::move(top_);
  top_.clear();
  launch_ = -1;
}

Expr Builder::thread_index(int dim) const {
  need_launch("get_thread_binding");
  const Launch& l = program_.launches.back();
  if (dim < 0 || dim > 2)
    fail_here(Code::ThreadDimension, fmt::format("get_thread_binding({}): there is no such dimension", dim),
              "threads have dimensions 0 to 2: x, y and z");
  return static_cast<size_t>(dim) < l.thread.size() ? var(l.thread[static_cast<size_t>(dim)], i32) : constant(0);
}

Expr Builder::block_index(int dim) const {
  need_launch("get_block_binding");
  const Launch& l = program_.launches.back();
  if (dim < 0 || dim > 2)
    fail_here(Code::ThreadDimension, fmt::format("get_block_binding({}): there is no such dimension", dim),
              "grids have dimensions 0 to 2: x, y and z");
  return static_cast<size_t>(dim) < l.block.size() ? var(l.block[static_cast<size_t>(dim)], i32) : constant(0);
}

int64_t Builder::thread_extent(int dim) const {
  need_launch("get_thread_extent");
  const Launch& l = program_.launches.back();
  if (dim < 0 || dim > 2)
    fail_here(Code::ThreadDimension, fmt::format("get_thread_extent({}): there is no such dimension", dim),
              "threads have dimensions 0 to 2: x, y and z");
  return static_cast<size_t>(dim) < l.threads.size() ? l.threads[static_cast<size_t>(dim)] : 1;
}

int64_t Builder::cluster_extent(int dim) const {
  need_launch("get_cluster_dim");
  if (dim < 0 || dim > 2)
    fail_here(Code::ThreadDimension, fmt::format("get_cluster_dim({}): there is no such dimension", dim),
              "clusters have dimensions 0 to 2: x, y and z");
  return ir::cluster_extent(program_.launches.back(), static_cast<size_t>(dim));
}

Expr Builder::cluster_rank() const {
  need_launch("block_rank_in_cluster");
  return rank_in_cluster(program_.launches.back());
}

Expr Builder::linear_thread() const {
  Expr linear = thread_index(2);
  for (int d = 1; d >= 0; --d) linear = add(mul(linear, constant(thread_extent(d))), thread_index(d));
  return linear;
}

void Builder::use_swizzle(int64_t panel, RasterOrder order) {
  need_launch("use_swizzle");
  if (panel < 0)
    fail_here(Code::SwizzlePanel, fmt::format("use_swizzle: panel_size is {}", panel),
              "give the number of rows of blocks in a panel, or 0 for none");
  program_.launches.back().swizzle = {panel, order};
}

void Builder::min_blocks(int64_t count) {
  need_launch("annotate_min_blocks_per_sm");
  if (count < 1 || count > kMaxBlocksOfOne)
    fail_here(Code::ThreadCount, fmt::format("annotate_min_blocks_per_sm: {} blocks", count),
              fmt::format("a multiprocessor holds 1 to {} blocks", kMaxBlocksOfOne));
  program_.launches.back().min_blocks = count;
}

void Builder::annotate_plan(std::vector<std::string> lines) {
  need_launch("annotate_plan");
  std::vector<std::string>& plan = program_.launches.back().plan;
  std::ranges::move(lines, std::back_inserter(plan));
}

// ---- buffers

BufferId Builder::add_buffer(Buffer buffer, const char* what) {
  need_launch(what);
  buffer.launch = launch_;
  buffer.location = location_id(location_);
  return program_.new_buffer(std::move(buffer));
}

BufferId Builder::alloc(Space space, const std::string& name, std::vector<Expr> shape, DType type) {
  const std::string label = name.empty() ? std::string(ir::name_of(space)) : name;
  check_shape(shape, label, true);
  if (type.is_pointer() && space != Space::Local)
    fail_here(Code::PointerTile, fmt::format("'{}' is a {} buffer of addresses", label, ir::name_of(space)),
              "addresses are held by local buffers and global tensors");
  Buffer b;
  b.name = label, b.type = type, b.space = space, b.shape = std::move(shape);
  return add_buffer(std::move(b), "an allocation");
}

BufferId Builder::alloc_barrier(const std::string& name, std::vector<int64_t> arrive_counts) {
  if (arrive_counts.empty())
    fail_here(Code::BarrierCount, "alloc_barrier without an arrive count",
              "give one count for each barrier: alloc_barrier({128, 128})");
  for (int64_t c : arrive_counts)
    if (c < 1 || c > (1 << 20) - 1)
      fail_here(Code::BarrierCount,
                fmt::format("alloc_barrier: the arrive count is {}; it is between 1 and 2^20 - 1", c),
                "give the number of threads that arrive before the barrier opens");
  Buffer b;
  b.name = name.empty() ? "barrier" : name, b.type = u64, b.space = Space::Barrier;
  b.shape = {constant(static_cast<int64_t>(arrive_counts.size()))};
  b.arrive_counts = std::move(arrive_counts);
  return add_buffer(std::move(b), "alloc_barrier");
}

BufferId Builder::alloc_reducer(const std::string& name, std::vector<Expr> shape, DType type, ReduceOp op) {
  if (op != ReduceOp::Sum && op != ReduceOp::Max && op != ReduceOp::Min)
    fail_here(Code::ReducerOp, fmt::format("a reducer combines by sum, max or min, not by {}", ir::name_of(op)),
              "store to a fragment and reduce it");
  BufferId id = alloc(Space::Fragment, name.empty() ? "reducer" : name, std::move(shape), type);
  program_.buffers[id.index].reducer = op;
  return id;
}

BufferId Builder::workspace(const std::string& name, std::vector<Expr> shape, DType type) {
  check_shape(shape, name, false);
  Buffer b;
  b.name = name.empty() ? "workspace" : name, b.type = type, b.shape = std::move(shape), b.workspace = true;
  b.location = location_id(location_);
  return program_.new_buffer(std::move(b));
}

BufferId Builder::tensor_at(const std::string& name, const Expr& address, std::vector<Expr> shape, DType type,
                            std::vector<Expr> strides) {
  const std::string label = name.empty() ? "tensor" : name;
  check_shape(shape, label, false);
  if (!address->type.is_pointer() && !(address->type.is_int() && address->type.bits == 64))
    fail_here(
        Code::AddressType,
        fmt::format("make_tensor: an address is a pointer or a 64-bit integer, but this is {}", address->type.name()),
        "read it from a tensor of dtype pointer or int64");
  Buffer b;
  b.name = label, b.type = type, b.shape = std::move(shape), b.strides = std::move(strides);
  // An address that is read from memory is read once, here: what it is read from may change.
  bool reads = false;
  walk(address, [&](const Expr& e) { reads |= e.as<Load>() != nullptr; });
  b.address = reads ? let(label + "_address", bitcast(address, pointer)) : bitcast(address, pointer);
  return add_buffer(std::move(b), "make_tensor");
}

BufferId Builder::view(const std::string& name, BufferId source, std::vector<Expr> shape, DType type,
                       std::vector<Expr> strides) {
  const Buffer from = program_.buffer(source);
  if (from.space == Space::Barrier)
    fail_here(Code::BadView, fmt::format("view of '{}', which is a barrier", from.name),
              "index it instead: each of its elements is a barrier");
  if (from.reducer)
    fail_here(Code::BadView, fmt::format("view of '{}', which is a reducer", from.name),
              "finalize it and copy it to a fragment first");
  check_shape(shape, name.empty() ? from.name + "_view" : name, from.space != Space::Global);
  if (!from.strides.empty() && strides.empty())
    fail_here(Code::BadView, fmt::format("view of '{}', whose elements are not next to each other", from.name),
              "copy it to a compact buffer first");
  auto bits = [](const std::vector<Expr>& extents, DType t) {
    Expr total = constant(i64, int64_t{t.storage_bits()});
    for (const Expr& e : extents) total = mul(total, cast(e, i64));
    return total;
  };
  if (strides.empty()) {
    Expr want = bits(from.shape, from.type), have = bits(shape, type);
    auto cw = constant_int(want), ch = constant_int(have);
    if (!equal(want, have) && cw && ch)
      fail_here(Code::ViewSize, fmt::format("view of '{}': it has {} bits, but the view has {}", from.name, *cw, *ch),
                "the product of the extents times the bits of the dtype stays the same");
  }
  Buffer b = from;
  b.name = name.empty() ? from.name + "_view" : name;
  b.shape = std::move(shape), b.strides = std::move(strides), b.type = type;
  b.root = program_.root(source);
  b.layout = {}, b.fill = {}, b.reducer.reset(), b.workspace = b.zeroed = false;
  if (from.offset) {  // offsets count elements of the view's type
    const int64_t num = from.type.storage_bits(), den = type.storage_bits();
    b.offset = binary(BinaryOp::FloorDiv, mul(from.offset, constant(from.offset->type, num)),
                      constant(from.offset->type, den));
  }
  b.location = location_id(location_);
  return program_.new_buffer(std::move(b));
}

BufferId Builder::peer_view(BufferId tile, const Expr& cta) {
  need_launch("copy_cluster");
  need_integer(cta, "the block that gets the copy");
  const int64_t blocks = cluster_blocks(program_.launches.back());
  const auto rank = constant_int(cta);
  if (blocks == 1 || (rank && (*rank < 0 || *rank >= blocks)))
    fail_here(Code::ClusterCopy,
              rank ? fmt::format("copy_cluster to block {} of a cluster of {}", *rank, blocks)
                   : "copy_cluster to another block, but the launch has no cluster",
              "cluster_dims of the kernel says how many blocks form a cluster; they have the numbers from 0 on");
  const Buffer from = program_.buffer(tile);
  if (from.space != Space::Shared)
    fail_here(Code::ClusterCopy, fmt::format("copy_cluster to '{}', a {} buffer", from.name, ir::name_of(from.space)),
              "blocks of a cluster reach each other's shared memory");
  Buffer b = from;
  b.name = from.name + "_peer", b.root = program_.root(tile), b.layout = {};
  b.cta = let("peer", cast(cta, i32));
  b.location = location_id(location_);
  return program_.new_buffer(std::move(b));
}

void Builder::annotate_layout(BufferId id, LayoutAnnotation layout) {
  Buffer& b = program_.buffers[id.index];
  if (b.space != Space::Shared && b.space != Space::Fragment)
    fail_here(Code::LayoutSpace, fmt::format("annotate_layout: '{}' is a {} buffer", b.name, ir::name_of(b.space)),
              "shared and fragment buffers have layouts");
  const bool fragment = b.space == Space::Fragment;
  if (layout.kind == LayoutHint::Function && (layout.image.empty() || (fragment && layout.image.size() != 2)))
    fail_here(
        Code::LayoutFunction, fmt::format("the layout of '{}' gives {} values", b.name, layout.image.size()),
        fragment ? "the layout of a fragment gives {thread, register index}" : "it gives the position of an element");
  for (const Expr& e : layout.image)
    if (!e->type.is_int())
      fail_here(Code::LayoutFunction, fmt::format("the layout of '{}' gives a {}", b.name, e->type.name()),
                "positions are integers: use floordiv instead of /");
  b.layout = std::move(layout);
}

Expr Builder::layout_index(const std::string& name, DType type) { return var(program_.new_var(name, type), type); }

void Builder::annotate_fill(BufferId id, const Expr& value) {
  Buffer& b = program_.buffers[id.index];
  if (b.space != Space::Global)
    fail_here(Code::LayoutSpace, fmt::format("annotate_safe_value: '{}' is a {} buffer", b.name, ir::name_of(b.space)),
              "it is for global tensors: reads outside of them give that value");
  if (value->type.is_pointer() != b.type.is_pointer())
    fail_here(
        Code::BadCast,
        fmt::format("annotate_safe_value of '{}', which holds {}, with {}", b.name, b.type.name(), value->type.name()),
        "give a value that converts to the elements");
  b.fill = cast(value, b.type);
}

// ---- expressions that need tables

// Of a variable that counts `extent` values from `first` on.
void Builder::set_range(VarId v, const Expr& first, const std::optional<Range>& extent) {
  if (const auto least = range(first, Extents::Any)) ranges_of_any_extents_[v] = {least->low, INT32_MAX};
  if (const auto f = range(first); f && extent && extent->high > 0) ranges_[v] = {f->low, f->high + extent->high - 1};
}

std::optional<Builder::Range> Builder::range(const Expr& e, Extents extents) const {
  if (auto c = constant_int(e)) return Range{*c, *c};
  if (const auto* v = e.as<Var>()) {
    const auto& ranges = extents == Extents::Any ? ranges_of_any_extents_ : ranges_;
    auto found = ranges.find(v->id);
    return found == ranges.end() ? std::nullopt : std::optional(found->second);
  }
  const auto* s = e.as<Sum>();
  if (!s) return std::nullopt;
  Range total{s->constant, s->constant};
  for (const Term& t : s->terms) {
    auto r = range(t.value, extents);
    if (!r || std::abs(t.coefficient) > INT32_MAX || std::max(std::abs(r->low), std::abs(r->high)) > INT32_MAX)
      return std::nullopt;
    const int64_t a = t.coefficient * r->low, b = t.coefficient * r->high;
    total.low += std::min(a, b), total.high += std::max(a, b);
  }
  return total;
}

// What a condition keeps from running is no mistake, wherever it would lead.
bool Builder::may_be_skipped() const {
  return std::any_of(scopes_.begin(), scopes_.end(), [](const Scope& scope) {
    const auto* branch = std::get_if<If>(&scope.op);
    if (!branch) return std::holds_alternative<While>(scope.op);
    return constant_int(branch->condition) != static_cast<int64_t>(!scope.in_else);
  });
}

// An index that is negative whatever the extents of grids and loops are counts from the end: -1, and -1 - i of a loop
// from 0. That bx * 64 - 1 is negative in the only block of a small grid is no reason: it is beyond the tensor there,
// as in the first block of a large one.
Expr Builder::normalized_index(const Buffer& b, size_t dim, Expr index, Outside outside) const {
  if (!index->type.is_int())
    fail_here(Code::IndexType,
              fmt::format("index {} of '{}' is {}; indices are integers", dim, b.name, index->type.name()),
              "cast it to int32");
  auto r = range(index);
  const auto written = r;
  if (const auto always = range(index, Extents::Any); always && always->high < 0) {
    const DType type = *promote(index->type, b.shape[dim]->type);
    index = add(cast(index, type), cast(b.shape[dim], type));
    r = range(index);
  }
  if (b.space == Space::Global && r && r->high < 0 && r->low < r->high && !program_.launches.empty() &&
      is_of_any_grid(index, program_.launches.back()) && !may_be_skipped())
    warn(make_diagnostic(
        Code::IndexOutOfBounds, location_,
        fmt::format("index {} of '{}' is between {} and {}, before the tensor: nothing is read or written there", dim,
                    b.name, r->low, r->high),
        "only what is negative whatever the extents of loops are counts from the end: add the dimension's extent"));
  auto extent = constant_int(b.shape[dim]);
  const bool judged = outside == Outside::IsAMistake || constant_int(index);
  if (judged && b.space != Space::Global && r && extent && (r->low >= *extent || r->high < 0) && !may_be_skipped())
    fail_here(Code::IndexOutOfBounds,
              written->low == written->high
                  ? fmt::format("index {} of '{}' is {}", dim, b.name, written->low)
                  : fmt::format("index {} of '{}' is between {} and {}", dim, b.name, written->low, written->high),
              fmt::format("the extent of that dimension is {}", *extent),
              {{fmt::format("'{}' is declared here", b.name), program_.location(b.location)}});
  return index;
}

Element Builder::element(const TileRef& ref, const char* what, Outside outside) const {
  const Buffer& b = program_.buffer(ref.buffer);
  if (ref.whole && b.rank() != 0)
    fail_here(Code::NeedsElement, fmt::format("{} of '{}', which is a whole buffer", what, b.name),
              fmt::format("give an index for each of its {} dimensions", b.rank()));
  if (ref.indices.size() != b.rank())
    fail_here(Code::IndexCount,
              fmt::format("'{}' has {} dimensions, but {} indices are given", b.name, b.rank(), ref.indices.size()),
              "give an index in every dimension; slices and all are indices too",
              {{fmt::format("'{}' is declared here", b.name), program_.location(b.location)}});
  Element e{ref.buffer, {}};
  for (size_t d = 0; d < ref.indices.size(); ++d) {
    if (ref.indices[d].is_slice)
      fail_here(Code::NeedsElement, fmt::format("{} of '{}', in which dimension {} is a slice", what, b.name, d),
                "give an index in every dimension; copy() moves boxes");
    e.indices.push_back(normalized_index(b, d, ref.indices[d].begin, outside));
  }
  if (b.space != Space::Fragment) return e;
  // Which thread holds an element is settled when the program is compiled, and so is how points are dealt to threads.
  for (const Scope& scope : scopes_)
    if (const auto* map = std::get_if<Map>(&scope.op))
      for (size_t i = 0; i < map->vars.size(); ++i)
        for (const Expr& index : e.indices)
          if (!is_constant(map->extents[i]) && used_vars(index).count(map->vars[i]))
            fail_here(
                Code::DynamicTile,
                fmt::format("'{}', a fragment, is indexed by '{}', a variable of Parallel whose extent is not constant",
                            b.name, program_.var(map->vars[i]).name),
                "loop over the whole fragment, with a condition; or keep the elements in shared memory");
  return e;
}

Expr Builder::load(const TileRef& ref) {
  Element e = element(ref, "a read", Outside::MayBeGuarded);
  const Buffer& b = program_.buffer(ref.buffer);
  if (b.space == Space::Barrier)
    fail_here(Code::BarrierAccess, fmt::format("a read of '{}', which is a barrier", b.name),
              "barriers are used by barrier_arrive and barrier_wait");
  return of_fit_size(ir::load(e.buffer, std::move(e.indices), b.type), location_);
}

Expr Builder::address(const TileRef& ref) {
  Element e = element(ref, "an address");
  if (program_.buffer(ref.buffer).space != Space::Global)
    fail_here(Code::AddressSpace,
              fmt::format("the address of an element of '{}', a {} buffer", name_of(ref),
                          ir::name_of(program_.buffer(ref.buffer).space)),
              "only elements of global tensors have addresses");
  return ir::address(e.buffer, std::move(e.indices));
}

Expr Builder::pointer_for_call(const TileRef& ref) {
  Element e = element(ref, "an address");
  const Space space = program_.buffer(ref.buffer).space;
  if (space == Space::Fragment || space == Space::Barrier)
    fail_here(Code::AddressSpace,
              fmt::format("the address of an element of '{}', a {} buffer", name_of(ref), ir::name_of(space)),
              "foreign text takes addresses of global and shared memory and of what a thread has to itself");
  return ir::address(e.buffer, std::move(e.indices));
}

Expr Builder::let(const std::string& name, const Expr& value) {
  if (is_constant(value) || value.as<Var>() || launch_ < 0) return value;
  VarId id = program_.new_var(fresh_name(name), value->type);
  if (auto r = range(value)) ranges_[id] = *r;
  if (auto r = range(value, Extents::Any)) ranges_of_any_extents_[id] = *r;
  emit(Let{id, value});
  return var(id, value->type);
}

// ---- finish

// Every symbol that the program computes with must come from somewhere: a shape, or a scalar parameter.
void Builder::need_bound_symbols(const std::unordered_map<VarId, Expr>& known) {
  auto check = [&](const Expr& e) {
    walk(e, [&](const Expr& x) {
      const auto* v = x.as<Var>();
      if (v && is_free_var(v->id) && !known.count(v->id))
        fail_here(Code::UnboundSymbol,
                  fmt::format("'{}' has no value: no parameter says what it is", free_var(v->id).name),
                  "use it in the shape of a tensor parameter, or make it a Scalar() and list it in the parameters");
    });
  };
  for (const Launch& l : program_.launches) {
    location_ = program_.location(l.location);
    for (const Expr& e : l.grid) check(e);
    walk(l.body, [&](const Stmt& s) {
      location_ = program_.location(s->location);
      for_each_expr(s, check);
    });
  }
  for (const Buffer& b : program_.buffers) {
    location_ = program_.location(b.location);
    for (const std::vector<Expr>* list : {&b.shape, &b.strides, &b.layout.image})
      for (const Expr& e : *list) check(e);
    for (const Expr* e : {&b.offset, &b.cta, &b.address, &b.fill})
      if (*e) check(*e);
  }
  for (const Assumption& a : program_.assumptions) {
    location_ = program_.location(a.location);
    check(a.condition);
  }
}

TileProgram Builder::finish() {
  report_abandoned();
  check_internal(scopes_.empty() && launch_ < 0, "finish() with open scopes");
  if (program_.launches.empty())
    fail_here(Code::NoKernel, fmt::format("'{}' launches nothing", program_.name),
              "write its body inside for (auto bx : Kernel(...))");
  Substitution ids;
  auto adopt = [&](VarId id) -> VarId {
    const VarInfo info = free_var(id);
    VarId own = program_.new_var(info.name, info.type);
    ids[id] = var(own, info.type);
    return own;
  };
  for (Param& p : program_.params)
    if (!p.is_tensor()) p.var = adopt(p.var);
  auto adopt_symbols = [&](const std::vector<Expr>& list) {
    for (const Expr& e : list)
      walk(e, [&](const Expr& x) {
        const auto* v = x.as<Var>();
        if (v && is_free_var(v->id) && !ids.count(v->id)) program_.symbols.push_back(adopt(v->id));
      });
  };
  for (const Param& p : program_.params)
    if (p.is_tensor()) adopt_symbols(program_.buffer(p.buffer).shape), adopt_symbols(program_.buffer(p.buffer).strides);
  need_bound_symbols(ids);
  auto replace = [&](Expr& e) {
    if (e) e = substitute(e, ids);
  };
  auto replace_all = [&](std::vector<Expr>& list) { std::for_each(list.begin(), list.end(), replace); };
  for (Buffer& b : program_.buffers)
    replace_all(b.shape), replace_all(b.strides), replace_all(b.layout.image), replace(b.offset), replace(b.cta),
        replace(b.address), replace(b.fill);
  for (Assumption& a : program_.assumptions) replace(a.condition);
  for (Launch& l : program_.launches) replace_all(l.grid), l.body = substitute(l.body, ids);
  return std::move(program_);
}

}  // namespace tilewright::ir
