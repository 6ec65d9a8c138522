#include "analysis/operand_agreement.h"

#include "analysis/sure_walk.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

class OperandAgreement : public SureWalk {
 public:
  using SureWalk::SureWalk;

 protected:
  void visit(const Stmt& s) override {
    if (!is_tile_op(s) || s.as<Map>() || !surely_at_first()) return;
    bool own = false;
    for_each_region(s, [&](const Region& r) { own = own || (r.valid() && is_own(r)); });
    if (own) return;
    bool said = false;
    for_each_region(s, [&](const Region& r) {
      for (const std::vector<Expr>* list : {&r.min, &r.extent})
        for (const Expr& e : *list)
          if (!said) said = differs(s, r.buffer, e);
    });
    if (const auto* copy = s.as<Copy>(); copy && copy->completion.barrier.valid())
      for (const Expr& e : copy->completion.barrier.indices)
        if (!said) said = differs(s, copy->completion.barrier.buffer, e);
  }

 private:
  bool is_own(const Region& r) const { return program_.buffer(program_.root(r.buffer)).space == Space::Local; }

  bool differs(const Stmt& s, BufferId of, const Expr& e) {
    std::vector<VarId> vars;
    add_variables(e, vars);
    for (const VarId thread : launch_.thread) {
      const auto span = spans_.find(thread);
      if (span == spans_.end() || std::find(vars.begin(), vars.end(), thread) == vars.end()) continue;
      Point point = first();
      const auto here = index_at(e, point);
      for (int64_t t = span->second.first + 1; here && t <= span->second.last; ++t) {
        point.values[thread] = t;
        const auto there = index_at(e, point);
        if (!there || *there == *here || !holds(point)) continue;
        report(
            Code::OperandsDisagree, s, of,
            fmt::format("threads do this {} together, but not of one part of '{}': it begins or ends at {} for thread "
                        "{} and at {} for thread {}",
                        name_of(s), program_.buffer(of).name, *here, span->second.first, *there, t),
            "make it the same for all threads that come here, as those of a role are: if tx < 32");
        return true;
      }
    }
    return false;
  }
};

}  // namespace

std::vector<Diagnostic> check_operand_agreement(const TileProgram& program) {
  std::vector<Diagnostic> findings;
  for (const Launch& launch : program.launches) {
    OperandAgreement walk(program, launch);
    walk.run();
    findings.insert(findings.end(), walk.findings.begin(), walk.findings.end());
  }
  return findings;
}

}  // namespace tilewright::analysis
