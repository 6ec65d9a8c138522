// A launch made ready to run: symbols and parameters are constants, variables are slots, shapes and strides are
// numbers, and what the uniformity analysis says stands beside every statement.
#pragma once
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "analysis/uniformity.h"
#include "interpreter/interpreter.h"
#include "interpreter/lanes.h"
#include "ir/program.h"
#include "scalar/functions.h"

namespace tilewright::interpreter {

struct BufferCode;

struct Node {
  enum class Op : uint8_t {
    Const,
    Slot,     // a variable
    Sum,      // constant + sum of coefficients[i] * args[i]
    Apply,    // a scalar function
    Divide,   // integer division or modulo: a function, checked
    Binary,   // comparison, bits
    Logical,  // And, Or: the right side only when needed
    Not,      // bool
    BitNot,
    Select,
    Cast,
    Bitcast,
    Load,
    Address,
  };
  Op op = Op::Const;
  DType type;
  bool faults = false;  // may fail or touch memory: only evaluated for lanes that need it
  ir::BinaryOp binary{};
  Rounding rounding{};
  Function function{};
  uint32_t slot = 0;
  int64_t constant = 0;
  std::vector<const Node*> args;
  std::vector<int64_t> coefficients;
  Value value;                         // Const
  const BufferCode* buffer = nullptr;  // Load, Address

  LaneKind kind() const { return lane_kind(type); }
  // Of the operands, which are what a function or a comparison works on.
  DType operand_type() const { return args.empty() ? type : args[0]->type; }
};

struct BufferCode {
  const ir::Buffer* source = nullptr;
  ir::BufferId id;
  uint32_t root = 0;  // whose memory: index of the buffer table
  DType type;
  ir::Space space = ir::Space::Global;
  // Numbers where they are known before the launch runs; else 0 here and an expression below.
  std::vector<int64_t> shape, strides;
  std::vector<const Node*> shape_nodes, stride_nodes;  // empty: all are numbers
  const Node* offset = nullptr;                        // none: 0
  const Node* cta = nullptr;                           // whose shared memory; none: the block's own
  const Node* address = nullptr;
  const Node* fill = nullptr;
  int64_t elements = 0;  // of a root on chip

  bool on_chip() const { return space != ir::Space::Global; }
  bool is_local() const { return space == ir::Space::Local; }
  // How it lies in shared memory, where strides do not say.
  const MemoryLayout* memory() const { return source->memory ? &*source->memory : nullptr; }
  bool is_dynamic() const { return !shape_nodes.empty(); }
  size_t rank() const { return shape.size(); }
};

struct ElementCode {
  const BufferCode* buffer = nullptr;
  std::vector<const Node*> indices;
  explicit operator bool() const { return buffer != nullptr; }
};

struct RegionCode {
  const BufferCode* buffer = nullptr;
  std::vector<const Node*> min, extent;
  explicit operator bool() const { return buffer != nullptr; }
};

struct Step;
using Steps = std::vector<Step>;

struct Step {
  ir::Stmt stmt;
  // In the order of the op's fields: null where the program has none. Which is which stands where the op is executed.
  std::vector<const Node*> nodes;
  std::vector<ElementCode> elements;
  std::vector<RegionCode> regions;
  std::vector<Steps> bodies;
  analysis::ThreadSet set;      // the threads that execute it together
  bool once = false;            // Store, Atomic, Expect, Copy: one time for all of them
  bool jumps = false;           // a Break, Continue or Return may leave it
  bool jumps_inside = false;    // loops: one may leave the body
  bool per_thread = false;      // a tile op on local buffers: every thread on its own
  bool distinct = true;         // Store in a Map: different points write different elements
  std::set<uint32_t> watched;   // Map: roots of which points may read what other points write
  bool dealt = false;           // Map: its points run on threads
  bool tf32 = false;            // Gemm: of float32, but it reads only what tfloat32 holds of them
  std::vector<uint32_t> outer;  // Map, not dealt: variables from outside that the body reads

  const ir::StmtNode& node() const { return *stmt; }
};

struct LaunchCode {
  const ir::Launch* launch = nullptr;
  std::vector<int64_t> grid;     // 3 extents
  std::vector<int64_t> threads;  // 3 extents
  int64_t thread_count = 1;
  Steps body;
  std::deque<Node> nodes;
  std::vector<BufferCode> buffers;  // by id
  std::vector<uint32_t> on_chip;    // roots of this launch
  // Parts of the block that may run apart; one: the whole block. Thread programs: the whole block, which the simulator
  // cuts into warps.
  std::vector<analysis::ThreadSet> strands;
  bool needs_strands = false;  // roles, barriers: strands switch at blocking ops
  bool grid_sync = false;      // all blocks at a time
  bool together = false;       // all blocks at a time, for some wait for others
  bool in_clusters = false;    // the blocks of a cluster at a time
  bool serial = false;         // blocks one after the other, in order
};

// Everything that does not change while the program runs.
struct ProgramCode {
  const ir::ProgramTables* program = nullptr;
  const Binding* binding = nullptr;
  std::vector<void*> data;       // by buffer id: parameters and workspaces
  std::vector<Value> constants;  // by var id, where known[id]
  std::vector<bool> known;
};

ProgramCode bind(const ir::ProgramTables& program, const Binding& binding);
// Of a tile program, whose statements have numbers: every store and atomic that is uniform happens once, roles are
// strands. Refuses what the interpreter cannot do.
std::unique_ptr<LaunchCode> prepare(const ProgramCode& code, const ir::Launch& launch);
// Of a thread program: every statement is each thread's own.
std::unique_ptr<LaunchCode> prepare_threads(const ProgramCode& code, const ir::Launch& launch);

}  // namespace tilewright::interpreter
