// Which scalar statements of a block must not run thread by thread in one go, because the language orders their
// accesses of shared memory between threads (barriers are ours to insert).
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

class Hazards {
 public:
  Hazards(const ir::ProgramTables& program, const ir::Launch& launch);

  // The run so far.
  void add(const ir::Stmt& s);
  void clear() { run_.clear(); }
  // Would the statement touch what another thread touched in the run?
  bool conflicts(const ir::Stmt& s) const;
  // Does it within itself: two of its parts, or iterations of its loop?
  bool inside(const ir::Stmt& s) const;
  // What a tile op reads and writes.
  std::vector<ir::Region> regions(const ir::Stmt& s) const;

 private:
  struct Access {
    ir::BufferId buffer;
    std::vector<ir::Expr> index;
    bool write = false, atomic = false;
  };
  void collect(const ir::Stmt& s, std::vector<Access>& out) const;
  void collect(const ir::Expr& e, std::vector<Access>& out) const;
  bool on_chip(ir::BufferId id) const;
  bool clash(const Access& a, const Access& b) const;

  const ir::ProgramTables& program_;
  const ir::Launch& launch_;
  std::set<ir::VarId> bound_;  // in the launch's body
  std::vector<Access> run_;
};

}  // namespace tilewright::passes
