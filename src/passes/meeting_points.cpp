#include "passes/meeting_points.h"

#include "analysis/value_at.h"
#include "ir/names.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

using Vars = std::set<VarId>;

constexpr int64_t kMostPoints = 1 << 16;  // of a map that are looked at one by one

// One map: which of its variables do not choose the element that its points change.
class Meeting {
 public:
  Meeting(const ProgramTables& program, const Map& map) : program_(program), map_(map) {
    for (size_t d = 0; d < map.vars.size(); ++d)
      if (constant_int(map.extents[d]) != 1) points_.insert(map.vars[d]);
    collect(map.body, {});
    for (BufferId id : used_buffers(map.body)) {
      const Buffer& b = program.buffer(program.root(id));
      is_dealt_ = is_dealt_ || (b.space == Space::Fragment && b.layout.kind == LayoutHint::Function);
    }
  }
  Vars vars() const {
    Vars out;
    for (const Change& c : stores_) {
      const bool is_read = std::any_of(loads_.begin(), loads_.end(), [&](const auto& load) {
        return load.first == c.buffer && equal(load.second, c.indices);
      });
      if (!is_read) continue;
      for (VarId v : points_)
        if (!c.chosen_by.contains(v)) out.insert(v);
      if (!is_dealt_ && !is_told_apart(c)) meet(c, out);
    }
    return out;
  }

 private:
  struct Change {
    BufferId buffer;
    std::vector<Expr> indices;
    Vars chosen_by;  // variables of the map in an index, or of which one value alone comes here
    std::vector<std::pair<Expr, bool>> guards;
  };
  // Each variable of the map in the indices is alone in one of them, as a term.
  bool is_told_apart(const Change& c) const {
    Vars alone, all;
    for (const Expr& e : c.indices) {
      const Vars here = points_of(e);
      all.insert(here.begin(), here.end());
      const auto is_term = [&](VarId v) {
        const auto is_it = [&](const Expr& x) { return x.as<Var>() && x.as<Var>()->id == v; };
        const auto* s = e.as<Sum>();
        return is_it(e) ||
               (s && std::ranges::any_of(s->terms, [&](const Term& t) { return is_it(t.value); }) &&
                std::ranges::count_if(s->terms, [&](const Term& t) { return used_vars(t.value).contains(v); }) == 1);
      };
      if (here.size() == 1 && is_term(*here.begin())) alone.insert(*here.begin());
    }
    return alone == all;
  }
  // Whether points that are apart with the variables around the map at 0 are so whatever these are: they are added to
  // what the points say. That strides of the call lead past each other is the program's word.
  bool is_shifted(const Expr& e) const {
    std::vector<Term> terms{{1, e}};
    if (const auto* s = e.as<Sum>()) terms = s->terms;
    return std::ranges::all_of(terms, [&](const Term& t) { return is_shifted_term(t.value); });
  }
  bool is_shifted_term(const Expr& e) const {
    if (is_pure(e)) return true;
    if (const auto* c = e.as<Cast>()) return c->value->type.is_int() && e->type.is_int() && is_shifted(c->value);
    const auto* b = e.as<Binary>();
    if (!b) return false;
    if (b->op == BinaryOp::Mul) return is_pure(b->a) && is_pure(b->b);
    const int64_t by = constant_int(b->b).value_or(0);
    if ((b->op != BinaryOp::FloorDiv && b->op != BinaryOp::FloorMod) || by <= 0) return false;
    const auto* s = b->a.as<Sum>();
    return s && std::ranges::all_of(s->terms, [&](const Term& t) {
             const bool whole = b->op == BinaryOp::FloorMod || t.coefficient % by == 0;
             return points_of(t.value).empty() ? whole : is_pure(t.value);
           });
  }
  // One term with points, which is an exclusive or of these alone and of what is the same for all points, whatever that
  // is: a partner in a sorting network. Points that differ have different ones.
  bool is_exchanged(const Expr& e) const {
    std::vector<Term> terms{{1, e}};
    if (const auto* s = e.as<Sum>()) terms = s->terms;
    std::erase_if(terms, [&](const Term& t) { return points_of(t.value).empty(); });
    const auto* b = terms.size() == 1 ? terms[0].value.as<Binary>() : nullptr;
    return b && b->op == BinaryOp::BitXor && is_pure(b->a) && is_pure(b->b) &&
           (points_of(b->a).empty() || points_of(b->b).empty());
  }
  // Of the points alone, or of nothing of them.
  bool is_pure(const Expr& e) const {
    const Vars here = points_of(e);
    return here.empty() || std::ranges::all_of(used_vars(e), [&](VarId v) { return is_of_map(v); });
  }
  bool is_of_map(VarId v) const { return std::ranges::find(map_.vars, v) != map_.vars.end(); }
  // Points that come to one element though their indices look different, `i % 2`: the variables in which they differ.
  // Variables around the map count as 0; an index of which they say more than where it begins tells nothing apart.
  void meet(const Change& c, Vars& out) const {
    std::vector<int64_t> extents;
    int64_t count = 1;
    for (const Expr& e : map_.extents) {
      extents.push_back(constant_int(e).value_or(kMostPoints + 1));
      if (extents.back() <= 0 || (count *= extents.back()) > kMostPoints) return;
    }
    analysis::Point point;
    std::vector<Expr> indices;
    for (const Expr& e : c.indices) {
      bool loads = false;
      walk(e, [&](const Expr& x) { loads = loads || x.as<Load>(); });
      if (loads) return;  // elements that memory names are the program's to tell apart
      if (!is_shifted(e) && !is_exchanged(e)) continue;
      indices.push_back(e);
      for (VarId v : used_vars(e)) point.values[v] = 0;
    }
    std::vector<std::pair<Expr, bool>> guards;  // that the points decide
    for (const auto& guard : c.guards)
      if (!points_of(guard.first).empty() && is_pure(guard.first)) guards.push_back(guard);
    std::map<std::vector<int64_t>, int64_t> seen;
    for (int64_t number = 0; number < count; ++number) {
      int64_t left = number;
      for (size_t d = extents.size(); d-- > 0; left /= extents[d]) point.values[map_.vars[d]] = left % extents[d];
      const bool comes = std::ranges::all_of(guards, [&](const auto& guard) {
        const auto value = analysis::value_at(guard.first, point);
        return !value || (*value != 0) == guard.second;
      });
      if (!comes) continue;
      std::vector<int64_t> element;
      for (const Expr& e : indices) {
        const auto index = analysis::index_at(e, point);
        if (!index) return;
        element.push_back(*index);
      }
      const auto [other, fresh] = seen.try_emplace(std::move(element), number);
      if (fresh) continue;
      int64_t a = number, b = other->second;
      Vars differ;
      for (size_t d = extents.size(); d-- > 0; a /= extents[d], b /= extents[d])
        if (a % extents[d] != b % extents[d]) differ.insert(map_.vars[d]);
      // One thread makes the turns of points that differ in these alone.
      out.insert(differ.begin(), differ.end());
    }
  }
  // What names stand for in the body is put in.
  std::vector<Expr> spelled(const std::vector<Expr>& indices) const {
    std::vector<Expr> out;
    for (const Expr& e : indices) out.push_back(spelled(e));
    return out;
  }
  Expr spelled(const Expr& e) const { return spelled_out(e, names_).value_or(e); }
  void note_name(const Let& let) {
    points_of_names_[let.var] = points_of(let.value);
    if (const auto whole = spelled_out(let.value, names_)) names_[let.var] = *whole;
  }
  // The variables of the map that choose a value, through names too that are not put in.
  Vars points_of(const Expr& e) const {
    Vars out;
    for (VarId v : used_vars(e)) {
      if (points_.contains(v)) out.insert(v);
      if (const auto name = points_of_names_.find(v); name != points_of_names_.end())
        out.insert(name->second.begin(), name->second.end());
    }
    return out;
  }
  bool is_own(BufferId id) const {
    const Buffer& b = program_.buffer(program_.root(id));
    return b.space == Space::Local || b.space == Space::Barrier || b.reducer;
  }
  // The variables for which the condition holds at one value: j == 0, whatever the other conditions are.
  void add_told(const Expr& condition, Vars& told) const {
    const auto* b = condition.as<Binary>();
    if (!b) return;
    if (b->op == BinaryOp::And) return add_told(b->a, told), add_told(b->b, told);
    if (b->op != BinaryOp::Eq) return;
    const auto tell = [&](const Expr& one, const Expr& other) {
      const auto* v = one.as<Var>();
      if (v && points_.contains(v->id) && points_of(other).empty()) told.insert(v->id);
    };
    tell(b->a, b->b), tell(b->b, b->a);
  }
  void collect(const Body& body, const Vars& told) {
    for (const Stmt& s : body) {
      for_each_expr(s, [&](const Expr& whole) {
        walk(whole, [&](const Expr& e) {
          const auto* load = e.as<Load>();
          if (load && !is_own(load->buffer)) loads_.emplace_back(load->buffer, spelled(load->indices));
        });
      });
      if (const auto* let = s.as<Let>()) {
        note_name(*let);
      } else if (const auto* store = s.as<Store>()) {
        if (is_own(store->to.buffer)) continue;
        Change c{store->to.buffer, spelled(store->to.indices), told, guards_};
        for (const Expr& e : c.indices)
          for (VarId v : points_of(e)) c.chosen_by.insert(v);
        stores_.push_back(std::move(c));
      } else if (const auto* branch = s.as<If>()) {
        Vars inside = told;
        const Expr condition = spelled(branch->condition);
        add_told(condition, inside);
        guards_.emplace_back(condition, true);
        collect(branch->then_body, inside);
        guards_.back().second = false;
        collect(branch->else_body, told);
        guards_.pop_back();
      } else {
        for_each_body(s, [&](const Body& inside) { collect(inside, told); });
      }
    }
  }

  const ProgramTables& program_;
  const Map& map_;
  Vars points_;
  bool is_dealt_ = false;                  // to the threads that the program says: which points meet in one is its word
  Substitution names_;                     // of values that are not too large
  std::map<VarId, Vars> points_of_names_;  // of all
  std::vector<std::pair<Expr, bool>> guards_;
  std::vector<Change> stores_;
  std::vector<std::pair<BufferId, std::vector<Expr>>> loads_;
};

}  // namespace

void let_meeting_points_take_turns(TileProgram& program, Launch& launch) {
  launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* map = s.as<Map>();
    if (!map) return std::nullopt;
    const Vars turns = Meeting(program, *map).vars();
    if (turns.empty()) return std::nullopt;
    Map out;
    out.body = map->body;
    for (size_t d = map->vars.size(); d-- > 0;) {
      const VarId v = map->vars[d];
      if (!turns.contains(v)) continue;
      For loop;
      loop.var = v;
      loop.begin = constant(program.var(v).type, int64_t{0});
      loop.extent = map->extents[d];
      loop.body = std::move(out.body);
      out.body = {make_stmt(std::move(loop), s->location)};
    }
    for (size_t d = 0; d < map->vars.size(); ++d)
      if (!turns.contains(map->vars[d])) out.vars.push_back(map->vars[d]), out.extents.push_back(map->extents[d]);
    if (out.vars.empty()) {  // one point makes all the turns
      out.vars.push_back(program.new_var("point", program.var(map->vars[0]).type));
      out.extents.push_back(constant(program.var(map->vars[0]).type, int64_t{1}));
    }
    return Body{make_stmt(std::move(out), s->location)};
  });
}

}  // namespace tilewright::passes
