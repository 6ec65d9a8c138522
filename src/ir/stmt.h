// Statements: the closed set of what a program can do. Each struct lists its fields once; printing, parsing, equality,
// walking and rewriting read that list. `level` says on which stages of the road the node is legal.
//
// The SPMD rule. Every thread of the block executes the body of a launch. Scalar statements (Let, Store, If, ...) are
// per thread. A tile op (Copy, Gemm, Reduce, ...) is a collective of its executing set: the block, or the threads of
// the enclosing Role. A store or atomic whose operands and control flow are uniform over the executing set happens
// once.
#pragma once
#include <concepts>
#include <optional>
#include <string>

#include "ir/expr.h"

namespace tilewright::ir {

// A box of a buffer: min[d] <= index[d] < min[d] + extent[d].
struct Region {
  BufferId buffer;
  std::vector<Expr> min, extent;
  bool valid() const { return buffer.valid(); }
  static void fields(auto& n, auto&& f) { f("buffer", n.buffer), f("min", n.min), f("extent", n.extent); }
};
// One element. An invalid buffer means none.
struct Element {
  BufferId buffer;
  std::vector<Expr> indices;
  bool valid() const { return buffer.valid(); }
  static void fields(auto& n, auto&& f) { f("buffer", n.buffer), f("indices", n.indices); }
};

// What is not done when its statement is; groups of a queue are waited for in order. A copy of the queue prefetch is
// none: it only says that this will be read soon. One of st_async has no groups: it goes to another block of the
// cluster, and a barrier of that block receives the bytes.
enum class Queue : uint8_t { None, CpAsync, Wgmma, BulkStore, Prefetch, StAsync };

// ---- Any level
// -------------------------------------------------------------------------------------------------------

struct Let {  // binds an immutable variable to the value at this point
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "let";
  VarId var;
  Expr value;
  static void fields(auto& n, auto&& f) { f("var", n.var), f("value", n.value); }
};
// The value has the buffer's type; out of bounds in global memory is dropped. With the queue cp_async, the value being
// an element of global memory or zero, it may be there as late as when this thread has waited for the queue.
struct Store {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "store";
  Element to;
  Expr value;
  Queue queue = Queue::None;
  static void fields(auto& n, auto&& f) { f("to", n.to), f("value", n.value), f("queue", n.queue); }
};
enum class AtomicOp : uint8_t { Add, Max, Min, And, Or, Xor, Exchange, CompareExchange, Load, Store };
// Whether elements of this type have the atomic, on every engine.
bool has_atomic(AtomicOp op, DType type);
enum class MemoryOrder : uint8_t { Relaxed, Acquire, Release, AcquireRelease, SequentiallyConsistent };
struct Atomic {  // a reducer's `acc[i] += v` is an Atomic too: every point contributes once
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "atomic";
  AtomicOp op = AtomicOp::Add;
  Element to;
  Expr value;    // none for Load
  Expr compare;  // CompareExchange only
  VarId result;  // the old value, if wanted
  MemoryOrder order = MemoryOrder::Relaxed;
  bool each = false;  // every thread that comes by does it, also where its operands are the same for all
  static void fields(auto& n, auto&& f) {
    f("op", n.op), f("to", n.to), f("value", n.value), f("compare", n.compare), f("result", n.result),
        f("order", n.order), f("each", n.each);
  }
};
enum class ShuffleKind : uint8_t { Index, Up, Down, Xor };
struct Shuffle {  // the value of another lane of the warp; Up and Down give the own value past the end of the group
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "shuffle";
  ShuffleKind kind = ShuffleKind::Index;
  VarId result;
  Expr value, lane;
  int64_t width = 32;      // lanes form groups of this power of two
  bool converged = false;  // Thread level: all lanes of the warp come by together
  static void fields(auto& n, auto&& f) {
    f("kind", n.kind), f("result", n.result), f("value", n.value), f("lane", n.lane), f("width", n.width),
        f("converged", n.converged);
  }
};
enum class VoteKind : uint8_t {
  Any,
  All,
  Ballot,      // over the executing lanes of the warp, of a bool; Ballot gives uint32
  MatchAny,    // uint32: the executing lanes whose value equals mine
  MatchAll,    // uint32: the executing lanes if all values are equal, else 0
  ActiveMask,  // uint32: the executing lanes
  BlockAny,
  BlockAll,    // over the block, with a block barrier, of a bool
  BlockCount,  // int32: how many threads of the block are true
};
struct Vote {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "vote";
  VoteKind kind = VoteKind::Any;
  VarId result;
  Expr value;              // none for ActiveMask
  bool converged = false;  // as in Shuffle
  static void fields(auto& n, auto&& f) {
    f("kind", n.kind), f("result", n.result), f("value", n.value), f("converged", n.converged);
  }
};
struct Call {  // the one escape hatch: text of the user's with declared effects
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "call";
  std::string function;
  std::string source;  // text that defines it, or empty when the target does
  std::vector<Expr> args;
  std::vector<Region> reads, writes;
  VarId result;
  static void fields(auto& n, auto&& f) {
    f("function", n.function), f("source", n.source), f("args", n.args), f("reads", n.reads), f("writes", n.writes),
        f("result", n.result);
  }
};
enum class LoopKind : uint8_t { Serial, Unroll, Vectorized, Pipelined, Grid /* over blocks: beside or in turn */ };
struct For {  // var = begin, begin + 1, ..., begin + extent - 1
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "for";
  VarId var;
  Expr begin, extent;
  LoopKind kind = LoopKind::Serial;
  int64_t stages = 0;                 // Pipelined
  int64_t factor = 0;                 // Unroll: iterations at a time; 0: all
  int64_t lanes = 0;                  // Vectorized, loop level: iterations of a vector of ours; 0: the compiler's
  std::vector<int64_t> order, stage;  // Pipelined, of the effectful statements; empty: ours to choose
  Body body;
  static void fields(auto& n, auto&& f) {
    f("var", n.var), f("begin", n.begin), f("extent", n.extent), f("kind", n.kind), f("stages", n.stages),
        f("factor", n.factor), f("lanes", n.lanes), f("order", n.order), f("stage", n.stage), f("body", n.body);
  }
};
struct While {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "while";
  Expr condition;
  Body body;
  static void fields(auto& n, auto&& f) { f("condition", n.condition), f("body", n.body); }
};
struct If {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "if";
  Expr condition;
  Body then_body, else_body;
  static void fields(auto& n, auto&& f) {
    f("condition", n.condition), f("then_body", n.then_body), f("else_body", n.else_body);
  }
};
struct Break {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "break";
  static void fields(auto&, auto&&) {}
};
struct Continue {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "continue";
  static void fields(auto&, auto&&) {}
};
struct Return {  // the thread is done with this launch
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "return";
  static void fields(auto&, auto&&) {}
};
struct Print {  // scalars per thread, or a whole buffer once
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "print";
  std::string message;
  std::vector<Expr> values;
  BufferId buffer;
  std::vector<Expr> place = {};  // Loop level: coordinates of the block, then of the thread
  static void fields(auto& n, auto&& f) {
    f("message", n.message), f("values", n.values), f("buffer", n.buffer), f("place", n.place);
  }
};
struct Assert {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "assert";
  Expr condition;
  std::string message;
  std::vector<Expr> place = {};  // as in Print
  static void fields(auto& n, auto&& f) { f("condition", n.condition), f("message", n.message), f("place", n.place); }
};
struct Assume {  // a fact the user vouches for; the interpreter checks it
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "assume";
  Expr condition;
  static void fields(auto& n, auto&& f) { f("condition", n.condition); }
};

// ---- Tile level: collectives
// -----------------------------------------------------------------------------------------

// A collective with a rule of its own in the verifier, a meaning and a lowering for each kind of engine: functions that
// are declared once for all tile ops, and specialized in a file of the op's. CONTRIBUTING.md lists the places.
template <class Op>
concept TileOp = requires {
  requires Op::tile_op;
};

// How an asynchronous op says that it is done.
struct Completion {  // default: immediate, the effect is visible to all threads when the statement is done
  Queue queue = Queue::None;
  Element barrier;  // an mbarrier that receives the bytes
  static void fields(auto& n, auto&& f) { f("queue", n.queue), f("barrier", n.barrier); }
  bool immediate() const { return queue == Queue::None && !barrier.valid(); }
};
enum class Combine : uint8_t { None, Add, Max, Min };  // anything but None updates the destination atomically
AtomicOp atomic_op_of(Combine combine);
// Patches of an NHWC image as rows of a matrix: element (i, j) of the destination tile is row block * rows + i, that is
// output pixel (n, oh, ow), and column k_block * columns + j, that is (kh, kw, c), of the patch matrix.
struct Im2col {
  Expr row_block, column_block;
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
  bool present() const { return static_cast<bool>(row_block); }
  static void fields(auto& n, auto&& f) {
    f("row_block", n.row_block), f("column_block", n.column_block), f("kernel", n.kernel), f("stride", n.stride),
        f("dilation", n.dilation), f("pad", n.pad);
  }
};
// to[...] = cast(from[...]); the extents other than 1 of both sides agree in order. At the thread level it is what one
// thread does, without a cast: neighbours between memory and its own registers in one access; with a barrier or the
// queue bulk_store one TMA copy of a box between global and shared memory (PTX ISA, cp.async.bulk.tensor); of the queue
// st_async one element to another block.
struct Copy {
  static constexpr Level level = Level::Tile | Level::Thread;
  static constexpr const char* name = "copy";
  static constexpr bool tile_op = true;
  Region from, to;
  Combine combine = Combine::None;
  Im2col im2col;
  Completion completion;
  std::string prefer;  // an instruction's name: taken when legal, else reported
  // A bit for each block of the cluster in whose shared memory the box lands, at the same place; 0: this block alone.
  // With a barrier, that of each of them receives the bytes. Without one, the block of the lowest bit copies for all of
  // them, the others of the cluster for themselves.
  int64_t multicast = 0;
  static void fields(auto& n, auto&& f) {
    f("from", n.from), f("to", n.to), f("combine", n.combine), f("im2col", n.im2col), f("completion", n.completion),
        f("prefer", n.prefer), f("multicast", n.multicast);
  }
};
struct Fill {
  static constexpr Level level = Level::Tile;
  static constexpr const char* name = "fill";
  static constexpr bool tile_op = true;
  Region to;
  Expr value;  // of the buffer's type
  static void fields(auto& n, auto&& f) { f("to", n.to), f("value", n.value); }
};
// Loop level: rows of memory that come into a cache while a statement is at work. They follow one another as the second
// follows the first; addresses may lie outside of their tensor.
struct RowsAhead {
  Expr first, second;
  int64_t bytes = 0, rows = 0;  // of a row; how many
  bool present() const { return rows > 0; }
  static void fields(auto& n, auto&& f) {
    f("first", n.first), f("second", n.second), f("bytes", n.bytes), f("rows", n.rows);
  }
};
enum class GemmPolicy : uint8_t { Square, FullRow, FullCol };
struct Gemm {  // c (+)= op(a) * op(b), accumulated in c's type; leading extents are 1
  static constexpr Level level = Level::Tile | Level::Loop;
  static constexpr const char* name = "gemm";
  static constexpr bool tile_op = true;
  Region a, b, c;
  // Tile level: a holds half of its elements along k; rows of words that say which (scalar/sparse_group.h).
  Region metadata;
  bool transpose_a = false, transpose_b = false, transpose_metadata = false;
  bool is_sparse() const { return metadata.valid(); }
  GemmPolicy policy = GemmPolicy::Square;
  Expr clear;  // bool: start from zero; none means false
  Completion completion;
  RowsAhead next;
  static void fields(auto& n, auto&& f) {
    f("a", n.a), f("b", n.b), f("c", n.c), f("metadata", n.metadata), f("transpose_a", n.transpose_a),
        f("transpose_b", n.transpose_b), f("transpose_metadata", n.transpose_metadata), f("policy", n.policy),
        f("clear", n.clear), f("completion", n.completion), f("next", n.next);
  }
};
struct Map {  // every point of the box once, in no order; the body is thread code
  static constexpr Level level = Level::Tile;
  static constexpr const char* name = "map";
  static constexpr bool tile_op = true;
  std::vector<VarId> vars;
  std::vector<Expr> extents;
  Body body;
  static void fields(auto& n, auto&& f) { f("vars", n.vars), f("extents", n.extents), f("body", n.body); }
};
enum class ReduceOp : uint8_t { Sum, Max, Min, AbsSum, AbsMax, BitAnd, BitOr, BitXor };
// A tile op that combines elements of `from` into `to`, by `op`, along a dimension that counts from the first of
// `from`.
template <class Op>
concept CombinesAlong = TileOp<Op> && requires(const Op& n) {
  { n.op } -> std::convertible_to<ReduceOp>;
  { n.dim } -> std::convertible_to<int64_t>;
  n.from.extent, n.to.extent;
};
// Whether the atomic is the update of a reducer that combines by the operation.
bool updates(AtomicOp op, ReduceOp reducer);
struct Reduce {  // accumulates in the type of `to`; without clear it combines with what is there
  static constexpr Level level = Level::Tile;
  static constexpr const char* name = "reduce";
  static constexpr bool tile_op = true;
  ReduceOp op = ReduceOp::Sum;
  Region from, to;
  int64_t dim = 0;
  bool clear = true;
  bool nan_propagate = false;
  static void fields(auto& n, auto&& f) {
    f("op", n.op), f("from", n.from), f("to", n.to), f("dim", n.dim), f("clear", n.clear),
        f("nan_propagate", n.nan_propagate);
  }
};
struct Scan {  // inclusive, along dim; op is Sum or Max
  static constexpr Level level = Level::Tile;
  static constexpr const char* name = "scan";
  static constexpr bool tile_op = true;
  ReduceOp op = ReduceOp::Sum;
  Region from, to;
  int64_t dim = 0;
  bool reverse = false;
  static void fields(auto& n, auto&& f) {
    f("op", n.op), f("from", n.from), f("to", n.to), f("dim", n.dim), f("reverse", n.reverse);
  }
};
struct FinalizeReducer {  // after it the buffer may be read
  static constexpr Level level = Level::Tile;
  static constexpr const char* name = "finalize_reducer";
  static constexpr bool tile_op = true;
  BufferId buffer;
  static void fields(auto& n, auto&& f) { f("buffer", n.buffer); }
};
// The body runs on threads [begin, end) of a block along x: whole warps. Loop level: a strand of the block, which runs
// beside those that stand next to it.
struct Role {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "role";
  int64_t begin = 0, end = 0;
  Body body;
  static void fields(auto& n, auto&& f) { f("begin", n.begin), f("end", n.end), f("body", n.body); }
};

// ---- Order
// ------------------------------------------------------------------------------------

enum class ArriveBy : uint8_t {
  Thread,  // every executing thread
  Warp,    // every executing warp once, when all its threads have come; above thread level
};
struct Arrive {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "arrive";
  Element barrier;
  Expr cta;                   // its number in the cluster, x first; none: this block
  Queue queue = Queue::None;  // cp_async: once all that the thread has put there is done; it goes on at once
  ArriveBy by = ArriveBy::Thread;
  static void fields(auto& n, auto&& f) {
    f("barrier", n.barrier), f("cta", n.cta), f("queue", n.queue), f("by", n.by);
  }
};
struct Expect {  // adds bytes to what the current phase waits for, then arrives if asked; by one thread of the
                 // executing set
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "expect";
  Element barrier;
  Expr bytes;
  bool arrive = false;
  Expr cta = {};  // its number in the cluster, x first; none: this block
  static void fields(auto& n, auto&& f) {
    f("barrier", n.barrier), f("bytes", n.bytes), f("arrive", n.arrive), f("cta", n.cta);
  }
};
struct Wait {  // until the phase of that parity is complete; parity 1 passes on a fresh barrier
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "wait";
  Element barrier;
  Expr parity;
  static void fields(auto& n, auto&& f) { f("barrier", n.barrier), f("parity", n.parity); }
};
struct Commit {  // closes the current group of an in-order queue
  static constexpr Level level = Level::Tile | Level::Thread;
  static constexpr const char* name = "commit";
  Queue queue = Queue::CpAsync;
  static void fields(auto& n, auto&& f) { f("queue", n.queue); }
};
struct Drain {  // until at most `pending` groups of the queue are open
  static constexpr Level level = Level::Tile | Level::Thread;
  static constexpr const char* name = "drain";
  Queue queue = Queue::CpAsync;
  int64_t pending = 0;
  // Thread level, of wgmma: the registers that its open groups use; none is touched on the other side of this.
  std::vector<Region> registers = {};
  bool written = false;  // BulkStore: until global memory has it; else until shared memory has been read
  static void fields(auto& n, auto&& f) {
    f("queue", n.queue), f("pending", n.pending), f("registers", n.registers), f("written", n.written);
  }
};
enum class SyncScope : uint8_t {
  Warp,
  Block,
  Named,
  Cluster,
  Grid,
  // The launches of the stream, which run one after the other. A launch that waits for them may begin before those
  // before it have ended; with arrive_only, those after may as far as this block is concerned.
  Launches
};
struct Sync {
  static constexpr Level level = Level::Any;
  static constexpr const char* name = "sync";
  SyncScope scope = SyncScope::Block;
  Expr barrier;              // Named: which one; loop level: from 16 on, meetings of strands
  int64_t count = 0;         // Named: threads taking part
  bool arrive_only = false;  // Named, Cluster, Launches: does not wait
  bool wait_only = false;    // Cluster: for the phase at which this thread has arrived; Launches: for those before
  static void fields(auto& n, auto&& f) {
    f("scope", n.scope), f("barrier", n.barrier), f("count", n.count), f("arrive_only", n.arrive_only),
        f("wait_only", n.wait_only);
  }
};
enum class FenceProxy : uint8_t {
  Async,      // what this thread wrote to shared memory before, for asynchronous readers after
  Block,      // memory order within the block
  Device,     // and the device
  Wgmma,      // thread level: the registers that wgmma uses, before its first one and after other code wrote them
  Registers,  // thread level: what they hold is computed here
  AsyncAll,   // what this thread wrote to any memory: waits for the whole device
};
struct Fence {
  static constexpr Level level = Level::Tile | Level::Thread;
  static constexpr const char* name = "fence";
  FenceProxy proxy = FenceProxy::Async;
  std::vector<Region> registers = {};  // Wgmma: which
  static void fields(auto& n, auto&& f) { f("proxy", n.proxy), f("registers", n.registers); }
};
struct SetRegisters {  // registers a thread of the executing warpgroups may use; no effect where registers are no
                       // resource
  static constexpr Level level = Level::Tile | Level::Thread;
  static constexpr const char* name = "set_registers";
  static constexpr int64_t kFewest = 24, kMost = 256, kUnit = 8;  // PTX ISA, setmaxnreg
  static constexpr bool takes(int64_t count) { return kFewest <= count && count <= kMost && count % kUnit == 0; }
  int64_t count = 0;
  static void fields(auto& n, auto&& f) { f("count", n.count); }
};

// ---- Instructions of a warp
// ------------------------------------------------------------------------------------------------

// c += a * b: each lane gives and gets its part of the matrices, in registers. At the thread level as a row of
// target/mma.h says; a and b are words of 32 bits, or the narrower elements that make them. `metadata`: of a sparse a,
// one word a lane. At the tile level elements of a thread's own arrays, as mma.m<4 |c|>n8k<4 |b|>.row.col has them;
// with an instruction that the target has, if one is known.
struct Mma {
  static constexpr Level level = Level::Tile | Level::Thread;
  static constexpr const char* name = "mma";
  std::string instruction;
  Region a, b, c, metadata;
  static void fields(auto& n, auto&& f) {
    f("instruction", n.instruction), f("a", n.a), f("b", n.b), f("c", n.c), f("metadata", n.metadata);
  }
};
// ldmatrix (PTX ISA 9.7.14.5.15): 1, 2 or 4 matrices of 8 rows of 16 bytes. Lane 8 * i + j points at row j of matrix i
// and gets word lane % 4 of row lane / 4 of every matrix; transposed, the matrix of 16-bit elements is first.
struct LoadMatrix {
  static constexpr Level level = Level::Tile | Level::Thread;
  static constexpr const char* name = "load_matrix";
  Element from;
  Region to;  // words, one a matrix, or the narrower elements that make them
  bool transpose = false;
  int64_t matrices = 0;  // Tile level: how many; a row of one is neighbours along the last dimension
  static void fields(auto& n, auto&& f) {
    f("from", n.from), f("to", n.to), f("transpose", n.transpose), f("matrices", n.matrices);
  }
};

// stmatrix (PTX ISA 9.7.14.5.16): 1, 2 or 4 matrices of 8 x 8 elements of 16 bits, as load_matrix has them.
struct StoreMatrix {
  static constexpr Level level = Level::Thread;
  static constexpr const char* name = "store_matrix";
  Element to;
  Region from;  // words, one a matrix, or the narrower elements that make them
  bool transpose = false;
  static void fields(auto& n, auto&& f) { f("to", n.to), f("from", n.from), f("transpose", n.transpose); }
};

// c (+)= op(a) * op(b) by a warpgroup, as a row of target/wgmma.h says: 64 rows. `b` is a box of a tile in shared
// memory, `a` too or words in registers; a transposed one is stored [k][rows]. It is done when its group of the queue
// wgmma is; the word of metadata of a sparse a is read at once.
struct Wgmma {
  static constexpr Level level = Level::Thread;
  static constexpr const char* name = "wgmma";
  std::string instruction;
  Region a, b, c, metadata;
  bool transpose_a = false, transpose_b = false;  // a: m x k, b: n x k unless transposed, as the instruction counts
  Expr clear;                                     // bool: start from zero; none means false
  static void fields(auto& n, auto&& f) {
    f("instruction", n.instruction), f("a", n.a), f("b", n.b), f("c", n.c), f("metadata", n.metadata),
        f("transpose_a", n.transpose_a), f("transpose_b", n.transpose_b), f("clear", n.clear);
  }
};
struct Elect {  // the body is run by one thread of the warp, always the same one
  static constexpr Level level = Level::Thread;
  static constexpr const char* name = "elect";
  Body body;
  static void fields(auto& n, auto&& f) { f("body", n.body); }
};
struct InitBarriers {  // by one thread, before anybody uses them: each expects its arrive count
  static constexpr Level level = Level::Thread;
  static constexpr const char* name = "init_barriers";
  BufferId barriers;
  static void fields(auto& n, auto&& f) { f("barriers", n.barriers); }
};

// ---- Loop level: what a CPU does in a way of its own
// ------------------------------------------------------------------------------------------------

// Elements of a local row go to consecutive elements of a tensor: around the caches, if it is large. A run of them goes
// by chunks of whole cache lines. The row's first line is the statement's own: what is not yet a whole line of the
// tensor waits there; the chunk follows it.
struct Stream {
  static constexpr Level level = Level::Loop;
  static constexpr const char* name = "stream";
  Region from;  // the row
  Region to;    // the chunk's place; for the rest of a run, that of the whole run
  Expr large;   // bool: the tensor is; otherwise this is a plain copy
  Expr done;    // elements of the run that went before
  Expr rest;    // the elements that are left when all chunks are done; none: this is a chunk
  static void fields(auto& n, auto&& f) {
    f("from", n.from), f("to", n.to), f("large", n.large), f("done", n.done), f("rest", n.rest);
  }
};
// A matrix in memory: `down_step` further in dimension `down` is the element below, `along_step` further in dimension
// `along` the one beside, which is its neighbour in memory.
struct Matrix {
  Element first;
  int64_t down = 0, down_step = 1, along = 0, along_step = 1;
  static void fields(auto& n, auto&& f) {
    f("first", n.first), f("down", n.down), f("down_step", n.down_step), f("along", n.along),
        f("along_step", n.along_step);
  }
};
// to(i, j) = from(j, i) for i < rows, j < columns, both multiples of 16: by square blocks in registers.
struct Transpose {
  static constexpr Level level = Level::Loop;
  static constexpr const char* name = "transpose";
  Matrix from, to;
  int64_t rows = 0, columns = 0;
  int64_t unit = 1;  // elements of memory that stay together, as one of the matrix
  Expr large;        // bool: `to` is a tensor whose rows had better go around the caches
  Element next;      // where a matrix like `from` begins that comes into the second cache meanwhile; may be outside
  static void fields(auto& n, auto&& f) {
    f("from", n.from), f("to", n.to), f("rows", n.rows), f("columns", n.columns), f("unit", n.unit),
        f("large", n.large), f("next", n.next);
  }
};
struct Prefetch {  // memory comes into a cache; the address may lie outside of its tensor
  static constexpr Level level = Level::Loop;
  static constexpr const char* name = "prefetch";
  Expr address, offset;  // in bytes
  int64_t bytes = 0;
  bool nearest = false;  // into the nearest cache, not the second
  static void fields(auto& n, auto&& f) {
    f("address", n.address), f("offset", n.offset), f("bytes", n.bytes), f("nearest", n.nearest);
  }
};
// lanes[i] = value of lanes[i] and lanes[i + half] for i < half; then the same for the lower half, and so on. What is
// in lanes[0] in the end is the result, and the other lanes are lost. `value` is that of the first: of lanes[0] and
// lanes[half], by operators that vectors have (ir/joins.h).
struct Fold {
  static constexpr Level level = Level::Loop;
  static constexpr const char* name = "fold";
  BufferId lanes;
  int64_t half = 1;  // a power of two
  Expr value;
  static void fields(auto& n, auto&& f) { f("lanes", n.lanes), f("half", n.half), f("value", n.value); }
};
// for k < count, i < rows: total[i] = value of total[i] and from(i, k); to(i, k) = total[i]. By squares of rows and
// columns that are transposed in registers. `value` is that of the first: of total[0] and from(0, 0), as in Fold.
struct RowScan {
  static constexpr Level level = Level::Loop;
  static constexpr const char* name = "row_scan";
  Matrix from, to;
  BufferId total;
  int64_t rows = 0;
  Expr count, value;
  static void fields(auto& n, auto&& f) {
    f("from", n.from), f("to", n.to), f("total", n.total), f("rows", n.rows), f("count", n.count), f("value", n.value);
  }
};

using StmtOp = std::variant<Let, Store, Atomic, Shuffle, Vote, Call, For, While, If, Break, Continue, Return, Print,
                            Assert, Assume, Copy, Fill, Gemm, Map, Reduce, Scan, FinalizeReducer, Role, Arrive, Expect,
                            Wait, Commit, Drain, Sync, Fence, SetRegisters, Mma, LoadMatrix, StoreMatrix, Wgmma, Elect,
                            InitBarriers, Stream, Transpose, Prefetch, Fold, RowScan>;

// Index into the locations of the program; 0: unknown.
struct LocationId {
  uint32_t index = 0;
  bool operator==(const LocationId&) const = default;
};

// The number of a statement in its launch, by which tables of passes and analyses speak of it; 0: it has none
// (ir/number_statements.h). It stays with what is rewritten, and is no part of what a statement says.
struct StmtId {
  uint32_t index = 0;
  bool valid() const { return index != 0; }
  auto operator<=>(const StmtId&) const = default;
};

// Copied, moved and destroyed in stmt.cpp alone: a variant of all operations takes a file two seconds to compile.
struct StmtNode {
  explicit StmtNode(StmtOp op, LocationId location = {}, StmtId id = {});
  StmtNode(const StmtNode&);
  StmtNode(StmtNode&&) noexcept;
  StmtNode& operator=(const StmtNode&);
  StmtNode& operator=(StmtNode&&) noexcept;
  ~StmtNode();

  StmtOp op;
  LocationId location;
  StmtId id;
};

// Instantiated in stmt.cpp for each operation.
template <class T>
Stmt make_stmt(T op, LocationId location = {});

// Structural, without locations. Ids must be equal: programs are compared by their text.
bool equal(const Stmt& a, const Stmt& b);
const char* name_of(const Stmt& stmt);
Level level_of(const Stmt& stmt);
bool is_tile_op(const Stmt& stmt);

// Names of enumerators as the text form spells them ("add", "full_row"); the parser reads the same table.
// enum_names(E{}) gives all of them in order.
std::span<const char* const> enum_names(AtomicOp);
std::span<const char* const> enum_names(MemoryOrder);
std::span<const char* const> enum_names(ShuffleKind);
std::span<const char* const> enum_names(VoteKind);
std::span<const char* const> enum_names(LoopKind);
std::span<const char* const> enum_names(Queue);
std::span<const char* const> enum_names(Combine);
std::span<const char* const> enum_names(GemmPolicy);
std::span<const char* const> enum_names(ReduceOp);
std::span<const char* const> enum_names(ArriveBy);
std::span<const char* const> enum_names(SyncScope);
std::span<const char* const> enum_names(FenceProxy);
std::span<const char* const> enum_names(Rounding);
template <class E>
requires std::is_enum_v<E>
const char* name_of(E value) { return enum_names(value)[static_cast<size_t>(value)]; }

}  // namespace tilewright::ir
