#include "analysis/first_reads.h"

#include "analysis/sure_walk.h"
#include "ir/effects.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr const char* kFillIt = "fill it, or copy something to it, before";

void add_writes(const Stmt& s, const ProgramTables& program, Writes& to) {
  for (const Effect& e : effects_of(s).list)
    if (e.region.valid() && (e.access != Access::Read || s.as<Call>())) ++to[program.root(e.region.buffer)];
}

class FirstReads : public SureWalk {
 public:
  FirstReads(const ProgramTables& program, const Launch& launch)
      : SureWalk(program, launch), all_(writes_in(launch.body, program)) {}

 protected:
  void visit(const Stmt& s) override {
    const bool uses = !s.as<Assume>() && !s.as<Assert>() && !s.as<Print>();  // a print shows what is there
    if (uses && !uncertain_) {
      for_each_load(s, [&](const Load& load) { read(s, load.buffer, kFillIt); });
      match(s->op, [&](const auto& op) { reads_of(s, op); });
    }
    add_writes(s, program_, written_);
  }

 private:
  template <class Op>
  void reads_of(const Stmt&, const Op&) {}
  template <TileOp Op>
  void reads_of(const Stmt& s, const Op&) {
    const std::string combines = fmt::format("the {} combines with what is there: clear it before", Op::name);
    for (const Effect& e : own_effects_of(s).list) {
      if (e.access == Access::Read) read(s, e.region.buffer, kFillIt);
      if (e.access == Access::Accumulate) read(s, e.region.buffer, combines);
    }
  }
  void reads_of(const Stmt& s, const Gemm& op) {
    for (const Region* r : {&op.a, &op.b, &op.metadata})
      if (r->valid()) read(s, r->buffer, "copy the operand to it before");
    if (!op.clear || value_at(op.clear, first()) == 0)
      read(s, op.c.buffer,
           fmt::format("gemm adds to '{}': clear it before, or let the first gemm start from zero (clear_accum)",
                       program_.buffer(op.c.buffer).name));
  }
  void reads_of(const Stmt& s, const Reduce& op) {
    read(s, op.from.buffer, kFillIt);
    if (!op.clear) read(s, op.to.buffer, "without clear, reduce combines with what is there: fill it before");
  }
  void reads_of(const Stmt& s, const Atomic& op) {
    if (op.op != AtomicOp::Store && op.op != AtomicOp::Exchange)
      read(s, op.to.buffer, "the atomic changes what is there: clear it before");
  }

  void read(const Stmt& s, BufferId id, const std::string& help) {
    const BufferId root = program_.root(id);
    const Buffer& buffer = program_.buffer(root);
    const bool tile = buffer.space == Space::Shared || buffer.space == Space::Fragment || buffer.space == Space::Local;
    if (!tile || buffer.reducer || written_.contains(root) || !surely_at_first()) return;
    // Who waits for other threads may read what stands behind.
    const int mine = apart_ ? writes_apart(root) : all_[root];
    if (all_[root] > mine || (!apart_ && guarded_by_others() && all_[root] > 0)) return;
    ++written_[root];  // said once
    report(Code::ReadBeforeWrite, s, id,
           fmt::format("'{}' is read before anything is written to it", program_.buffer(id).name), help);
  }

  // A part of an expression that only some threads evaluate.
  bool guarded_by_others() const {
    return std::any_of(guards_.begin(), guards_.end(), [&](const Guard& g) { return !is_of_loops(g.condition); });
  }

  int writes_apart(BufferId root) {
    auto [found, fresh] = in_body_.try_emplace(apart_);
    if (fresh) found->second = writes_in(*apart_, program_);
    return found->second[root];
  }

  Writes all_, written_;
  std::map<const Body*, Writes> in_body_;
};

// Whether a caller can tell that the program ran.
bool is_seen(const TileProgram& program) {
  bool seen = false;
  for (const Launch& launch : program.launches)
    walk(launch.body, [&](const Stmt& s) {
      seen = seen || s.as<Print>() || s.as<Assert>() || s.as<Call>();
      for (const Effect& e : effects_of(s).list)
        seen = seen || (e.access != Access::Read && e.region.valid() &&
                        program.buffer(program.root(e.region.buffer)).space == Space::Global);
    });
  return seen;
}

}  // namespace

Writes writes_in(const Body& body, const ProgramTables& program) {
  Writes out;
  walk(body, [&](const Stmt& s) { add_writes(s, program, out); });
  return out;
}

std::vector<Diagnostic> check_first_reads(const TileProgram& program) {
  std::vector<Diagnostic> findings;
  if (!is_seen(program)) return findings;
  for (const Launch& launch : program.launches) {
    FirstReads walk(program, launch);
    walk.run();
    findings.insert(findings.end(), walk.findings.begin(), walk.findings.end());
  }
  return findings;
}

}  // namespace tilewright::analysis
