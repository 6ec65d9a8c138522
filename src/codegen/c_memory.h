// Loads, stores and addresses of buffers as text of the C family: a buffer is a pointer to what memory holds, an
// element the pointer plus an offset from strides.
#pragma once
#include "analysis/bits.h"
#include "analysis/element_offset.h"
#include "codegen/c_family.h"
#include "passes/lower/intervals.h"

namespace tilewright::codegen {

class CMemory : public CFamily {
 protected:
  CMemory(const ir::ProgramTables& program, const std::set<std::string>& reserved)
      : CFamily(program, reserved), bits_(program) {}

  // ---- the target's own: types whose elements share a byte
  virtual std::string load_nibble(ir::BufferId id, const std::string& pointer, const std::string& offset) = 0;
  // Whether offsets on the chip are computed in 32 bits.
  virtual bool narrows_offsets() const { return false; }
  // Whether those in global memory are, where values allow it.
  virtual bool narrows_global_offsets() const { return false; }
  virtual void store_nibble(ir::BufferId id, const std::string& pointer, const std::string& offset,
                            const std::string& bits) = 0;

  bool is_global(ir::BufferId id) const { return program_.buffer(program_.root(id)).space == ir::Space::Global; }
  // A variable of the text, and no place behind a pointer: tensors of rank 0 are behind one.
  static bool is_variable(const ir::Buffer& b) { return b.rank() == 0 && !b.is_view() && b.space != ir::Space::Global; }
  // The first element of the buffer's root, as a pointer to what memory holds of the buffer's type.
  std::string pointer(ir::BufferId id);
  // In elements of the buffer's type from the start of its root.
  ir::Expr offset(ir::BufferId id, const std::vector<ir::Expr>& index) const;
  std::string element(ir::BufferId id, const std::vector<ir::Expr>& index);
  std::string pointer_to(ir::BufferId id, const std::vector<ir::Expr>& index);
  // The same number in 32 bits, where no step to it needs more; else as it is. `cut`: what is beyond 32 bits is lost.
  ir::Expr narrowed(const ir::Expr& e, bool cut = false) const;
  // How many things of storage_type() an on-chip buffer takes.
  static int64_t storage_elements(const ir::Buffer& b);

  // Everything that comes from the call and that the expressions of a body mention.
  std::set<ir::VarId> needed_vars(const ir::Body& b) const;

  std::string load_bits(const ir::Load& n, DType type) override;
  Text load(const ir::Load& n, DType type) override;
  Text address(const ir::Address& n) override;
  void store(const ir::Store& n) override;

  // Once for each launch, before what depends on its values.
  void note_values(const ir::Launch& launch);
  bool may_be_negative(const ir::Expr& e) const override { return values_.of(e).low < 0; }
  // Whether it may be any number: what memory or a call says, and what is far beyond every tensor. What launches count
  // is near a tensor, though its range may not be known.
  bool may_be_anything(const ir::Expr& e) const;

  // The value that an atomic leaves, as bits, from the text of the old value.
  std::string updated(const ir::Atomic& n, DType type, const std::string& old);
  // With the swizzle of its memory.
  ir::Expr element_offset(ir::BufferId id, const std::vector<ir::Expr>& index) const;

  passes::Intervals values_;  // of the launch

 private:
  std::optional<ir::Expr> in_32_bits(const ir::Expr& e, bool cut) const;
  ir::Expr as_meant(const ir::Expr& index) const;

  const analysis::Bits bits_;
  std::set<ir::VarId> of_data_;  // names of the launch that may be any number
};

}  // namespace tilewright::codegen
