// Loops whose products may run on beside something else.
#pragma once
#include "analysis/load_rings.h"
#include "plan/hints.h"
#include "plan/plan.h"

namespace tilewright::plan {

// Two products, the second of which multiplies what is made of the first (attention): the parts of the loop's body, in
// the order in which one turn runs them.
struct Skew {
  struct Product {
    ir::Stmt gemm;
    const analysis::FoundRing* operand = nullptr;  // that a ring brings
  };
  ir::Body head;  // in front of the first product
  Product first, second;
  ir::Body map, pack;  // between them: what touches neither operand nor accumulator of the second; the rest
};
// A product of what its turn makes (weights that are unpacked): the next turn's is made beside it.
struct Made {
  const analysis::FoundRing* brought = nullptr;  // of the other operand
  ir::BufferId tile;
};

// A product into a tile that each turn clears, and what is made of it (block scales): the product of the next turn runs
// beside that, into a tile of its own.
struct Promoted {
  ir::Stmt gemm;
  ir::Body head;  // what the product needs
  ir::Body rest;  // what needs the product, or nothing of it
};

// Whether the gemm of the ring's loop, the only one, is done with a slot before the next has come.
bool waits_for_loads(const analysis::FoundRing& ring);
// Whether a pipelined loop's ring brings an operand of a matrix instruction.
bool feed_gemms(const ir::ProgramTables& program, const ir::Launch& launch,
                const std::vector<analysis::FoundRing>& rings);

class OverlappedProducts {
 public:
  // `alone`: a warpgroup that multiplies has a multiprocessor to itself.
  OverlappedProducts(const ir::ProgramTables& p, const ir::Launch& launch,
                     const std::vector<analysis::FoundRing>& rings, bool alone = false)
      : p_(p), launch_(launch), rings_(rings), alone_(alone) {}

  // The ring of a loop that does nothing but multiply what the ring brings, whose slots are two and more.
  const analysis::FoundRing* feeds_one_gemm(const ir::For& loop) const;
  // Without a ring: the loop is none of these.
  Made makes_operand(const ir::For& loop) const;
  // s = a b; p = f(s); o = o * scale + p v: the product with v of one turn may run beside f of the next.
  std::optional<Skew> skewed(const ir::For& loop) const;
  // s = a b; o = f(o, s): the product of a turn may run beside f of the one before. None where registers do not suffice
  // for another s.
  std::optional<Promoted> promoted(const ir::For& loop) const;
  // Of every loop of the body that is one of these.
  std::vector<Order> orders(const ir::Body& body, const Hints& hints) const;

 private:
  bool is_made_anew(ir::BufferId id, const ir::Body& before) const;
  bool fits_twice(ir::BufferId id) const;
  const analysis::FoundRing* fed_by(const ir::Stmt& s, const ir::For& loop) const;

  const ir::ProgramTables& p_;
  const ir::Launch& launch_;
  const std::vector<analysis::FoundRing>& rings_;
  const bool alone_;
};

}  // namespace tilewright::plan
