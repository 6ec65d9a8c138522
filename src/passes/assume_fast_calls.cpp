#include "passes/assume_fast_calls.h"

#include <bit>
#include <map>

#include "analysis/divisibility.h"
#include "analysis/map_points.h"
#include "analysis/slope.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/block_index.h"
#include "passes/lower/lowering.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kPieceBits = 128;            // of the widest access of a thread, and of TMA's strides
constexpr int64_t kBlocksAlongYz = 65535;      // CUDA C++ Programming Guide, compute capabilities
constexpr int64_t kFewBlocks = INT32_MAX / 2;  // so that the sum of two still fits 32 bits

// Whether the hardware numbers so many blocks along y or z.
Expr is_numbered(const Expr& blocks) { return binary(BinaryOp::Le, widen(blocks), wide(kBlocksAlongYz)); }

class Facts {
 public:
  explicit Facts(const TileProgram& p) : p_(p) {
    known_.insert(p.symbols.begin(), p.symbols.end());
    for (const Param& param : p.params)
      if (!param.is_tensor()) known_.insert(param.var);
    for (const Launch& launch : p.launches) walk(launch.body, [&](const Stmt& s) { visit(s); });
  }

  std::vector<Assumption> assumptions() const {
    std::vector<Assumption> out;
    for (VarId id : order_) {
      const auto& [divisor, location] = divisors_.at(id);
      const DType type = p_.var(id).type;
      const Expr rest = binary(BinaryOp::FloorMod, var(id, type), constant(type, divisor));
      out.push_back({binary(BinaryOp::Eq, rest, constant(type, int64_t{0})), location});
    }
    for (const Launch& launch : p_.launches) {
      if (counts_blocks(launch) && !blocks_are_few(launch, p_))
        out.push_back({binary(BinaryOp::Le, blocks_of(launch), wide(kFewBlocks)), launch.location});
      if (multiplies(launch)) continue;  // it walks over tiles
      for (size_t d = 1; d < launch.grid.size(); ++d)
        if (!constant_int(launch.grid[d])) out.push_back({is_numbered(launch.grid[d]), launch.location});
    }
    return out;
  }

 private:
  void visit(const Stmt& s) {
    if (const auto* n = s.as<Map>()) return points(*n);
    if (is_tile_op(s)) for_each_region(s, [&](const Region& r) { region(r); });
  }
  void region(const Region& r) {
    if (!r.extent.empty()) tile(r.buffer, analysis::power_of_two_divisor(r.extent.back()));
  }
  void points(const Map& n) {
    const auto access = [&](BufferId buffer, const std::vector<Expr>& indices) {
      if (indices.empty()) return;
      const int bits = p_.buffer(buffer).type.storage_bits();
      for (size_t d = 0; d < n.vars.size(); ++d) {
        if (!used_vars(indices.back()).contains(n.vars[d])) continue;
        const auto slope = analysis::slope_through_casts(indices.back(), n.vars[d]);
        // Vectors lie along the last dimension, or where memory has neighbours.
        const bool last = d + 1 == n.vars.size();
        if (last ? !slope || *slope * bits <= kPieceBits
                 : slope == 1 && !elsewhere(indices, n.vars[d]) && analysis::has_element_for_each(n, indices))
          tile(buffer, analysis::power_of_two_divisor(n.extents[d]));
      }
    };
    walk(n.body, [&](const Stmt& s) {
      if (const auto* store = s.as<Store>()) access(store->to.buffer, store->to.indices);
    });
    walk_exprs(n.body, [&](const Expr& e) {
      if (const auto* load = e.as<Load>()) access(load->buffer, load->indices);
    });
  }
  static bool elsewhere(const std::vector<Expr>& indices, VarId v) {
    return std::any_of(indices.begin(), indices.end() - 1, [&](const Expr& e) { return used_vars(e).contains(v); });
  }
  // Rows of a tile of a tensor, of a multiple of `columns` elements.
  void tile(BufferId id, int64_t columns) {
    const Buffer& b = p_.buffer(id);
    if (p_.buffer(p_.root(id)).space != Space::Global || b.rank() == 0 || b.type.is_bool()) return;
    const int64_t piece = std::min(columns, kPieceBits / b.type.storage_bits());
    if (piece <= 1) return;
    make_multiple(b.shape.back(), piece, b.location);
    for (size_t d = 0; d + 1 < b.strides.size(); ++d) make_multiple(b.strides[d], piece, b.location);
  }

  // Whether code divides the number of a block, or walks over what were blocks.
  static bool counts_blocks(const Launch& launch) { return launch.grid.size() > 1 || multiplies(launch); }
  static bool multiplies(const Launch& launch) {
    bool found = false;
    walk(launch.body, [&](const Stmt& s) { found = found || s.as<Gemm>(); });
    return found;
  }

  // Asks of the symbols in an extent what makes it a multiple, if anything does.
  void make_multiple(const Expr& e, int64_t of, LocationId at) {
    const int64_t divisor = analysis::power_of_two_divisor(e, p_);
    if (divisor % of == 0 || analysis::is_no_multiple(e, p_)) return;
    if (const auto* n = e.as<Var>()) return ask(n->id, of, at);
    if (const auto* n = e.as<Cast>(); n && n->value->type.is_int()) return make_multiple(n->value, of, at);
    if (const auto* n = e.as<Sum>(); n && n->constant % of == 0) {
      for (const Term& t : n->terms)
        make_multiple(t.value, of / std::min(of, analysis::power_of_two_divisor(wide(t.coefficient))), at);
      return;
    }
    const auto* n = e.as<Binary>();
    if (n && n->op == BinaryOp::Mul) {
      const int64_t other = analysis::power_of_two_divisor(n->a, p_);
      make_multiple(n->b, of / std::min(of, other), at);
    } else if (n && n->op == BinaryOp::FloorDiv) {
      const int64_t by = constant_int(n->b).value_or(0);
      if (by > 0 && std::has_single_bit(static_cast<uint64_t>(by))) make_multiple(n->a, of * by, at);
    }
  }
  void ask(VarId id, int64_t divisor, LocationId at) {
    if (!known_.contains(id)) return;
    const auto [found, added] = divisors_.emplace(id, std::pair(divisor, at));
    if (added) order_.push_back(id);
    found->second.first = std::max(found->second.first, divisor);
  }

  const TileProgram& p_;
  std::set<VarId> known_;  // to the host
  std::map<VarId, std::pair<int64_t, LocationId>> divisors_;
  std::vector<VarId> order_;
};

}  // namespace

TileProgram assume_what_holds(TileProgram program, function_ref<bool(const Assumption&, size_t)> holds) {
  const std::vector<Assumption> facts = Facts(program).assumptions();
  for (size_t i = 0; i < facts.size(); ++i) {
    const auto* fact = facts[i].condition.as<Binary>();
    if (holds(facts[i], i))
      program.assumptions.push_back(facts[i]);
    else if (fact && fact->op == BinaryOp::Eq)  // rows that are known to be no whole pieces lie lane by lane
      program.assumptions.push_back({binary(BinaryOp::Ne, fact->a, fact->b), facts[i].location});
  }
  return program;
}

TileProgram assume_fast_calls(TileProgram program) {
  return assume_what_holds(std::move(program), [](const Assumption&, size_t) { return true; });
}

TileProgram assume_no_alignment(TileProgram program) {
  for (const Param& p : program.params) {
    if (!p.is_tensor()) continue;
    Buffer& b = program.buffers[p.buffer.index];
    b.alignment = std::max<int64_t>(b.type.storage_bits() / 8, 1);
  }
  return program;
}

bool fits_hardware_grid(const Launch& launch, const ProgramTables& program) {
  if (reorders_blocks(launch)) return false;
  Intervals known;
  for (const Assumption& a : program.assumptions) known.assume(a.condition);
  return std::all_of(launch.grid.begin() + 1, launch.grid.end(),
                     [&](const Expr& extent) { return known.proves(is_numbered(extent)); });
}

bool blocks_are_few(const Launch& launch, const ProgramTables& program) {
  Intervals known;
  for (const Assumption& a : program.assumptions) known.assume(a.condition);
  return known.proves(binary(BinaryOp::Le, blocks_of(launch), wide(kFewBlocks)));
}

}  // namespace tilewright::passes
