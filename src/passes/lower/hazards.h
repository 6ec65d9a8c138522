// Which scalar statements of a block must not run thread by thread in one go, because the language orders their
// accesses of memory that threads share (barriers are ours to insert).
#pragma once
#include "analysis/thread_index.h"
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

 private:
  struct Access {
    ir::BufferId buffer;
    bool write = false;
    std::optional<analysis::OwnElement> own = {};  // of the thread, whatever the turn of a loop
    std::optional<ir::AtomicOp> update = {};       // of an atomic whose result nobody wants
    std::optional<int64_t> one = {};               // the thread that alone does it
    bool in_flight = false;                        // it comes by the queue cp_async: no barrier puts such in order
  };
  void collect(const ir::Stmt& s, std::optional<int64_t> one, std::vector<Access>& out) const;
  bool clash(const Access& a, const Access& b) const;

  const ir::ProgramTables& program_;
  const ir::Launch& launch_;
  const analysis::OwnElements own_;
  std::vector<Access> run_;
};

}  // namespace tilewright::passes
