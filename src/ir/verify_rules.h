// The verifier: one walk over a program that collects findings. Its parts: verify.cpp (the walk, scopes, control flow),
// verify_tables.cpp (launches, buffers, parameters), verify_expr.cpp, verify_tiles.cpp (tile ops), verify_thread.cpp
// (thread code and order), verify_loops.cpp (what a CPU does in a way of its own).
#pragma once
#include "ir/print.h"
#include "ir/program.h"
#include "support/diagnostic.h"

namespace tilewright::ir {

class Verifier {
 public:
  Verifier(const ProgramTables& program, Level level);
  std::vector<Diagnostic> run();

 private:
  // What surrounds a statement.
  struct Place {
    bool in_map = false;
    bool in_loop = false;  // inside of the innermost Map, or of the launch
    const Role* role = nullptr;
    std::optional<size_t> nest = {};  // in maps that hold one map alone: where their variables begin in scope_
  };

  // ---- findings (verify.cpp)
  void add(Code code, std::string message, std::string help = {});
  void add_about(Code code, BufferId buffer, std::string message, std::string help = {});
  std::string name(VarId id) const;
  std::string name(BufferId id) const;
  std::string text(const Expr& e) const { return print(e, program_); }
  std::string text(const Region& region) const { return print(region, program_); }
  const Buffer& row(BufferId id) const { return program_.buffer(id); }

  // ---- the walk (verify.cpp)
  void launch(const Launch& launch, int32_t index);
  void body(const Body& body, Place place);
  void statement(const Stmt& stmt, Place place);
  bool is_legal_here(const Stmt& stmt, const Place& place);
  void check_peers(const Stmt& stmt);
  void nested(const Stmt& stmt, Place place);
  void bind(VarId id);
  void leave_scope(size_t depth);

  // ---- tables (verify_tables.cpp)
  void header();
  void check_param(const Param& param, std::set<BufferId>& tensors);
  void check_buffer(BufferId id);
  void check_shape(const Buffer& b);
  void check_view(const Buffer& b);
  void check_peer_view(const Buffer& b);
  void check_special(const Buffer& b);
  void check_layout(const Buffer& b);
  void check_launch(const Launch& launch);
  // How many elements a buffer with constant shape and strides reaches over; none: not constant or too many.
  std::optional<int64_t> span_of(const Buffer& b) const;

  // ---- expressions (verify_expr.cpp)
  // False if the id names no row: nothing more may be asked about it.
  bool check_id(BufferId id);
  bool check_id(VarId id);
  bool use(BufferId id);  // check_id, and that the buffer may be named here
  void use(VarId id);
  void check_expr(const Expr& e);
  void check_node(const Expr& e);
  void check_binary(const Expr& e, const Binary& binary);
  void check_same(const Expr& e, std::initializer_list<const Expr*> operands);
  bool check_indices(BufferId buffer, const std::vector<Expr>& indices, const char* what);
  // A value that must be there, well formed and of a type. False if there is none.
  bool check_value(const Expr& e, const char* what);
  bool check_condition(const Expr& e, const char* what);
  bool check_integer(const Expr& e, const char* what);

  // ---- thread code and order (verify_thread.cpp)
  void check(const Let& node);
  void check(const Store& node);
  void check(const Atomic& node);
  void check_reducer_update(const Atomic& node, const Buffer& b);
  void check(const Shuffle& node);
  void check(const Vote& node);
  void check(const Call& node);
  void check(const For& node);
  void check_schedule(const For& node);
  void check(const While& node);
  void check(const If& node);
  void check(const Break&) {}
  void check(const Continue&) {}
  void check(const Return&) {}
  void check(const Print& node);
  void check(const Assert& node);
  void check(const Assume& node);
  void check(const Arrive& node);
  void check(const Expect& node);
  void check(const Wait& node);
  void check(const Commit& node);
  void check(const Drain& node);
  void check(const Sync& node);
  void check(const Fence& node) { check_registers(node.registers, "fence"); }
  void check(const SetRegisters& node);
  void check(const Mma& node);
  void check(const LoadMatrix& node);
  void check(const StoreMatrix& node);
  bool check_own_elements(const Region& region, const char* what, int64_t count);
  void check_of_warp(const Mma& node);
  void check(const Wgmma& node);
  void check(const Elect&) {}
  void check(const InitBarriers& node);
  void check_registers(const std::vector<Region>& registers, const char* what);
  void check(const Role& node);
  bool check_element(const Element& element, const char* what);
  void check_barrier(const Element& element, const char* what);

  // ---- loop statements (verify_loops.cpp)
  void check(const Stream& node);
  void check(const Transpose& node);
  void check(const Prefetch& node);
  void check(const Fold& node);
  void check(const RowScan& node);
  bool check_lanes(BufferId id, int64_t lanes, const char* what);
  void check_address(const Expr& e, const char* what);
  void check_next(const RowsAhead& next);
  bool check_matrix(const Matrix& matrix, const char* what);

  // ---- tile ops (verify_tiles.cpp)
  // In a file of each op.
  template <TileOp Op>
  void check(const Op& node);
  void check_extents(const Copy& node);
  void check_im2col(const Copy& node);
  void check_completion(const Copy& node);
  void check_gemm_shape(const Gemm& node);
  void check_metadata(const Gemm& node);
  // True if the region is good enough to ask about its extents.
  bool check_region(const Region& region, const char* what);
  bool check_tile(const Region& region, const char* what, bool written);

  const ProgramTables& program_;
  Level level_;
  std::vector<Diagnostic> findings_;
  LocationId location_;
  const Launch* in_launch_ = nullptr;
  int32_t launch_ = -1;
  const Role* role_ = nullptr;
  std::vector<bool> visible_, bound_;  // by variable
  std::vector<VarId> scope_;
  std::unordered_set<const ExprNode*> checked_;  // of this statement
};

// Whether two extents may be equal: not so if both are known and differ.
bool may_be_equal(const Expr& a, const Expr& b);
std::string extents_text(const std::vector<Expr>& extents, const ProgramTables& program);
// The extents other than 1, in order.
std::vector<Expr> wide_extents(const Region& region);

}  // namespace tilewright::ir
