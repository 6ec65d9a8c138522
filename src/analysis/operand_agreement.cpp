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
    if (const auto* store = s.as<Store>()) return element(*store, s);
    if (!is_tile_op(s) || s.as<Map>() || !surely_at_first()) return;
    bool own = false;
    for_each_region(s, [&](const Region& r) { own = own || (r.valid() && is_own(r)); });
    if (own) return;
    bool said = false;
    const auto part = [&](BufferId of, const Expr& e) {
      if (said) return;
      if (const auto d = difference(e, index_at))
        said = true, tell(s, of, *d, fmt::format("of one part of '{}': it begins or ends", program_.buffer(of).name));
    };
    for_each_region(s, [&](const Region& r) {
      for (const std::vector<Expr>* list : {&r.min, &r.extent})
        for (const Expr& e : *list) part(r.buffer, e);
    });
    if (const auto* copy = s.as<Copy>(); copy && copy->completion.barrier.valid())
      for (const Expr& e : copy->completion.barrier.indices) part(copy->completion.barrier.buffer, e);
    if (const auto* fill = s.as<Fill>(); fill && !said)
      if (const auto d = difference(as_integer(fill->value), value_at))
        tell(s, fill->to.buffer, *d, "with one value: it is");
  }

 private:
  // An element of a fragment, which is one tile for all threads, gets what memory holds at one place for this thread
  // and at another for that one.
  void element(const Store& n, const Stmt& s) {
    const Buffer& b = program_.buffer(n.to.buffer);
    const bool in_map =
        std::any_of(spans_.begin(), spans_.end(), [](const auto& v) { return v.second.kind == Kind::Map; });
    if (b.space != Space::Fragment || b.reducer || in_map || uncertain_) return;
    for (const Expr& e : n.to.indices)
      if (!is_of_loops(e)) return;
    std::optional<Difference> apart;
    walk(n.value, [&](const Expr& e) {
      const auto* from = e.as<Load>();
      if (!from || apart || program_.buffer(program_.root(from->buffer)).space == Space::Local) return;
      for (const Expr& i : from->indices)
        if (!apart) apart = among_threads(i);
    });
    if (apart)
      report(
          Code::OperandsDisagree, s, n.to.buffer,
          fmt::format("threads store to one element of the fragment '{}' what each reads from a place of its own: {} "
                      "for thread {} and {} for thread {}",
                      b.name, apart->here, apart->first, apart->there, apart->other),
          "a fragment is one tile of all threads: what each has for itself is T.alloc_local, alloc_local in C++");
  }

  bool is_own(const Region& r) const { return program_.buffer(program_.root(r.buffer)).space == Space::Local; }

  // Of a number that float32 or float64 has exactly, as those of threads are, the integer.
  static Expr as_integer(const Expr& e) {
    const auto* c = e.as<Cast>();
    return c && e->type.is_float() && e->type.bits >= 32 ? c->value : e;
  }
  struct Difference {
    int64_t first, here, other, there;  // a thread and what it is there
  };
  using Value = std::optional<int64_t> (*)(const Expr&, const Point&);

  std::optional<Difference> difference(const Expr& e, Value value) {
    std::vector<VarId> vars;
    add_variables(e, vars);
    for (const VarId thread : launch_.thread) {
      const auto span = spans_.find(thread);
      if (span == spans_.end() || std::find(vars.begin(), vars.end(), thread) == vars.end()) continue;
      Point point = first();
      const auto here = value(e, point);
      for (int64_t t = span->second.first + 1; here && t <= span->second.last; ++t) {
        point.values[thread] = t;
        const auto there = value(e, point);
        if (there && *there != *here && holds(point)) return Difference{span->second.first, *here, t, *there};
      }
    }
    return std::nullopt;
  }
  // Two threads that surely come here and have different values of an index.
  std::optional<Difference> among_threads(const Expr& e) {
    std::vector<VarId> vars;
    add_variables(e, vars);
    for (const VarId thread : launch_.thread) {
      const auto span = spans_.find(thread);
      if (span == spans_.end() || std::find(vars.begin(), vars.end(), thread) == vars.end()) continue;
      std::optional<Difference> out;
      Point point = first();
      for (int64_t t = span->second.first; t <= span->second.last; ++t) {
        point.values[thread] = t;
        if (!holds(point)) continue;
        const auto there = index_at(e, point);
        if (!there) break;
        if (!out) out = Difference{t, *there, t, *there};
        if (*there != out->here) return Difference{out->first, out->here, t, *there};
      }
    }
    return std::nullopt;
  }
  void tell(const Stmt& s, BufferId of, const Difference& d, const std::string& what) {
    const char* at = s.as<Fill>() && what.starts_with("with") ? "" : "at ";
    report(Code::OperandsDisagree, s, of,
           fmt::format("threads do this {} together, but not {} {}{} for thread {} and {}{} for thread {}", name_of(s),
                       what, at, d.here, d.first, at, d.there, d.other),
           "make it the same for all threads that come here, as those of a role are: if tx < 32");
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
