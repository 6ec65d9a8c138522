// A program: parameters, symbols, tables of variables and buffers, and an ordered list of launches.
#pragma once
#include "ir/stmt.h"
#include "layout/memory.h"
#include "tilewright/diagnostic.h"

namespace tilewright::ir {

struct VarInfo {
  std::string name;
  DType type;
  int64_t multiple = 1;  // a power of two that divides it, of a name (analysis/divisibility.h); 1: none is known
};

enum class Space : uint8_t {
  Global,    // parameters, workspaces, and tensors made from addresses
  Shared,    // one per block
  Fragment,  // one tile per block, spread over the registers of its threads
  Local,     // one per thread; rank 0 is a mutable scalar
  Barrier,   // mbarriers, one an element
};
std::span<const char* const> enum_names(Space);

// What the user said about a buffer's physical layout. It never changes results.
enum class LayoutHint : uint8_t { None, Linear, Swizzled, Function };
std::span<const char* const> enum_names(LayoutHint);
struct LayoutAnnotation {
  LayoutHint kind = LayoutHint::None;
  // Function: image of the index (vars[0], vars[1], ...). For a fragment: {thread, register index}.
  std::vector<VarId> vars;
  std::vector<Expr> image;
  int64_t replicate = 1;
};

// What mbarriers are for. Who makes them for code of his own says so, and others rely on it; a program's own have no
// known use.
enum class BarrierUse : uint8_t {
  None,
  Full,   // one a slot of a ring (or a panel of it): what fills it is there
  Empty,  // one a slot of a ring: who reads it is done
  // One for each of two roles, which take turns: a role's warps arrive at its own and then wait for the other, which
  // arrives when it has waited for them. Who has waited knows that all of his own role did what it did before that
  // arrival: without it the other could not have told.
  Turn,   // its turn has come
  Ready,  // what it hands on lies in shared memory
};
std::span<const char* const> enum_names(BarrierUse);

// Loop level: how a tile that gemms read or write lies in memory. The row of the table then has the shape and type of
// that memory: (panels, groups, width, interleave), or (rows, row stride).
struct TileLayout {
  int64_t rows = 0, columns = 0;  // of the tile
  int axis = 0;                   // the dimension that is cut into panels
  int64_t width = 0;              // of a panel; 0: row-major
  int64_t interleave = 1;         // elements of the other dimension that stand together
  DType element;                  // the tile's type; the memory's may be wider
};

// A row of the buffer table. Views are rows too: they name the row they look into.
struct Buffer {
  // Defined in one file, as those of what holds it: their copies take a compiler longer than what uses them.
  Buffer();
  Buffer(const Buffer&);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(const Buffer&);
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  std::string name;
  DType type;
  Space space = Space::Global;
  std::vector<Expr> shape;    // elements; on chip these are constants
  std::vector<Expr> strides;  // elements; empty: row-major and compact
  BufferId root;              // a view: the buffer whose memory this is (itself no view), from its first element
  Expr offset;                // a view: where it starts, in elements of this buffer's type; none: 0
  // A view of a shared buffer: of which block of the cluster, by its number, x first; none: this one. Such a view is
  // written and never read.
  Expr cta;
  Expr address;                        // a global tensor made from an address: a pointer value
  Expr fill;                           // what out-of-bounds reads give, of this type; none: 0
  std::optional<ReduceOp> reducer;     // a deferred reduction: Sum, Max or Min
  std::vector<int64_t> arrive_counts;  // Barrier: one a mbarrier
  BarrierUse use = BarrierUse::None;
  LayoutAnnotation layout;
  int32_t launch = -1;  // on chip: the launch it belongs to
  std::optional<TileLayout> tile;
  bool workspace = false;  // global scratch that only this program sees
  bool zeroed = false;     // a workspace that holds zeros when a call begins, and in which the call leaves zeros
  int64_t alignment = 0;   // Thread level: bytes that the first element must be aligned to; 0: as its type is
  int64_t panel = 0;       // of a shared buffer: bytes of a row that lie together for TMA and wgmma, at most; 0: 128
  int64_t place = -1;      // Thread level: of a shared buffer, its first byte in the block's shared memory
  std::optional<MemoryLayout> memory;  // Thread level: how a shared buffer lies there; none: as the strides say
  LocationId location;

  size_t rank() const { return shape.size(); }
  bool is_view() const { return root.valid(); }
};

struct Param {
  BufferId buffer;  // a tensor, or
  VarId var;        // a scalar
  bool is_tensor() const { return buffer.valid(); }
};

enum class RasterOrder : uint8_t { Row, Column };
std::span<const char* const> enum_names(RasterOrder);
struct Swizzle {  // the order in which blocks run; panel 0: as they come
  int64_t panel = 0;
  RasterOrder order = RasterOrder::Row;
};

struct Launch {
  Launch();
  Launch(const Launch&);
  Launch(Launch&&) noexcept;
  Launch& operator=(const Launch&);
  Launch& operator=(Launch&&) noexcept;
  ~Launch();

  std::string name;
  std::vector<Expr> grid;        // 1 to 3 extents
  std::vector<VarId> block;      // one var per grid extent, int32
  std::vector<int64_t> threads;  // 1 to 3 extents, x first
  std::vector<VarId> thread;     // one var per thread extent, int32
  std::vector<int64_t> cluster;  // empty: none
  int64_t min_blocks = 0;        // that a multiprocessor holds at once, which bounds registers; 0: any number
  Swizzle swizzle;
  std::vector<std::string> plan;  // lines of its plan for a GPU that are to be as they are (plan/hints.h)
  Body body;
  LocationId location;
  uint32_t numbers = 0;  // that statements of it have been given (ir/number_statements.h)
  int64_t thread_count() const {
    int64_t n = 1;
    for (int64_t t : threads) n *= t;
    return n;
  }
};

// Over symbols and scalar parameters; checked at the call.
struct Assumption {
  Expr condition;
  LocationId location;
};

struct Options {
  bool contract = true;         // canonicalize forms fma(a, b, c) from a * b + c
  bool fast_math = false;       // approximate exp, log, division
  bool strict = false;          // warnings of the compiler become errors
  bool tf32 = false;            // a gemm of float32 reads 10 bits of its operands' mantissas, as if they were tfloat32
  bool zero_unwritten = false;  // a tile that nothing writes holds zeros, with a warning; else reading it is a mistake
};

// All of a program but its level: what walks, lowerings and emitters need.
struct ProgramTables {
  ProgramTables();
  ProgramTables(const ProgramTables&);
  ProgramTables(ProgramTables&&) noexcept;
  ProgramTables& operator=(const ProgramTables&);
  ProgramTables& operator=(ProgramTables&&) noexcept;
  ~ProgramTables();

  std::string name;
  std::vector<Param> params;
  std::vector<VarId> symbols;  // dimensions solved from the arguments
  std::vector<Assumption> assumptions;
  std::vector<VarInfo> vars;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;
  std::vector<SourceLocation> locations = {SourceLocation{}};  // [0] is unknown
  Options options;

  const Buffer& buffer(BufferId id) const { return buffers[id.index]; }
  const VarInfo& var(VarId id) const { return vars[id.index]; }
  const SourceLocation& location(LocationId id) const { return locations[id.index]; }
  VarId new_var(std::string var_name, DType type) {
    vars.push_back({std::move(var_name), type});
    return VarId{static_cast<uint32_t>(vars.size() - 1)};
  }
  BufferId new_buffer(Buffer b) {
    buffers.push_back(std::move(b));
    return BufferId{static_cast<uint32_t>(buffers.size() - 1)};
  }
  // The buffer that owns the memory.
  BufferId root(BufferId id) const { return buffer(id).is_view() ? buffer(id).root : id; }
};

template <Level L>
struct ProgramAt : ProgramTables {
  static constexpr Level level = L;
};

// The same tables at another level.
template <class To>
To with_level(ProgramTables tables) {
  To to;
  static_cast<ProgramTables&>(to) = std::move(tables);
  return to;
}

// What a gemm multiplies: the type of its operand, or what the program's options make of that.
DType operand_type(const ProgramTables& p, const Gemm& gemm, const Region& operand);

using TileProgram = ProgramAt<Level::Tile>;
struct TileProgramBox {  // what the public Program holds
  TileProgram program;
};
using LoopProgram = ProgramAt<Level::Loop>;
using ThreadProgram = ProgramAt<Level::Thread>;

}  // namespace tilewright::ir
