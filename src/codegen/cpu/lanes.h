// Loops written in vectors of `lanes` iterations (lanes.text.h), as passes/loops/choose_lanes.h has chosen them.
#pragma once
#include "codegen/c_reports.h"

namespace tilewright::codegen {

class LaneLoops : public CReports {
 protected:
  using CReports::CReports;

  // The loop in vectors, and what they leave of its range as scalars.
  void lane_loop(const ir::For& n);
  bool uses_lanes() const { return uses_lanes_; }

  std::set<ir::BufferId> flushed_;  // tiles that may hold zeros for subnormals

 private:
  class Writer;
  bool uses_lanes_ = false;
};

}  // namespace tilewright::codegen
