// Loops whose products may run on beside something else: what is found, before their code is written (ring_sides.h).
#pragma once
#include "passes/threads/find_rings.h"

namespace tilewright::passes {

// Two products, one of which waits for what is made of the other (attention): the parts of the loop's body, in the
// order in which one turn runs them.
struct Skew {
  const Ring* keys = nullptr;    // of the first gemm's operand
  const Ring* values = nullptr;  // of the second's
  ir::Body scores, map, pack;    // up to the first gemm; what neither touches p nor o; the rest
  ir::Stmt first, second;        // the gemms
};
// A product of what its turn makes (weights that are unpacked): the next turn's is made beside it.
struct Made {
  const Ring* brought = nullptr;  // of the other operand
  ir::BufferId tile;
};

// Whether the gemm of the ring's loop, the only one, is done with a slot before the next has come.
bool waits_for_loads(const Ring& ring);

class OverlappedProducts {
 public:
  OverlappedProducts(const ir::TileProgram& p, const ir::Launch& launch, const std::vector<Ring>& rings)
      : p_(p), launch_(launch), rings_(rings) {}

  // The ring of a loop that does nothing but multiply what the ring brings.
  const Ring* feeds_one_gemm(const ir::For& loop) const;
  // Without a ring: the loop is none of these.
  Made makes_operand(const ir::For& loop) const;
  // scores = q k; p = f(scores); o = o * scale + p v: the product with v of one turn may run beside f of the next.
  std::optional<Skew> skewed(const ir::For& loop) const;

 private:
  bool is_made_anew(ir::BufferId id, const ir::Body& before) const;
  const Ring* fed_by(const ir::Stmt& s, const ir::For& loop) const;

  const ir::TileProgram& p_;
  const ir::Launch& launch_;
  const std::vector<Ring>& rings_;
};

}  // namespace tilewright::passes
