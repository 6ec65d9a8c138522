// The language: tile programs in C++ that read line for line like their Python originals.
//
//   prim_func("name", {A, B, C}, [&] { for (auto [bx, by] : Kernel({gx, gy}, {.threads = 128})) { ... } });
//
// The function runs once, at build time; what it calls is recorded. The range of a tile loop opens and closes its
// scope, so its body runs once too. Ints of C++ are int32 (int64 where they do not fit), double is float32, as numbers
// of Python are.
//   Value x = A(i, j) + 1;   reads here and gives the value a name      (auto x = A(i, j) does not compile)
//   A(i, j) = x;             stores
//   auto v = alloc_var(i32, 0); v = v + 1;    a mutable scalar of each thread
#pragma once
#if __cplusplus < 202002L
#error "Tilewright's headers are C++20: compile with -std=c++20 or newer"
#endif
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "tilewright/dtype.h"
#include "tilewright/program.h"
#include "tilewright/run_time_only.h"

namespace tilewright {

namespace ir {
struct ExprNode;
}
using ExprPointer = std::shared_ptr<const ir::ExprNode>;
using Location = std::source_location;

// The result of an operator. It has no name and lives until the end of the full expression.
class Expression : public RunTimeOnly {
 public:
  Expression(const Expression&) = delete;
  template <class T>
  requires std::same_as<std::remove_cvref_t<T>, Expression> Expression(T&&) {
    static_assert(!std::same_as<T, T>,
                  "an expression has no name of its own: write 'Value x = ...' to evaluate it here");
  }
  Expression& operator=(const Expression&) = delete;
  const ExprPointer& node() const { return node_; }
  bool is_no_condition() const { return is_no_condition_; }
  static Expression&& make(ExprPointer node);  // in storage that outlives the full expression
  static Expression&& make_no_condition(ExprPointer operand);

 private:
  friend struct ExpressionStorage;
  Expression() = default;
  ExprPointer node_;
  bool is_no_condition_ = false;  // !, && or || of a float: said where the expression is used, which has a place
};

// What every operation takes: a number of C++, a Value, an element that is read here, a mutable scalar, an expression.
// Operators take no place of their own, so every operand knows the line on which it became one.
class Operand : public RunTimeOnly {
 public:
  Operand() = default;  // none
  Operand(const Value& value, Location at = Location::current());
  Operand(const Expression& value, Location at = Location::current())
      : node_(value.node()), at_(at), is_no_condition_(value.is_no_condition()) {}
  Operand(const Ref& element, Location at = Location::current());
  Operand(const Var& var, Location at = Location::current());
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T number, Location at = Location::current()) : Operand(from_number(number)) {
    at_ = at;
  }
  const ExprPointer& node() const { return node_; }
  const Location& at() const { return at_; }
  bool is_no_condition() const { return is_no_condition_; }

 private:
  explicit Operand(ExprPointer node) : node_(std::move(node)) {}
  template <class T>
  static Operand from_number(T number) {
    if constexpr (std::same_as<T, bool>) {
      return of_bool(number);
    } else if constexpr (std::integral<T>) {
      return of_int(static_cast<int64_t>(number));
    } else {
      return of_float(static_cast<double>(number));
    }
  }
  static Operand of_bool(bool value);
  static Operand of_int(int64_t value);
  static Operand of_float(double value);
  ExprPointer node_;
  Location at_;
  bool is_no_condition_ = false;
};

// An immutable value. Made from an expression, it is evaluated at this point of the program. Where it is assigned
// another it has a new name of C++ for the rest of the body, which runs once: that is refused in the loops and branches
// of the program that it was declared outside of, where only run time knows which value holds.
class Value : public RunTimeOnly {
 public:
  Value();
  Value(const Value& other);
  Value& operator=(const Value& other);
  Value& operator=(Value&& other);
  Value(const Expression& value, Location at = Location::current());
  Value(const Ref& element, Location at = Location::current());
  Value(const Var& var, Location at = Location::current());
  template <class T>
  requires std::is_arithmetic_v<T> Value(T number, Location at = Location::current())
      : Value(Operand(number).node(), at) {}
  explicit Value(ExprPointer node, Location at = Location::current());
  const ExprPointer& node() const { return node_; }
  DType dtype() const;
  template <class T>
  void operator+=(const T&) {
    does_not_change<T>();
  }
  template <class T>
  void operator-=(const T&) {
    does_not_change<T>();
  }
  template <class T>
  void operator*=(const T&) {
    does_not_change<T>();
  }
  template <class T>
  void operator/=(const T&) {
    does_not_change<T>();
  }
  template <size_t I>
  requires(I == 0) Value get()
  const { return *this; }  // for (auto [i] : Parallel(n))

 private:
  template <class T>
  static void does_not_change() {
    static_assert(!std::same_as<T, T>, "a Value does not change: write 'auto v = alloc_var(f32, x);', then 'v += 1'");
  }
  void set(const Value& other, const Location& at);
  ExprPointer node_;
  Location at_;       // where it became one
  size_t depth_ = 0;  // how many loops and branches were open
};

// begin:end of a dimension, and the whole of it.
struct Slice {
  Operand begin, end;
};
inline Slice slice(Operand begin, Operand end) { return {std::move(begin), std::move(end)}; }
inline constexpr struct All {
} all;
class Index {
 public:
  template <class T>
  requires std::convertible_to<const T&, Operand> Index(const T& index, Location at = Location::current())
      : begin_(index, at) {}
  Index(const Slice& s) : begin_(s.begin), end_(s.end), is_slice_(true) {}
  Index(All) : is_slice_(true) {}
  template <size_t N>
  Index(const std::array<Value, N>&) {
    static_assert(N == 0,
                  "a loop over several extents gives as many names: write 'for (auto [i, j] : Parallel(m, n))'");
  }

 private:
  friend struct TileAccess;
  Operand begin_, end_;
  bool is_slice_ = false;
};

// A buffer with indices: an element, the head of a tile, or a box if an index is a slice.
class Ref : public RunTimeOnly {
 public:
  Ref(uint32_t buffer, std::initializer_list<Index> indices, Location at);
  Ref(const Ref&) = delete;
  template <class T>
  requires std::same_as<std::remove_cvref_t<T>, Ref> Ref(T&&) {
    static_assert(!std::same_as<T, T>,
                  "write 'Value x = A(i, j);' to read the element here, 'Region r = A(...);' to name a box");
  }
  static Ref&& make(uint32_t buffer, std::initializer_list<Index> indices, Location at);

  const Ref& operator=(const Operand& value) const;
  const Ref& operator=(const Ref& value) const { return *this = Operand(value); }
  const Ref& operator+=(const Operand& value) const;
  const Ref& operator-=(const Operand& value) const;
  const Ref& operator*=(const Operand& value) const;
  const Ref& operator/=(const Operand& value) const;
  const Ref& operator|=(const Operand& value) const;
  const Ref& operator&=(const Operand& value) const;
  const Ref& operator^=(const Operand& value) const;
  template <class T>
  Ref&& operator[](const T&) const {
    return Brackets::of<T, Ref>();
  }

 private:
  friend class Region;
  friend class Operand;
  friend struct RefStorage;
  friend struct TileAccess;
  Ref() = default;
  uint32_t buffer_ = 0;
  std::vector<Index> indices_;
  Location at_;
};

// A buffer of the program being built. Copies are the same buffer.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(uint32_t id) : id_(id) {}
  Ref&& operator()(Index i, Location at = Location::current()) const { return Ref::make(id(at), {i}, at); }
  Ref&& operator()(Index i, Index j, Location at = Location::current()) const { return Ref::make(id(at), {i, j}, at); }
  Ref&& operator()(Index i, Index j, Index k, Location at = Location::current()) const {
    return Ref::make(id(at), {i, j, k}, at);
  }
  Ref&& operator()(Index i, Index j, Index k, Index l, Location at = Location::current()) const {
    return Ref::make(id(at), {i, j, k, l}, at);
  }
  Ref&& operator()(Index i, Index j, Index k, Index l, Index m, Location at = Location::current()) const {
    return Ref::make(id(at), {i, j, k, l, m}, at);
  }
  template <class T>
  Ref&& operator[](const T&) const {
    return Brackets::of<T, Ref>();
  }
  Value shape(int dim, Location at = Location::current()) const;
  DType dtype(Location at = Location::current()) const;
  uint32_t id(Location at = Location::current()) const;
  struct Declaration;  // a parameter before it belongs to a program

 protected:
  std::shared_ptr<Declaration> declaration_;

 private:
  uint32_t id_ = UINT32_MAX;
};

// A tensor parameter: row-major and compact.
class Tensor : public Buffer {
 public:
  Tensor(std::string name, std::initializer_list<Operand> shape, DType dtype = f32, Location at = Location::current());

 protected:
  friend class Parameter;
  Tensor(std::string name, std::vector<Operand> shape, std::vector<Operand> strides, DType dtype, Location at);
};
// A tensor parameter with strides of its own, in elements.
class StridedTensor : public Tensor {
 public:
  StridedTensor(std::string name, std::initializer_list<Operand> shape, std::initializer_list<Operand> strides,
                DType dtype = f32, Location at = Location::current());
};

// A mutable scalar of each thread. Copies are the same variable; `v = e` stores.
class Var : public RunTimeOnly {
 public:
  explicit Var(uint32_t buffer) : buffer_(buffer) {}
  Var(const Var&) = default;
  const Var& operator=(const Operand& value) const { return store(value); }
  const Var& operator=(const Var& value) const { return store(Operand(value)); }
  const Var& operator+=(const Operand& value) const;
  const Var& operator-=(const Operand& value) const;
  const Var& operator*=(const Operand& value) const;
  const Var& operator/=(const Operand& value) const;
  const Var& operator|=(const Operand& value) const;
  const Var& operator&=(const Operand& value) const;
  const Var& operator^=(const Operand& value) const;
  uint32_t id() const { return buffer_; }

 private:
  const Var& store(const Operand& value) const;
  uint32_t buffer_;
};

// A named box of a buffer.
class Region {
 public:
  Region(const Ref& ref) : buffer_(ref.buffer_), indices_(ref.indices_), at_(ref.at_) {}

 private:
  friend struct TileAccess;
  uint32_t buffer_;
  std::vector<Index> indices_;
  Location at_;
};
// What a tile op takes: a whole buffer, or a reference.
class Tile {
 public:
  Tile(const Buffer& buffer, Location at = Location::current()) : buffer_(buffer.id(at)) {}
  Tile(const Var& var) : buffer_(var.id()) {}
  Tile(const Ref& ref) : region_(ref) {}
  Tile(const Region& region) : region_(region) {}

 private:
  friend struct TileAccess;
  uint32_t buffer_ = 0;
  std::optional<Region> region_;
};

// ---- programs
// --------------------------------------------------------------------------------------------------------

class Parameter {
 public:
  Parameter(const Tensor& tensor) : tensor_(tensor.declaration_) {}
  Parameter(const Value& scalar) : scalar_(scalar.node()) {}

 private:
  friend Program prim_func(std::string, std::initializer_list<Parameter>, const std::function<void()>&, Location);
  std::shared_ptr<Buffer::Declaration> tensor_;
  ExprPointer scalar_;
};
// A dimension known only at the call, solved from the shapes of the arguments.
Value dynamic(std::string name, DType dtype = i32);
// A scalar parameter.
Value Scalar(std::string name, DType dtype);
Program prim_func(std::string name, std::initializer_list<Parameter> parameters, const std::function<void()>& body,
                  Location at = Location::current());
// Options of the program being built.
void set_contract(bool contract, Location at = Location::current());  // a * b + c as one fma; on by default
void set_fast_math(bool fast, Location at = Location::current());
void set_tf32(bool tf32, Location at = Location::current());  // gemms of float32 read 10 bits of mantissas

// ---- loops: the range opens a scope, its end closes it
// -----------------------------------------------------------------

class ScopeGuard {  // reports a scope that was left by break
 public:
  ScopeGuard(int closes, Location at);
  ScopeGuard(const ScopeGuard&) = delete;
  ~ScopeGuard();
  void close();

 private:
  int closes_;  // scopes, or -1 for a launch
  Location at_;
  int exceptions_;
  bool open_ = true;
};
template <size_t N>
class ScopeRange {
 public:
  ScopeRange(std::vector<ExprPointer> values, int closes, Location at)
      : values_(std::move(values)), guard_(std::make_unique<ScopeGuard>(closes, at)) {}
  struct Iterator {
    ScopeRange* range;
    bool done;
    auto operator*() const { return range->values(std::make_index_sequence<N>()); }
    Iterator& operator++() {
      range->guard_->close();
      done = true;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return done != other.done; }
  };
  Iterator begin() { return {this, false}; }
  Iterator end() { return {this, true}; }

 private:
  template <size_t... I>
  auto values(std::index_sequence<I...>) const {
    if constexpr (N == 1) {
      return Value(values_[0]);
    } else {
      return std::array<Value, N>{Value(values_[I])...};
    }
  }
  std::vector<ExprPointer> values_;
  std::unique_ptr<ScopeGuard> guard_;
};

class Threads {
 public:
  Threads(int64_t x) : extents{x} {}
  Threads(std::initializer_list<int64_t> list) : extents(list) {}
  std::vector<int64_t> extents;
};
struct KernelOptions {
  Threads threads = 128;
  std::vector<int64_t> cluster_dims = {};
};
std::vector<ExprPointer> open_kernel(std::vector<Operand> grid, const KernelOptions& options, Location at);
template <size_t N>
ScopeRange<N> Kernel(const Operand (&grid)[N], KernelOptions options = {}, Location at = Location::current()) {
  return {open_kernel({grid, grid + N}, options, at), -1, at};
}
inline ScopeRange<1> Kernel(const Operand& blocks, KernelOptions options = {}, Location at = Location::current()) {
  return {open_kernel({blocks}, options, at), -1, at};
}

std::vector<ExprPointer> open_parallel(std::vector<Operand> extents, Location at);
inline ScopeRange<1> Parallel(Operand i, Location at = Location::current()) { return {open_parallel({i}, at), 1, at}; }
inline ScopeRange<2> Parallel(Operand i, Operand j, Location at = Location::current()) {
  return {open_parallel({i, j}, at), 1, at};
}
inline ScopeRange<3> Parallel(Operand i, Operand j, Operand k, Location at = Location::current()) {
  return {open_parallel({i, j, k}, at), 1, at};
}
inline ScopeRange<4> Parallel(Operand i, Operand j, Operand k, Operand l, Location at = Location::current()) {
  return {open_parallel({i, j, k, l}, at), 1, at};
}

struct PipelineOptions {
  int64_t num_stages = 0;
  std::vector<int64_t> order = {}, stage = {};
};
ScopeRange<1> Pipelined(const Operand& extent, PipelineOptions options = {}, Location at = Location::current());
ScopeRange<1> Pipelined(const Operand& start, const Operand& stop, PipelineOptions options = {},
                        Location at = Location::current());
ScopeRange<1> serial(const Operand& stop, Location at = Location::current());
ScopeRange<1> serial(const Operand& start, const Operand& stop, Location at = Location::current());
ScopeRange<1> serial(const Operand& start, const Operand& stop, const Operand& step, Location at = Location::current());
ScopeRange<1> unroll(const Operand& stop, Location at = Location::current());
ScopeRange<1> unroll(const Operand& start, const Operand& stop, Location at = Location::current());
ScopeRange<1> vectorized(const Operand& stop, Location at = Location::current());
std::vector<ExprPointer> open_persistent(std::vector<Operand> domain, const Operand& wave_size, const Operand& index,
                                         int64_t group, Location at);
// Worker `index` of `wave_size` takes its share of the points of a box, grouped along the last dimension.
template <size_t N>
ScopeRange<N> Persistent(const Operand (&domain)[N], const Operand& wave_size, const Operand& index,
                         int64_t group_size = 8, Location at = Location::current()) {
  return {open_persistent({domain, domain + N}, wave_size, index, group_size, at), 1, at};
}

using Block = std::function<void()>;
class IfChain {
 public:
  void Else(const Block& body, Location at = Location::current()) const;
  IfChain ElseIf(const Operand& condition, const Block& body, Location at = Location::current()) const;

  IfChain(const IfChain&) = delete;
  ~IfChain();

 private:
  friend IfChain If(const Operand&, const Block&, Location);
  explicit IfChain(int depth) : depth_(depth) {}
  mutable int depth_;  // else sides that are open around the last if
};
IfChain If(const Operand& condition, const Block& body, Location at = Location::current());
void While(const Operand& condition, const Block& body, Location at = Location::current());
// The body on these groups of 128 threads; on the threads [begin, end).
void ws(std::initializer_list<int64_t> groups, const Block& body, Location at = Location::current());
void on_threads(int64_t begin, int64_t end, const Block& body, Location at = Location::current());
void break_loop(Location at = Location::current());
void continue_loop(Location at = Location::current());
void thread_return(Location at = Location::current());

// ---- buffers
// ---------------------------------------------------------------------------------------------------------

// Names default to those of the C++ variables they initialize.
Buffer alloc_shared(std::initializer_list<Operand> shape, DType dtype, std::string name = {},
                    Location at = Location::current());
Buffer alloc_fragment(std::initializer_list<Operand> shape, DType dtype, std::string name = {},
                      Location at = Location::current());
Buffer alloc_local(std::initializer_list<Operand> shape, DType dtype, std::string name = {},
                   Location at = Location::current());
Buffer alloc_global(std::initializer_list<Operand> shape, DType dtype, std::string name = {},
                    Location at = Location::current());
Var alloc_var(DType dtype, Location at = Location::current());
Var alloc_var(DType dtype, const Operand& init, Location at = Location::current());
enum class ReducerOp : uint8_t { Sum, Max, Min };
Buffer alloc_reducer(std::initializer_list<Operand> shape, DType dtype, ReducerOp op = ReducerOp::Sum,
                     std::string name = {}, Location at = Location::current());
Buffer alloc_barrier(std::initializer_list<int64_t> arrive_counts, Location at = Location::current());
Buffer make_tensor(const Operand& address, std::initializer_list<Operand> shape, DType dtype,
                   Location at = Location::current());
Buffer reshape(const Buffer& buffer, std::initializer_list<Operand> shape, Location at = Location::current());
Buffer view(const Buffer& buffer, std::initializer_list<Operand> shape, DType dtype, Location at = Location::current());

class Layout {
 public:
  static Layout linear() { return Layout(Kind::Linear); }
  // (i, j, ...) -> index, or for a fragment {thread, index}.
  Layout(std::function<std::vector<Operand>(const std::vector<Value>&)> forward, int64_t replicate = 1)
      : kind(Kind::Function), forward(std::move(forward)), replicate(replicate) {}
  enum class Kind : uint8_t { Linear, Swizzled, Function } kind;
  std::function<std::vector<Operand>(const std::vector<Value>&)> forward;
  int64_t replicate = 1;

 private:
  friend Layout make_swizzled_layout(const Buffer& buffer);
  explicit Layout(Kind k) : kind(k) {}
};
Layout make_swizzled_layout(const Buffer& buffer);
void annotate_layout(const Buffer& buffer, const Layout& layout, Location at = Location::current());
void annotate_safe_value(const Buffer& buffer, const Operand& value, Location at = Location::current());
// Lines that the launch's plan for a GPU is to have, one a line, as `tilewright compile --stage plan` prints them:
// "ring A_shared, B_shared slots=4". What cannot be had is refused where the GPU's code is made (TW8206).
void annotate_plan(const std::string& lines, Location at = Location::current());
void use_swizzle(int64_t panel_size, const std::string& order = "row", Location at = Location::current());

// ---- tile ops
// --------------------------------------------------------------------------------------------------------

struct CopyOptions {
  std::string prefer_instruction = {};
};
void copy(const Tile& from, const Tile& to, CopyOptions options = {}, Location at = Location::current());
// From this block's shared memory or fragments to the tile of that block of the cluster, where `remote_barrier` gets
// one arrival when all is there; without one, cluster_sync() says so.
void copy_cluster(const Tile& from, const Tile& to, const Operand& dst_block, Location at = Location::current());
void copy_cluster(const Tile& from, const Tile& to, const Operand& dst_block, const Tile& remote_barrier,
                  Location at = Location::current());
void cluster_sync(Location at = Location::current());
// Both halves of it: between them a block may do what needs no other.
void cluster_arrive(Location at = Location::current());
void cluster_wait(Location at = Location::current());
void fill(const Tile& to, const Operand& value, Location at = Location::current());
void clear(const Tile& to, Location at = Location::current());
enum class GemmWarpPolicy : uint8_t { Square, FullRow, FullCol };
struct GemmOptions {
  bool transpose_A = false, transpose_B = false;
  GemmWarpPolicy policy = GemmWarpPolicy::Square;
  Operand clear_accum = {};
};
void gemm(const Tile& A, const Tile& B, const Tile& C, GemmOptions options = {}, Location at = Location::current());
// C += A B, where A_sparse holds two of each four elements of a row of A (one of two of float32), and each row of E has
// four bits a group that say which: their positions, two bits each, ascending (of float32: 0x4 the first, 0xe the
// second).
struct SparseGemmOptions {
  bool transpose_A = false, transpose_E = false, transpose_B = false;
  GemmWarpPolicy policy = GemmWarpPolicy::Square;
  Operand clear_accum = {};
};
void gemm_sp(const Tile& A_sparse, const Tile& E, const Tile& B, const Tile& C, SparseGemmOptions options = {},
             Location at = Location::current());
struct ReduceOptions {
  int64_t dim = -1;
  bool clear = true;
  bool nan_propagate = false;  // max, min, absmax
};
void reduce_sum(const Tile& from, const Tile& to, ReduceOptions options = {}, Location at = Location::current());
void reduce_max(const Tile& from, const Tile& to, ReduceOptions options = {}, Location at = Location::current());
void reduce_min(const Tile& from, const Tile& to, ReduceOptions options = {}, Location at = Location::current());
void reduce_abssum(const Tile& from, const Tile& to, ReduceOptions options = {}, Location at = Location::current());
void reduce_absmax(const Tile& from, const Tile& to, ReduceOptions options = {}, Location at = Location::current());
void reduce_bitand(const Tile& from, const Tile& to, ReduceOptions options = {}, Location at = Location::current());
void reduce_bitor(const Tile& from, const Tile& to, ReduceOptions options = {}, Location at = Location::current());
void reduce_bitxor(const Tile& from, const Tile& to, ReduceOptions options = {}, Location at = Location::current());
struct ScanOptions {
  int64_t dim = 0;
  bool reverse = false;
};
void cumsum(const Tile& from, const Tile& to, ScanOptions options = {}, Location at = Location::current());
void cummax(const Tile& from, const Tile& to, ScanOptions options = {}, Location at = Location::current());
void finalize_reducer(const Buffer& reducer, Location at = Location::current());
struct Im2colOptions {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
};
void im2col(const Buffer& image, const Tile& to, const Operand& nhw_step, const Operand& c_step, Im2colOptions options,
            Location at = Location::current());

// ---- atomics
// ---------------------------------------------------------------------------------------------------------

struct AtomicOptions {
  bool return_prev = false;  // then the result is the old value
};
Expression&& atomic_add(const Ref& to, const Operand& value, AtomicOptions options = {},
                        Location at = Location::current());
Expression&& atomic_max(const Ref& to, const Operand& value, AtomicOptions options = {},
                        Location at = Location::current());
Expression&& atomic_min(const Ref& to, const Operand& value, AtomicOptions options = {},
                        Location at = Location::current());
Expression&& atomic_and(const Ref& to, const Operand& value, AtomicOptions options = {},
                        Location at = Location::current());
Expression&& atomic_or(const Ref& to, const Operand& value, AtomicOptions options = {},
                       Location at = Location::current());
Expression&& atomic_xor(const Ref& to, const Operand& value, AtomicOptions options = {},
                        Location at = Location::current());
Expression&& atomic_exchange(const Ref& to, const Operand& value, Location at = Location::current());
Expression&& atomic_cas(const Ref& to, const Operand& compare, const Operand& value, Location at = Location::current());
Expression&& atomic_load(const Ref& from, Location at = Location::current());
void atomic_store(const Ref& to, const Operand& value, Location at = Location::current());
void atomic_add(const Tile& to, const Buffer& from, Location at = Location::current());
void atomic_max(const Tile& to, const Buffer& from, Location at = Location::current());
void atomic_min(const Tile& to, const Buffer& from, Location at = Location::current());

// ---- threads, warps, order
// -------------------------------------------------------------------------------------------

Value get_thread_binding(int dim = 0, Location at = Location::current());
Value get_block_binding(int dim = 0, Location at = Location::current());
Expression&& get_lane_idx(Location at = Location::current());
Expression&& get_warp_idx(Location at = Location::current());
Expression&& shfl_sync(const Operand& value, const Operand& lane, int64_t width = 32,
                       Location at = Location::current());
Expression&& shfl_up(const Operand& value, const Operand& delta, int64_t width = 32, Location at = Location::current());
Expression&& shfl_down(const Operand& value, const Operand& delta, int64_t width = 32,
                       Location at = Location::current());
Expression&& shfl_xor(const Operand& value, const Operand& mask, int64_t width = 32, Location at = Location::current());
Expression&& any_sync(const Operand& predicate, Location at = Location::current());
Expression&& all_sync(const Operand& predicate, Location at = Location::current());
Expression&& ballot_sync(const Operand& predicate, Location at = Location::current());
Expression&& match_any_sync(const Operand& value, Location at = Location::current());
Expression&& match_all_sync(const Operand& value, Location at = Location::current());
Expression&& activemask(Location at = Location::current());
Expression&& syncthreads_and(const Operand& predicate, Location at = Location::current());
Expression&& syncthreads_or(const Operand& predicate, Location at = Location::current());
Expression&& syncthreads_count(const Operand& predicate, Location at = Location::current());
// Over the whole warp; every lane gets the result.
Expression&& warp_reduce_sum(const Operand& value, Location at = Location::current());
Expression&& warp_reduce_max(const Operand& value, Location at = Location::current());
Expression&& warp_reduce_min(const Operand& value, Location at = Location::current());
void sync_warp(Location at = Location::current());
void sync_threads(Location at = Location::current());
void sync_threads(const Operand& barrier_id, int64_t arrive_count, Location at = Location::current());
void named_barrier_arrive(const Operand& barrier_id, int64_t arrive_count, Location at = Location::current());
void sync_grid(Location at = Location::current());
// Programmatic dependent launch. A kernel that waits may begin before those before it have ended, where they let it or
// are done; before the wait it touches nothing that they do. Elsewhere than on an sm_90 there is nothing to do.
void pdl_sync(Location at = Location::current());
void pdl_trigger(Location at = Location::current());
void barrier_arrive(const Tile& barrier, Location at = Location::current());
// Each warp once, when all its threads have come.
void barrier_arrive_by_warps(const Tile& barrier, Location at = Location::current());
void barrier_wait(const Tile& barrier, const Operand& parity, Location at = Location::current());
void mbarrier_expect_tx(const Tile& barrier, const Operand& bytes, Location at = Location::current());
void mbarrier_arrive_expect_tx(const Tile& barrier, const Operand& bytes, Location at = Location::current());
// Without waiting. A load tells `barrier` the bytes when they have arrived; a store joins the queue of bulk stores.
void tma_copy(const Tile& from, const Tile& to, const Tile& barrier, Location at = Location::current());
void tma_store(const Tile& from, const Tile& to, Location at = Location::current());
void tma_store_wait(int64_t pending = 0, Location at = Location::current());
void async_copy(const Tile& from, const Tile& to, Location at = Location::current());
void cp_async_wait(int64_t pending, Location at = Location::current());
void wgmma_gemm(const Tile& A, const Tile& B, const Tile& C, GemmOptions options = {},
                Location at = Location::current());
void wait_wgmma(int64_t pending, Location at = Location::current());
void fence_proxy_async(Location at = Location::current());
void set_max_nreg(int64_t registers, Location at = Location::current());

// ---- scalars
// ---------------------------------------------------------------------------------------------------------

Expression&& operator+(const Operand& a, const Operand& b);
Expression&& operator-(const Operand& a, const Operand& b);
Expression&& operator*(const Operand& a, const Operand& b);
Expression&& operator/(const Operand& a, const Operand& b);  // floats; floordiv() divides integers
Expression&& operator%(const Operand& a, const Operand& b);  // floor, as Python
Expression&& operator&(const Operand& a, const Operand& b);
Expression&& operator|(const Operand& a, const Operand& b);
Expression&& operator^(const Operand& a, const Operand& b);
Expression&& operator<<(const Operand& a, const Operand& b);
Expression&& operator>>(const Operand& a, const Operand& b);
Expression&& operator==(const Operand& a, const Operand& b);
Expression&& operator!=(const Operand& a, const Operand& b);
Expression&& operator<(const Operand& a, const Operand& b);
Expression&& operator<=(const Operand& a, const Operand& b);
Expression&& operator>(const Operand& a, const Operand& b);
Expression&& operator>=(const Operand& a, const Operand& b);
Expression&& operator&&(const Operand& a, const Operand& b);
Expression&& operator||(const Operand& a, const Operand& b);
Expression&& operator!(const Operand& a);
// Nearer than the operators of bool, which RunTimeOnly is turned into to be refused. An operand without a place.
template <OfTheProgram A, class B>
requires std::convertible_to<const B&, Operand> Expression && operator&&(const A& a, const B& b) {
  return Operand(a, Location{}) && Operand(b, Location{});
}
template <class A, OfTheProgram B>
requires std::is_arithmetic_v<A> Expression && operator&&(const A& a, const B& b) {
  return Operand(a, Location{}) && Operand(b, Location{});
}
template <OfTheProgram A, class B>
requires std::convertible_to<const B&, Operand> Expression && operator||(const A& a, const B& b) {
  return Operand(a, Location{}) || Operand(b, Location{});
}
template <class A, OfTheProgram B>
requires std::is_arithmetic_v<A> Expression && operator||(const A& a, const B& b) {
  return Operand(a, Location{}) || Operand(b, Location{});
}
template <OfTheProgram T>
Expression&& operator!(const T& a) {
  return !Operand(a, Location{});
}
Expression&& operator~(const Operand& a);
Expression&& operator-(const Operand& a);

Expression&& floordiv(const Operand& a, const Operand& b);
Expression&& floormod(const Operand& a, const Operand& b);
Expression&& truncdiv(const Operand& a, const Operand& b);
Expression&& truncmod(const Operand& a, const Operand& b);
Expression&& ceildiv(const Operand& a, const Operand& b);
constexpr int64_t ceildiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
Expression&& max(const Operand& a, const Operand& b);
Expression&& min(const Operand& a, const Operand& b);
Expression&& clamp(const Operand& x, const Operand& low, const Operand& high);
Expression&& if_then_else(const Operand& condition, const Operand& a, const Operand& b);
Expression&& cast(const Operand& value, DType dtype);
Expression&& reinterpret(const Operand& value, DType dtype);
Expression&& infinity(DType dtype, Location at = Location::current());
Expression&& max_value(DType dtype);
Expression&& min_value(DType dtype);
Expression&& address_of(const Ref& element);
// Any function of the scalar table by its name: call("exp2", x).
Expression&& scalar_function(const std::string& name, std::initializer_list<Operand> args,
                             Location at = Location::current());
inline Expression&& exp(const Operand& x) { return scalar_function("exp", {x}); }
inline Expression&& exp2(const Operand& x) { return scalar_function("exp2", {x}); }
inline Expression&& exp10(const Operand& x) { return scalar_function("exp10", {x}); }
inline Expression&& expm1(const Operand& x) { return scalar_function("expm1", {x}); }
inline Expression&& log(const Operand& x) { return scalar_function("log", {x}); }
inline Expression&& log2(const Operand& x) { return scalar_function("log2", {x}); }
inline Expression&& log10(const Operand& x) { return scalar_function("log10", {x}); }
inline Expression&& log1p(const Operand& x) { return scalar_function("log1p", {x}); }
inline Expression&& sin(const Operand& x) { return scalar_function("sin", {x}); }
inline Expression&& cos(const Operand& x) { return scalar_function("cos", {x}); }
inline Expression&& tan(const Operand& x) { return scalar_function("tan", {x}); }
inline Expression&& asin(const Operand& x) { return scalar_function("asin", {x}); }
inline Expression&& acos(const Operand& x) { return scalar_function("acos", {x}); }
inline Expression&& atan(const Operand& x) { return scalar_function("atan", {x}); }
inline Expression&& sinh(const Operand& x) { return scalar_function("sinh", {x}); }
inline Expression&& cosh(const Operand& x) { return scalar_function("cosh", {x}); }
inline Expression&& tanh(const Operand& x) { return scalar_function("tanh", {x}); }
inline Expression&& asinh(const Operand& x) { return scalar_function("asinh", {x}); }
inline Expression&& acosh(const Operand& x) { return scalar_function("acosh", {x}); }
inline Expression&& atanh(const Operand& x) { return scalar_function("atanh", {x}); }
inline Expression&& erf(const Operand& x) { return scalar_function("erf", {x}); }
inline Expression&& sqrt(const Operand& x) { return scalar_function("sqrt", {x}); }
inline Expression&& rsqrt(const Operand& x) { return scalar_function("rsqrt", {x}); }
inline Expression&& sigmoid(const Operand& x) { return scalar_function("sigmoid", {x}); }
inline Expression&& abs(const Operand& x) { return scalar_function("abs", {x}); }
inline Expression&& floor(const Operand& x) { return scalar_function("floor", {x}); }
inline Expression&& ceil(const Operand& x) { return scalar_function("ceil", {x}); }
inline Expression&& trunc(const Operand& x) { return scalar_function("trunc", {x}); }
inline Expression&& round(const Operand& x) { return scalar_function("round", {x}); }
inline Expression&& nearbyint(const Operand& x) { return scalar_function("nearbyint", {x}); }
inline Expression&& isnan(const Operand& x) { return scalar_function("isnan", {x}); }
inline Expression&& isinf(const Operand& x) { return scalar_function("isinf", {x}); }
inline Expression&& isfinite(const Operand& x) { return scalar_function("isfinite", {x}); }
inline Expression&& popcount(const Operand& x) { return scalar_function("popcount", {x}); }
inline Expression&& clz(const Operand& x) { return scalar_function("clz", {x}); }
inline Expression&& pow(const Operand& x, const Operand& y) { return scalar_function("pow", {x, y}); }
inline Expression&& fmod(const Operand& x, const Operand& y) { return scalar_function("fmod", {x, y}); }
inline Expression&& atan2(const Operand& y, const Operand& x) { return scalar_function("atan2", {y, x}); }
inline Expression&& copysign(const Operand& x, const Operand& y) { return scalar_function("copysign", {x, y}); }
Expression&& fma(const Operand& a, const Operand& b, const Operand& c);

// ---- checks and output
// -----------------------------------------------------------------------------------------------

void assume(const Operand& condition, Location at = Location::current());
void device_assert(const Operand& condition, std::string message = {}, Location at = Location::current());
void print(const Operand& value, std::string message = {}, Location at = Location::current());
void print(const Buffer& buffer, std::string message = {}, Location at = Location::current());
void print(std::string message, Location at = Location::current());

}  // namespace tilewright

template <>
struct std::tuple_size<tilewright::Value> : std::integral_constant<size_t, 1> {};
template <>
struct std::tuple_element<0, tilewright::Value> {
  using type = tilewright::Value;
};

namespace tw = tilewright;

#include "tilewright/std_functions.h"
