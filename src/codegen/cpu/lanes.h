// Loops written in vectors: iterations go together as lanes (lanes.text.h) where a function of the loop, or a format of
// memory, takes fewer instructions than the host's compiler makes of its scalar text.
#pragma once
#include "codegen/c_reports.h"

namespace tilewright::codegen {

// What became of a loop that has such a function.
struct LaneReport {
  SourceLocation location;
  std::string function;  // "exp2_f32"
  int64_t lanes = 0;     // 0: the loop is left to the host's compiler
  std::string why = {};  // it is left
};

class LaneLoops : public CReports {
 protected:
  using CReports::CReports;

  // Writes the loop in vectors, and what they leave of its range as scalars. False: nothing has been written, for it
  // has no such function, or something that lanes cannot do.
  bool lane_loop(const ir::For& n);
  bool uses_lanes() const { return uses_lanes_; }
  std::vector<LaneReport> take_lane_reports() { return std::move(lane_reports_); }

 private:
  class Writer;
  bool uses_lanes_ = false;
  std::vector<LaneReport> lane_reports_;
};

}  // namespace tilewright::codegen
