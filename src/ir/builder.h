// The one way to make a TileProgram: both frontends call it. It decides names, shapes, dtypes and extents, and reports
// the user's mistakes at the call that makes them. Expressions come from ir/operators.h.
#pragma once
#include "ir/operators.h"
#include "ir/program.h"
#include "support/error_codes.h"

namespace tilewright::ir {

// What a user writes in one dimension of a reference: an index, or begin:end with either end left out.
struct IndexSpec {
  Expr begin;  // an index; or where a slice begins, none: 0
  Expr end;    // where a slice ends, none: the extent of the dimension
  bool is_slice = false;
};
// An operand of a tile op: a whole buffer, an element that is the head of a tile, or a box.
struct TileRef {
  BufferId buffer;
  std::vector<IndexSpec> indices;
  bool whole = true;  // no indices were given
  bool is_element() const {
    return !whole && std::none_of(indices.begin(), indices.end(), [](const IndexSpec& i) { return i.is_slice; });
  }
};

struct LaunchOptions {
  std::vector<int64_t> threads = {128};
  std::vector<int64_t> cluster;
  std::vector<std::string> block_names = {"bx", "by", "bz"};
};
struct LoopOptions {
  LoopKind kind = LoopKind::Serial;
  Expr step;  // none: 1
  int64_t stages = 0, factor = 0;
  std::vector<int64_t> order, stage;
};
struct BufferOptions {
  std::vector<Expr> strides;
  Expr address;
};
struct CopyOptions {
  Combine combine = Combine::None;
  Completion completion;
  std::string prefer;
  int64_t multicast = 0;  // as in Copy
  Expr cta;               // to that block of the cluster, where a barrier gets one arrival when all is there
};
struct GemmOptions {
  std::optional<TileRef> metadata;  // a is sparse
  bool transpose_a = false, transpose_b = false, transpose_metadata = false;
  GemmPolicy policy = GemmPolicy::Square;
  Expr clear;
  Completion completion;
};
struct ReduceOptions {
  int64_t dim = -1;
  bool clear = true;
  bool nan_propagate = false;
};

// Symbols and scalar parameters may be named before a program exists (shapes of tensors are). Such variables have ids
// of their own, unique in the process, until finish() gives them ids of the program.
VarId new_free_var(const std::string& name, DType type);
bool is_free_var(VarId id);

class Builder {
 public:
  explicit Builder(std::string name);

  // Where the statements that follow come from.
  void set_location(const SourceLocation& at) { location_ = at; }
  const SourceLocation& location() const { return location_; }

  // ---- parameters, in the order of the calls. Free variables in shapes and strides become symbols.
  BufferId tensor(const std::string& name, std::vector<Expr> shape, DType type, BufferOptions options = {});
  void scalar(VarId free_var);

  // ---- launches. open_launch() gives the block indices.
  std::vector<Expr> open_launch(std::vector<Expr> grid, LaunchOptions options);
  void close_launch();
  bool in_launch() const { return launch_ >= 0; }
  Expr thread_index(int dim) const;
  Expr block_index(int dim) const;
  int64_t thread_extent(int dim) const;
  int64_t cluster_extent(int dim) const;
  Expr cluster_rank() const;   // the number of the block in its cluster, x first
  Expr linear_thread() const;  // x + X * (y + Y * z)
  void use_swizzle(int64_t panel, RasterOrder order);
  void min_blocks(int64_t count);
  void annotate_plan(std::vector<std::string> lines);

  // ---- buffers
  BufferId alloc(Space space, const std::string& name, std::vector<Expr> shape, DType type);
  BufferId alloc_barrier(const std::string& name, std::vector<int64_t> arrive_counts);
  BufferId alloc_reducer(const std::string& name, std::vector<Expr> shape, DType type, ReduceOp op);
  BufferId workspace(const std::string& name, std::vector<Expr> shape, DType type);
  BufferId tensor_at(const std::string& name, const Expr& address, std::vector<Expr> shape, DType type,
                     std::vector<Expr> strides = {});
  // The same memory under another shape and type; total bits must agree, and without strides the source must be
  // compact.
  BufferId view(const std::string& name, BufferId source, std::vector<Expr> shape, DType type,
                std::vector<Expr> strides = {});
  // The same tile in the shared memory of that block of the cluster: to write to.
  BufferId peer_view(BufferId tile, const Expr& cta);
  void annotate_layout(BufferId buffer, LayoutAnnotation layout);
  Expr layout_index(const std::string& name, DType type);  // a variable of a layout function
  void annotate_fill(BufferId buffer, const Expr& value);
  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }
  // For frontends that learn the name of a buffer after they made it. Names only make texts readable.
  void rename(BufferId id, const std::string& name) { program_.buffers[id.index].name = name; }

  // ---- expressions that need tables
  Expr load(const TileRef& element);
  Expr address(const TileRef& element);
  Expr pointer_for_call(const TileRef& element);  // on chip too: an argument of call() alone
  // Binds a value now; constants and variables pass through.
  Expr let(const std::string& name, const Expr& value);

  // ---- scopes. Each open_*() is closed by close().
  Expr open_for(const std::string& name, const Expr& begin, const Expr& end, LoopOptions options = {});
  std::vector<Expr> open_map(const std::vector<std::string>& names, std::vector<Expr> extents);
  // Blocks `index` of `workers` share the points of a box, in groups of `group` along its last dimension.
  std::vector<Expr> open_persistent(const std::vector<std::string>& names, std::vector<Expr> domain,
                                    const Expr& workers, const Expr& index, int64_t group);
  // The statements from `since` on, where they are given, compute the condition: every turn begins with them.
  void open_while(const Expr& condition, size_t since = SIZE_MAX);
  void open_if(const Expr& condition);
  void open_else();  // after the close() of an if
  void open_role(int64_t begin, int64_t end);
  void open_groups(std::vector<int64_t> warpgroups);  // the role of these groups of 128 threads
  void close();
  size_t depth() const { return scopes_.size(); }
  size_t statements() { return body().size(); }  // so far, of what is open
  // Remembers that a scope was left without close() (a C++ break); the next call reports it.
  void abandon(const SourceLocation& at);

  // ---- thread code
  // By the queue cp_async: into shared memory; anywhere else at once.
  void store(const TileRef& element, const Expr& value, Queue queue = Queue::None);
  // element = element op value; += of a reducer is a contribution.
  void update(Operator op, const TileRef& element, const Expr& value);
  Expr atomic(AtomicOp op, const TileRef& element, const Expr& value, bool want_old,
              MemoryOrder order = MemoryOrder::Relaxed, const Expr& compare = {});
  Expr shuffle(ShuffleKind kind, const Expr& value, const Expr& lane, int64_t width);
  Expr vote(VoteKind kind, const Expr& value);
  // Of a warp, on elements of a thread's arrays from these on: m<rows>n8k<depth>.
  void mma(const TileRef& a, const TileRef& b, const TileRef& c, int64_t depth, int64_t rows);
  void load_matrix(const TileRef& from, const TileRef& to, int64_t matrices, bool transpose);
  Expr warp_reduce(Operator op, const Expr& value);  // over the whole warp; every lane gets the result
  void break_loop();
  void continue_loop();
  void return_thread();
  void print(std::string message, std::vector<Expr> values, BufferId buffer = {});
  void check(const Expr& condition, const std::string& message);
  void assume(const Expr& condition);
  Expr call(Call call, std::optional<DType> result);

  // ---- tile ops
  void copy(const TileRef& from, const TileRef& to, CopyOptions options = {});
  void im2col(const TileRef& image, const TileRef& to, const Im2col& shape);
  void fill(const TileRef& to, const Expr& value);
  void gemm(const TileRef& a, const TileRef& b, const TileRef& c, GemmOptions options = {});
  void reduce(ReduceOp op, const TileRef& from, const TileRef& to, ReduceOptions options = {});
  void scan(ReduceOp op, const TileRef& from, const TileRef& to, int64_t dim, bool reverse);
  void finalize_reducer(BufferId buffer);

  // ---- order
  Element barrier_element(const TileRef& ref) const { return barrier(ref, "a barrier operand"); }
  // cta: the block of the cluster; none: this one
  void arrive(const TileRef& barrier, Queue queue = Queue::None, const Expr& cta = {}, ArriveBy by = ArriveBy::Thread);
  void expect(const TileRef& barrier, const Expr& bytes, bool arrive);
  void wait(const TileRef& barrier, const Expr& parity);
  void commit(Queue queue);
  void drain(Queue queue, int64_t pending);
  void sync(SyncScope scope, const Expr& barrier = {}, int64_t count = 0, bool arrive_only = false,
            bool wait_only = false);
  void fence(FenceProxy proxy);
  void set_registers(int64_t count);

  Options& options() { return program_.options; }
  // The program; every scope must be closed.
  TileProgram finish();

 private:
  struct Scope {
    StmtOp op;  // the statement being filled; its body is empty until close()
    Body body;
    LocationId location;
    bool in_else = false;  // If: the body being filled is the else side
    int close_with = 0;    // further scopes that close() closes too
  };
  struct Range {
    int64_t low, high;
  };
  // By which extents of grids, loops and maps a range is known: those that they have, or none, so that what it says
  // does not depend on the shape of tensors.
  enum class Extents : uint8_t { Known, Any };

  [[noreturn]] void fail_here(Code code, std::string message, std::string help = {},
                              std::vector<Note> notes = {}) const;
  void emit(StmtOp op);
  Body& body() { return scopes_.empty() ? top_ : scopes_.back().body; }  // that is open
  void report_abandoned();
  void need_parameter_name(const std::string& name) const;
  void need_integer(const Expr& value, const char* what) const;
  void need_extent(const Expr& extent, const std::string& what) const;  // of a loop, a grid, a buffer
  LocationId location_id(const SourceLocation& at);
  std::string fresh_name(const std::string& name) const;
  BufferId add_buffer(Buffer buffer, const char* what);
  void check_shape(const std::vector<Expr>& shape, const std::string& name, bool on_chip) const;
  void need_launch(const char* what) const;
  void need_no_map(const char* what) const;
  void need_loop(const char* what) const;
  void need_end(const While& loop, const SourceLocation& at) const;
  void need_atomic(AtomicOp op, DType type) const;
  // A read may come to stand in a choice that never takes it: check_tile_ranges looks at it in its statement. A number
  // that is written out is judged at once.
  enum class Outside : uint8_t { IsAMistake, MayBeGuarded };
  Element element(const TileRef& ref, const char* what, Outside outside = Outside::IsAMistake) const;
  Expr normalized_index(const Buffer& b, size_t dim, Expr index, Outside outside = Outside::IsAMistake) const;
  std::optional<Range> range(const Expr& e, Extents extents = Extents::Known) const;
  void set_range(VarId var, const Expr& first, const std::optional<Range>& extent);
  Region region(const TileRef& ref) const;
  Region own_elements(const TileRef& first, int64_t count, const char* what) const;
  void need_inside(const Region& region) const;
  bool ends_with_tensor(const Region& region, size_t dim) const;
  void need_bound_symbols(const std::unordered_map<VarId, Expr>& known);
  void narrow_to(const Region& to, Region& from) const;
  std::pair<Region, Region> matched(const TileRef& from, const TileRef& to, const char* what) const;
  void broadcast_copy(const Region& from, const Region& to, const CopyOptions& options);
  Element barrier(const TileRef& ref, const char* what) const;
  VarId new_result(const char* name, DType type);
  bool in_scope_of(bool (*is)(const StmtOp&)) const;
  bool may_be_skipped() const;  // what is emitted here: it stands under a condition
  std::pair<int64_t, int64_t> gemm_matrix(const Region& region, bool transposed) const;
  int64_t need_metadata(const Gemm& gemm, int64_t rows, int64_t kept) const;
  int64_t normalized_dim(int64_t dim, const Region& region, const char* what) const;
  const std::string& name_of(const TileRef& ref) const { return program_.buffer(ref.buffer).name; }

  TileProgram program_;
  int32_t launch_ = -1;
  Body top_;
  std::vector<Scope> scopes_;
  SourceLocation location_;
  std::map<std::tuple<std::string, int, int>, LocationId> location_ids_;
  std::unordered_map<VarId, Range> ranges_, ranges_of_any_extents_;
  std::optional<SourceLocation> abandoned_;
};

}  // namespace tilewright::ir
