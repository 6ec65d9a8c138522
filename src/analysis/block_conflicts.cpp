#include "analysis/block_conflicts.h"

#include "analysis/sure_walk.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Whether something may put the blocks of a launch in an order: a lock, a flag, a meeting of blocks, code of the
// user's.
bool may_order_blocks(const Body& body) {
  bool found = false;
  walk(body, [&](const Stmt& s) {
    const auto* sync = s.as<Sync>();
    found = found || s.as<While>() || s.as<Atomic>() || s.as<Call>() || s.as<Wait>() ||
            (sync && sync->scope != SyncScope::Block && sync->scope != SyncScope::Warp);
  });
  return found;
}

class Conflicts : public SureWalk {
 public:
  Conflicts(const TileProgram& program, const Launch& launch) : SureWalk(program, launch) {}

 protected:
  void visit(const Stmt& s) override {
    const auto* store = s.as<Store>();
    if (!store || !surely_at_first()) return;
    const Buffer& root = program_.buffer(program_.root(store->to.buffer));
    if (root.space != Space::Global || root.address || root.reducer) return;
    const auto element = element_at(store->to.indices, first());
    if (!element) return;
    for (size_t d = 0; d < launch_.grid.size(); ++d) {
      if (constant_int(launch_.grid[d]).value_or(2) < 2) continue;
      Point other = first();
      other.values[launch_.block[d]] = 1;
      if (!holds(other) || element_at(store->to.indices, other) != element) continue;
      if (!adds_to(store->value, *store, *element, first()) || !adds_to(store->value, *store, *element, other)) return;
      const std::string text = fmt::format("{}[{}]", program_.buffer(store->to.buffer).name, fmt::join(*element, ", "));
      report(Code::DataRace, s, store->to.buffer,
             fmt::format("{}: blocks {} and {} add to {} by a load and a store, and what one of them adds may be lost",
                         program_.name, block_text(first()), block_text(other), text),
             "add by T.atomic_add (C++: atomic_add), or give every block elements of its own");
      return;
    }
  }

 private:
  using Element = std::vector<int64_t>;

  static std::optional<Element> element_at(const std::vector<Expr>& indices, const Point& point) {
    Element out;
    for (const Expr& e : indices) {
      const auto index = index_at(e, point);
      if (!index) return {};
      out.push_back(*index);
    }
    return out;
  }

  std::string block_text(const Point& point) const {
    Element out;
    for (VarId id : launch_.block) out.push_back(point.values.at(id));
    return out.size() == 1 ? fmt::format("{}", out[0]) : fmt::format("({})", fmt::join(out, ", "));
  }

  // Whether the value is a sum, or a difference, with what the element holds as its first part.
  bool adds_to(const Expr& e, const Store& store, const Element& element, const Point& point) const {
    const auto is_there = [&](const Expr& part) {
      return adds_to(part, store, element, point) || loads(part, store, element, point);
    };
    if (const auto* cast = e.as<Cast>()) return adds_to(cast->value, store, element, point);
    if (const auto* var = e.as<Var>()) {
      const auto name = names_.find(var->id);
      return name != names_.end() && adds_to(name->second, store, element, point);
    }
    if (const auto* sum = e.as<Sum>()) {
      return (sum->terms.size() > 1 || sum->constant != 0) &&
             std::any_of(sum->terms.begin(), sum->terms.end(),
                         [&](const Term& t) { return t.coefficient == 1 && is_there(t.value); });
    }
    const auto* n = e.as<Binary>();
    if (!n || (n->op != BinaryOp::Add && n->op != BinaryOp::Sub)) return false;
    return is_there(n->a) || (n->op == BinaryOp::Add && is_there(n->b));
  }
  bool loads(const Expr& e, const Store& store, const Element& element, const Point& point) const {
    if (const auto* cast = e.as<Cast>()) return loads(cast->value, store, element, point);
    if (const auto* var = e.as<Var>()) {
      const auto name = names_.find(var->id);
      return name != names_.end() && loads(name->second, store, element, point);
    }
    const auto* load = e.as<Load>();
    return load && load->buffer == store.to.buffer && element_at(load->indices, point) == element;
  }
};

}  // namespace

std::vector<Diagnostic> check_block_conflicts(const TileProgram& program) {
  std::vector<Diagnostic> findings;
  for (const Launch& launch : program.launches) {
    if (may_order_blocks(launch.body)) continue;
    Conflicts walk(program, launch);
    walk.run();
    findings.insert(findings.end(), walk.findings.begin(), walk.findings.end());
  }
  return findings;
}

}  // namespace tilewright::analysis
