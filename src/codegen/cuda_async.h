// The asynchronous part of CUDA texts: mbarriers, TMA, wgmma.
#pragma once
#include "codegen/c_reports.h"
#include "codegen/cuda.h"

namespace tilewright::codegen {

class CudaAsync : public CReports {
 protected:
  using CReports::CReports;

  // True: it was one of these statements.
  bool async_statement(const ir::Stmt& s);
  // How many statements from this one on initialize mbarriers; they are written.
  size_t init_barriers(const ir::Body& body, size_t first);
  size_t arrivals_at_peers(const ir::Body& body, size_t first);
  // Helpers that only this program needs, made for its shapes.
  std::string made_helpers() const;
  void make_helper(const std::string& name, std::string text) { made_[name] = std::move(text); }
  void begin_launch(const ir::Launch& launch);
  size_t descriptors_ = 0;  // of matrices that the kernel at hand has
  // The parameter that holds the tensor map of a copy, among those of the kernel.
  std::vector<CudaTensorMap> maps_;         // of the program
  std::map<int, std::string> kernel_maps_;  // index among them -> its name in the kernel at hand

  std::string operands(const std::vector<std::string>& list, const char* constraint) const;
  std::string helper(const char* name) {
    pieces_.insert(name);
    return name;
  }

 private:
  // Whether blocks write to the memory of others of their cluster: arrivals and waits then speak of that as well.
  bool writes_peers() const;
  // Whether another block says at these mbarriers that it has written to this one's memory.
  bool tells_of_writes(ir::BufferId barriers) const;
  bool narrows_offsets() const override { return true; }
  // A place in a buffer on the chip.
  std::string place(ir::BufferId id, const ir::Expr& offset) {
    const ir::Expr at = narrowed(offset);
    return ir::constant_int(at) == 0 ? pointer(id) : pointer(id) + " + " + text(at);
  }
  ir::Expr coordinate(const ir::Region& global, size_t d) const;
  void tma(const ir::Copy& n);
  void store_to_peer(const ir::Copy& n);
  void make_tma(const std::string& name, const std::string& head, const std::string& instruction,
                const std::string& order, const std::vector<std::string>& inputs, size_t rank);
  std::vector<size_t> walked_dims(const ir::Region& global) const;
  std::string map_of(const ir::Region& global, const ir::Buffer& shared);
  void wgmma(const ir::Wgmma& n);
  void make_wgmma(const std::string& name, const ir::Wgmma& n);
  std::string descriptor(const ir::Region& r, bool transposed);
  void hold(const std::vector<ir::Region>& registers);

  std::map<std::string, std::string> made_;      // by name
  std::set<ir::VarId> unrolled_;                 // variables of unrolled loops of the launch at hand
  std::vector<bool> split_;                      // by fence of wgmma of the launch at hand: a branch stands before it
  size_t fences_ = 0;                            // that have been written
  const ir::StmtNode* first_arrival_ = nullptr;  // at the barrier of the cluster, of a block that has written nothing
};

}  // namespace tilewright::codegen
