// The tree that joins the lanes of a reduction, found again in loops: host compilers take its last levels apart into
// single elements.
#pragma once
#include "ir/program.h"

namespace tilewright::codegen {

// for half in n, n / 2, .. 1: for lane < half: lanes[lane] = value of lanes[lane] and lanes[lane + half]
struct Fold {
  ir::BufferId lanes;
  int64_t half = 0;  // of the first loop
  std::string join;  // the value, as vector_text() has it
};

struct Folds {
  std::map<const ir::For*, Fold> first;  // by the first loop of each
  std::set<const ir::For*> rest;         // the loops that it stands for
};

// Those of which nothing but the first lane is read afterwards.
Folds folds_of(const ir::Body& body, const ir::ProgramTables& program);

}  // namespace tilewright::codegen
