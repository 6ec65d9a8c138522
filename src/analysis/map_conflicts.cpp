#include "analysis/map_conflicts.h"

#include "analysis/sure_walk.h"
#include "ir/effects.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kMostPoints = 4096;     // of a map that are looked at
constexpr int kMostComparisons = 64;      // of two values that are stored to one element
constexpr size_t kMostWriters = 4;        // of one element that are told apart
constexpr int64_t kMostValueNodes = 256;  // of a value that is compared

// A load or store of one point.
struct Touch {
  Stmt stmt;
  BufferId buffer;
  std::vector<Expr> indices;
  Expr value;  // of a store
  std::vector<std::pair<Expr, bool>> guards;
};

// How buffers are filled: what the caller gives, and what is only copied from there.
class Given {
 public:
  explicit Given(const TileProgram& program) : program_(program) {
    for (const Launch& launch : program.launches) {
      walk_exprs(launch.body, [&](const Expr& e) {  // what is done by its address is not seen
        if (const auto* address = e.as<Address>()) computed_.insert(program.root(address->buffer));
      });
      walk(launch.body, [&](const Stmt& s) {
        for (const Effect& e : effects_of(s).list) {
          if (!e.region.valid() || (e.access == Access::Read && !s.as<Call>())) continue;
          const BufferId root = program.root(e.region.buffer);
          const auto* copy = s.as<Copy>();
          if (copy && copy->combine == Combine::None)
            sources_[root].insert(program.root(copy->from.buffer));
          else
            computed_.insert(root);
        }
      });
    }
  }
  bool operator()(BufferId buffer) const {
    const BufferId root = program_.root(buffer);
    if (computed_.contains(root)) return false;
    const Buffer& b = program_.buffer(root);
    const auto from = sources_.find(root);
    if (b.space == Space::Global) return from == sources_.end() && !b.workspace && !b.address;
    return from != sources_.end() && std::all_of(from->second.begin(), from->second.end(), [&](BufferId source) {
             return program_.buffer(source).space == Space::Global && !computed_.contains(source) &&
                    !sources_.contains(source);
           });
  }

 private:
  const TileProgram& program_;
  std::set<BufferId> computed_;
  std::map<BufferId, std::set<BufferId>> sources_;
};

// One map: its accesses, then its points.
class Conflicts : public SureWalk {
 public:
  Conflicts(const TileProgram& program, const Launch& launch, const Given& given)
      : SureWalk(program, launch), given_(given) {}

 protected:
  void visit(const Stmt& s) override {
    if (const auto* map = s.as<Map>()) return begin(s, *map);
    if (const auto* copy = s.as<Copy>())
      look(s, *copy);
    else if (is_tile_op(s) && surely_at_first())
      look_at_op(s);
    if (!map_) return;
    if (!is_inside(s)) return end();
    if (uncertain_ || s.as<Assume>() || s.as<Assert>()) return;
    for_each_load(s, [&](const Load& load) { add(reads_, s, load.buffer, load.indices, {}); });
    if (const auto* store = s.as<Store>()) add(writes_, s, store->to.buffer, store->to.indices, store->value);
  }

 public:
  void finish() {
    if (map_) end();
  }

 private:
  struct Writer {
    int64_t point;
    const Touch* access;
  };
  using Element = std::vector<int64_t>;
  using Writers = std::map<std::pair<BufferId, Element>, std::vector<Writer>>;

  void begin(const Stmt& s, const Map& map) {
    if (map_) end();
    map_ = s, guards_around_ = guards_.size();
    sure_ = surely_at_first();
    around_ = first();
    for (VarId thread : launch_.thread) around_.values.erase(thread);
    before_.clear();
    for (const auto& [id, span] : spans_)
      if (span.kind != Kind::Thread) before_.insert(id);
    for (const auto& [id, value] : names_) before_.insert(id);
    before_.insert(program_.symbols.begin(), program_.symbols.end());
    inside_.clear();
    walk(map.body, [&](const Stmt& inner) { inside_.insert(&*inner); });
  }
  bool is_inside(const Stmt& s) const { return inside_.contains(&*s); }

  void add(std::vector<Touch>& to, const Stmt& s, BufferId id, const std::vector<Expr>& indices, const Expr& value) {
    const Buffer& b = program_.buffer(id);
    const Buffer& root = program_.buffer(program_.root(id));
    const bool own = b.space == Space::Local || b.space == Space::Barrier;
    if (!sure_ || own || root.address || root.reducer) return;
    for (const auto& [var, value_there] : first().values) around_.values.try_emplace(var, value_there);  // loops inside
    Touch access{s, id, indices, value, {}};
    for (size_t i = guards_around_; i < guards_.size(); ++i)
      access.guards.emplace_back(guards_[i].condition, guards_[i].truth);
    to.push_back(std::move(access));
  }

  // ---- points

  // The variables of the map at a point, by its number; the others as at the first turn.
  Point at(int64_t number) const {
    Point point = around_;
    const auto* map = map_.as<Map>();
    for (size_t d = map->vars.size(); d-- > 0; number /= extents_[d]) point.values[map->vars[d]] = number % extents_[d];
    return point;
  }
  std::string name_of(int64_t number) const {
    const Point point = at(number);
    std::vector<int64_t> out;
    for (VarId v : map_.as<Map>()->vars) out.push_back(point.values.at(v));
    return out.size() == 1 ? fmt::format("{}", out[0]) : fmt::format("({})", fmt::join(out, ", "));
  }
  std::string element_text(BufferId id, const Element& element) const {
    return fmt::format("{}[{}]", program_.buffer(id).name, fmt::join(element, ", "));
  }

  std::optional<Element> element_at(const Touch& access, const Point& point) const {
    for (const auto& [condition, truth] : access.guards) {
      const auto value = value_at(condition, point);
      if (!value || (*value != 0) != truth) return {};
    }
    Element out;
    const Buffer& b = program_.buffer(access.buffer);
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const auto index = index_at(access.indices[d], point);
      const auto size = constant_int(b.shape[d]);
      if (!index || *index < 0 || (size && *index >= *size)) return {};
      out.push_back(*index);
    }
    return out;
  }

  // Every variable of the map is told by an index: in one index by a mixed radix, where each coefficient exceeds what
  // the smaller ones can add up to.
  bool is_injective(const Touch& access) const {
    const auto* map = map_.as<Map>();
    std::set<VarId> told;
    for (const Expr& index : access.indices) {
      const auto* sum = index.as<Sum>();
      const std::vector<Term> terms = sum ? sum->terms : std::vector<Term>{{1, index}};
      std::vector<std::pair<int64_t, size_t>> digits;  // coefficient, and which variable
      bool clean = true;
      for (const Term& t : terms) {
        const auto* v = t.value.as<Var>();
        const auto at = v ? std::find(map->vars.begin(), map->vars.end(), v->id) : map->vars.end();
        if (at != map->vars.end())
          digits.emplace_back(std::abs(t.coefficient), static_cast<size_t>(at - map->vars.begin()));
        else
          clean = clean && !depends_on_points(t.value);
      }
      std::sort(digits.begin(), digits.end());
      int64_t reach = 0;
      for (const auto& [coefficient, d] : digits) {
        clean = clean && coefficient > reach;
        reach += coefficient * (constant_int(map->extents[d]).value_or(1) - 1);
      }
      for (const auto& [coefficient, d] : digits)
        if (clean) told.insert(map->vars[d]);
    }
    return std::all_of(map->vars.begin(), map->vars.end(), [&](VarId v) { return told.contains(v); });
  }
  // On the map's variables, or on what its body computes.
  bool depends_on_points(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const auto* v = x.as<Var>();
      found = found || x.as<Load>() || (v && !before_.contains(v->id));
    });
    return found;
  }

  // Whether there is anything to find: most maps read and write element for element.
  bool may_conflict() const {
    if (writes_.empty()) return false;
    std::map<BufferId, const Touch*> first;
    for (const Touch& w : writes_) {
      const auto [one, fresh] = first.emplace(w.buffer, &w);
      if (!is_injective(w) || (!fresh && !equal(one->second->indices, w.indices))) return true;
    }
    return std::any_of(reads_.begin(), reads_.end(), [&](const Touch& r) {
      const auto write = first.find(r.buffer);
      return write != first.end() && !equal(write->second->indices, r.indices);
    });
  }

  // A copy is a map of its elements. Those of a thread's own memory come one after the other, as they lie there.
  void look(const Stmt& s, const Copy& copy) {
    const BufferId id = copy.to.buffer;
    if (copy.from.buffer != id || copy.combine != Combine::None || copy.im2col.present() || !surely_at_first()) return;
    const Buffer& b = program_.buffer(id);
    if (program_.buffer(program_.root(id)).address) return;
    Element both;  // the first element that is on both sides
    int64_t ahead = 0;
    for (size_t d = 0; d < b.rank(); ++d) {
      const auto from = index_at(copy.from.min[d], first()), to = index_at(copy.to.min[d], first());
      const auto extent = value_at(copy.to.extent[d], first()), other = value_at(copy.from.extent[d], first());
      if (!from || !to || !extent || extent != other) return;
      if (ahead == 0) ahead = *to - *from;
      both.push_back(std::max(*from, *to));
      const auto size = constant_int(b.shape[d]);
      if (both.back() < 0 || both.back() >= std::min(*from, *to) + *extent || (size && both.back() >= *size)) return;
    }
    if (ahead == 0 || (ahead < 0 && b.space == Space::Local)) return;
    report(Code::PointsConflict, s, id, fmt::format("the copy reads {} and writes it as well", element_text(id, both)),
           "its elements have no order: copy through a second tile");
  }

  // Other ops take their elements in an order of each engine's own. What combines along a dimension may leave each
  // result where its element was.
  void look_at_op(const Stmt& s) {
    const bool in_place = match(s->op, []<class Op>(const Op&) { return CombinesAlong<Op>; });
    const std::vector<Effect> effects = own_effects_of(s).list;
    for (const Effect& read : effects)
      for (const Effect& write : effects) {
        if (read.access != Access::Read || (write.access != Access::Write && write.access != Access::Accumulate))
          continue;
        const BufferId id = write.region.buffer;
        if (read.region.buffer != id || program_.buffer(program_.root(id)).address) continue;
        bool same = false;
        const auto both = first_of_both(read.region, write.region, same);
        if (both.empty() || (same && in_place)) continue;
        report(Code::PointsConflict, s, id,
               fmt::format("the {} reads {} and writes it as well", ir::name_of(s), element_text(id, both)),
               "its elements have no order: read from a second tile, or write to one");
        return;
      }
  }
  // The first element of both boxes of a buffer, and whether they are the same; empty: none, or not known.
  Element first_of_both(const Region& a, const Region& b, bool& same) const {
    const Buffer& buffer = program_.buffer(a.buffer);
    Element both;
    same = true;
    for (size_t d = 0; d < buffer.rank(); ++d) {
      const auto x = index_at(a.min[d], first()), y = index_at(b.min[d], first());
      const auto to_x = value_at(a.extent[d], first()), to_y = value_at(b.extent[d], first());
      const auto size = constant_int(buffer.shape[d]);
      if (!x || !y || !to_x || !to_y || !size) return {};
      same = same && *x == *y && *to_x == *to_y;
      both.push_back(std::max(*x, *y));
      if (both.back() < 0 || both.back() >= std::min({*x + *to_x, *y + *to_y, *size})) return {};
    }
    return both;
  }

  void end() {
    if (sure_ && may_conflict()) look();
    map_ = Stmt(), reads_.clear(), writes_.clear();
  }

  void look() {
    const auto* map = map_.as<Map>();
    extents_.clear();
    int64_t points = 1;
    for (const Expr& e : map->extents) {
      extents_.push_back(constant_int(e).value_or(1));
      points = std::min(points * extents_.back(), kMostPoints);
    }
    comparisons_ = 0;
    Writers writers;
    for (int64_t number = 0; number < points; ++number) {
      const Point point = at(number);
      for (const Touch& w : writes_)
        if (const auto element = element_at(w, point); element && add_writer(writers, w, *element, number)) return;
    }
    for (int64_t number = 0; number < points; ++number) {
      const Point point = at(number);
      for (const Touch& r : reads_)
        if (const auto element = element_at(r, point); element && check_read(writers, r, *element, number)) return;
    }
  }

  // True: something was found.
  bool add_writer(Writers& writers, const Touch& w, const Element& element, int64_t number) {
    std::vector<Writer>& list = writers[{w.buffer, element}];
    for (const Writer& before : list) {
      if (before.point == number || comparisons_ >= kMostComparisons) continue;
      ++comparisons_;
      if (!differ(value_of(*before.access, before.point), value_of(w, number))) continue;
      report(Code::PointsConflict, w.stmt, w.buffer,
             fmt::format("points {} and {} of the map write different values to {}", name_of(before.point),
                         name_of(number), element_text(w.buffer, element)),
             "give every point its own element, loop serially, or use an atomic");
      return true;
    }
    if (list.size() < kMostWriters) list.push_back({number, &w});
    return false;
  }

  bool check_read(const Writers& writers, const Touch& r, const Element& element, int64_t number) {
    const auto found = writers.find({r.buffer, element});
    if (found == writers.end() || found->second.size() >= kMostWriters) return false;
    const std::vector<Writer>& list = found->second;
    if (std::any_of(list.begin(), list.end(), [&](const Writer& w) { return w.point == number; })) return false;
    for (const Writer& w : list) {
      if (may_keep(w.access->value, *w.access)) continue;
      report(Code::PointsConflict, r.stmt, r.buffer,
             fmt::format("point {} of the map reads {}, which point {} writes", name_of(number),
                         element_text(r.buffer, element), name_of(w.point)),
             "points have no order: loop serially, or write to a second tile");
      return true;
    }
    return false;
  }

  // Whether a store may leave the element as it is: it stores what is there, or the less of that and another value.
  static bool may_keep(const Expr& value, const Touch& to) {
    if (const auto* load = value.as<Load>()) return load->buffer == to.buffer && equal(load->indices, to.indices);
    if (const auto* select = value.as<Select>()) return may_keep(select->a, to) || may_keep(select->b, to);
    const auto* n = value.as<Binary>();
    const bool picks = n && (n->op == BinaryOp::Min || n->op == BinaryOp::Max || n->op == BinaryOp::BitAnd ||
                             n->op == BinaryOp::BitOr);
    return picks && (may_keep(n->a, to) || may_keep(n->b, to));
  }

  // ---- values

  Expr value_of(const Touch& access, int64_t number) const {
    const Point point = at(number);
    int64_t nodes = 0;
    return fixed(access.value, point, nodes);
  }
  // With numbers for variables where they have one. None: too long to look at.
  Expr fixed(const Expr& e, const Point& point, int64_t& nodes) const {
    if (!count(e, nodes)) return {};
    return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      const auto value = x.as<Const>() ? std::nullopt : value_at(x, point);
      if (value) return constant(x->type, *value);
      const auto name = x.as<Var>() ? names_.find(x.as<Var>()->id) : names_.end();
      if (name == names_.end()) return std::nullopt;
      const Expr meant = fixed(name->second, point, nodes);
      return meant ? std::optional(meant) : std::nullopt;
    });
  }
  bool count(const Expr& e, int64_t& nodes) const {
    if (++nodes > kMostValueNodes) return false;
    bool few = true;
    for_each_operand(e, [&](const Expr& x) { few = few && count(x, nodes); });
    return few;
  }

  // Surely, but for values that the caller happens to give twice.
  bool differ(const Expr& a, const Expr& b) const {
    if (!a || !b || a->type != b->type || equal(a, b)) return false;
    if (is_constant(a) && is_constant(b)) {
      const auto x = constant_float(a), y = constant_float(b);
      return x && y ? *x < *y || *y < *x : !x && !y;
    }
    const auto* load_a = a.as<Load>();
    const auto* load_b = b.as<Load>();
    if (load_a && load_b) return load_a->buffer == load_b->buffer && given_(load_a->buffer) && apart(*load_a, *load_b);
    const auto* cast_a = a.as<Cast>();
    const auto* cast_b = b.as<Cast>();
    if (cast_a && cast_b) return !a->type.is_bool() && differ(cast_a->value, cast_b->value);
    const auto* x = a.as<Binary>();
    const auto* y = b.as<Binary>();
    if (!x || !y || x->op != y->op || (x->op != BinaryOp::Add && x->op != BinaryOp::Sub)) return false;
    return (equal(x->a, y->a) && differ(x->b, y->b)) || (equal(x->b, y->b) && differ(x->a, y->a));
  }
  // Two elements that are there, and not one.
  bool apart(const Load& a, const Load& b) const {
    const Buffer& buffer = program_.buffer(a.buffer);
    bool other = false;
    for (size_t d = 0; d < a.indices.size(); ++d) {
      const auto x = constant_int(a.indices[d]), y = constant_int(b.indices[d]), size = constant_int(buffer.shape[d]);
      if (!x || !y || *x < 0 || *y < 0 || (size && (*x >= *size || *y >= *size))) return false;
      other = other || *x != *y;
    }
    return other;
  }

  const Given& given_;
  Stmt map_;
  std::unordered_set<const StmtNode*> inside_;
  size_t guards_around_ = 0;
  bool sure_ = false;
  std::vector<Touch> reads_, writes_;
  std::vector<int64_t> extents_;
  Point around_;
  std::set<VarId> before_;  // variables that are the same at all points
  int comparisons_ = 0;
};

}  // namespace

std::vector<Diagnostic> check_map_conflicts(const TileProgram& program) {
  std::vector<Diagnostic> findings;
  const Given given(program);
  for (const Launch& launch : program.launches) {
    Conflicts walk(program, launch, given);
    walk.run();
    walk.finish();
    findings.insert(findings.end(), walk.findings.begin(), walk.findings.end());
  }
  return findings;
}

}  // namespace tilewright::analysis
