#include "passes/tile/reducer_parts.h"

#include <cmath>

#include "analysis/accessed.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/lowering.h"
#include "passes/threads/fragment_box.h"

namespace tilewright::passes {

using namespace ir;
using analysis::Followed;
using analysis::followed;

namespace {

constexpr int64_t kMaxParts = 64;  // registers of a thread for what one map contributes

class ReducerParts {
 public:
  ReducerParts(TileProgram& p, Launch& launch) : p_(p), launch_(launch) {
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* n = s.as<FinalizeReducer>(); n && may_be_parts(n->buffer)) found_.insert(n->buffer);
    });
    if (found_.empty()) return;
    std::map<BufferId, int> contributions;
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Atomic>()) ++contributions[n->to.buffer];
      if (const auto* n = s.as<Fill>(); n && !is_number(n->value)) found_.erase(n->to.buffer);
    });
    bool has_roles = false;
    walk(launch.body, [&](const Stmt& s) { has_roles = has_roles || s.as<Role>(); });
    const std::pair<int64_t, int64_t> all{0, launch.thread_count()};
    std::map<BufferId, Uses> uses;
    note(launch.body, all, uses);
    std::erase_if(found_, [&](BufferId id) {
      const Uses& u = uses[id];
      return contributions[id] != u.contributions || u.roles.size() > 1 || (has_roles && u.roles.contains(all));
    });
  }

  void run() {
    if (found_.empty()) return;
    launch_.body = rewrite(launch_.body, [&](const Stmt& s) -> std::optional<Body> {
      if (const auto* n = s.as<FinalizeReducer>(); n && found_.contains(n->buffer)) return Body{};
      if (s.as<Map>()) return reduced_map(s);
      return std::nullopt;
    });
    for (BufferId id : found_) p_.buffers[id.index].reducer.reset();
  }

 private:
  struct Uses {
    int contributions = 0;  // of maps
    // Several roles may contribute at once, and what all threads finalize keeps roles apart that would run beside each
    // other.
    std::set<std::pair<int64_t, int64_t>> roles;
  };
  void note(const Body& body, std::pair<int64_t, int64_t> role, std::map<BufferId, Uses>& out) const {
    for (const Stmt& s : body) {
      const auto* map = s.as<Map>();
      const auto* inner = s.as<Role>();
      if (map)
        for (const auto& [id, count] : contributions_of(*map)) out[id].contributions += count;
      if (const auto* n = s.as<FinalizeReducer>()) out[n->buffer].roles.insert(role);
      bool leaf = map != nullptr;
      if (!map) {
        bool bodies = false;
        for_each_body(s, [&](const Body& b) {
          bodies = true;
          note(b, inner ? std::pair{inner->begin, inner->end} : role, out);
        });
        leaf = !bodies;
      }
      if (leaf)
        for (BufferId id : used_buffers({s})) out[id].roles.insert(role);
    }
  }
  // Sums of narrow floats round at every contribution.
  bool may_be_parts(BufferId id) const {
    const Buffer& b = p_.buffer(id);
    if (!b.reducer || b.is_view() || b.type.is_packed() || b.type.is_bool()) return false;
    if (std::any_of(p_.buffers.begin(), p_.buffers.end(), [&](const Buffer& v) { return v.is_view() && v.root == id; }))
      return false;
    return *b.reducer != ReduceOp::Sum || !b.type.is_float() || b.type.bits >= 32;
  }
  // A maximum that begins with NaN, and finds nothing else, is NaN: a Reduce does not say so.
  static bool is_number(const Expr& value) {
    if (!value->type.is_float()) return true;
    const auto known = constant_float(value);
    return known && !std::isnan(*known);
  }

  // Which dimensions of a Map's points each of the reducer's is; none: not every element, or by something else.
  std::optional<Followed> of_points(const Map& map, const Atomic& n) const {
    if (n.result.valid() || n.order != MemoryOrder::Relaxed) return std::nullopt;
    std::vector<int64_t> points, shape;
    for (const Expr& e : map.extents) points.push_back(constant_int(e).value_or(0));
    for (const Expr& e : p_.buffer(n.to.buffer).shape) shape.push_back(constant_int(e).value_or(-1));
    int64_t count = 1;
    for (int64_t extent : points) count *= extent;
    if (count <= 0 || count > kMaxParts * launch_.thread_count()) return std::nullopt;
    auto out = followed(n.to.indices, map.vars);
    if (!out || !out->is_whole(points, shape)) return std::nullopt;
    std::vector<int> kept = kept_of(*out);
    // One sum of all points is kept in parts already (map_sums.h).
    if (!std::is_sorted(kept.begin(), kept.end())) return std::nullopt;
    return std::any_of(kept.begin(), kept.end(), [&](int d) { return points[static_cast<size_t>(d)] > 1; })
               ? out
               : std::nullopt;
  }
  static std::vector<int> kept_of(const Followed& box) {
    std::vector<int> kept;
    for (int d : box.dims)
      if (d >= 0) kept.push_back(d);
    return kept;
  }
  // How many contributions a Map makes to each reducer that it may keep in parts.
  std::map<BufferId, int> contributions_of(const Map& map) const {
    std::map<BufferId, int> out;
    std::map<BufferId, std::vector<int>> dims;
    for (BufferId b : used_buffers(map.body))  // points that use a thread's own variables are dealt in order
      if (p_.buffer(p_.root(b)).space == Space::Local) return {};
    walk(map.body, [&](const Stmt& s) {
      const auto* n = s.as<Atomic>();
      if (!n || !found_.contains(n->to.buffer)) return;
      const auto box = of_points(map, *n);
      if (box && dims.try_emplace(n->to.buffer, box->dims).first->second == box->dims) ++out[n->to.buffer];
    });
    return out;
  }

  BufferId fragment(const Buffer& like, std::vector<Expr> shape, LocationId at) {
    Buffer b;
    b.name = like.name + "_parts", b.type = like.type, b.space = Space::Fragment, b.launch = like.launch;
    b.shape = std::move(shape), b.location = at;
    return p_.new_buffer(std::move(b));
  }
  Region whole(BufferId id) const {
    const std::vector<Expr> shape = p_.buffer(id).shape;
    return {id, std::vector<Expr>(shape.size(), constant(0)), shape};
  }

  std::optional<Body> reduced_map(const Stmt& s) {
    const Map map = *s.as<Map>();
    Body before, after;
    std::map<BufferId, BufferId> parts;
    std::vector<Expr> point;
    for (VarId v : map.vars) point.push_back(var(v, p_.var(v).type));
    for (const auto& [id, count] : contributions_of(map)) {
      const Buffer to = p_.buffer(id);
      const BufferId part = fragment(to, map.extents, s->location);
      parts[id] = part;
      const bool alone = count == 1 && std::any_of(map.body.begin(), map.body.end(), [&](const Stmt& x) {
                           return x.as<Atomic>() && x.as<Atomic>()->to.buffer == id;
                         });
      if (alone)
        single_.insert(part);
      else
        before.push_back(make_stmt(Fill{whole(part), identity(*to.reducer, to.type)}, s->location));
      walk(map.body, [&](const Stmt& x) {
        if (const auto* n = x.as<Atomic>(); n && n->to.buffer == id && !boxes_.contains(part))
          boxes_[part] = *of_points(map, *n);
      });
      join(id, part, s->location, after);
    }
    if (parts.empty()) return std::nullopt;
    Map out = map;
    out.body = rewrite(map.body, [&](const Stmt& x) -> std::optional<Body> {
      const auto* n = x.as<Atomic>();
      const auto found = n ? parts.find(n->to.buffer) : parts.end();
      if (found == parts.end()) return std::nullopt;
      const Buffer& to = p_.buffer(found->first);
      const Expr value = cast(n->value, to.type);
      const Expr so_far = load(found->second, point, to.type);
      return Body{make_stmt(Store{{found->second, point},
                                  single_.contains(found->second) ? value : combine(*to.reducer, so_far, value, false)},
                            x->location)};
    });
    before.push_back(make_stmt(std::move(out), s->location));
    before.insert(before.end(), after.begin(), after.end());
    return before;
  }
  // What the points have contributed, along the dimensions that the reducer does not have, and then to what it holds.
  void join(BufferId id, BufferId part, LocationId at, Body& out) {
    const Buffer to = p_.buffer(id);
    const Followed box = boxes_.at(part);
    const std::vector<int> kept = kept_of(box);
    std::vector<Expr> shape = p_.buffer(part).shape;
    for (size_t d = shape.size(); d-- > 0;) {
      if (std::find(kept.begin(), kept.end(), static_cast<int>(d)) != kept.end()) continue;
      Reduce r;
      r.op = *to.reducer, r.from = whole(part), r.dim = static_cast<int64_t>(d);
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d));
      part = fragment(to, shape, at);
      r.to = whole(part);
      out.push_back(make_stmt(std::move(r), at));
    }
    Map map;
    map.extents = shape;
    std::vector<Expr> point, element;
    for (size_t d = 0; d < shape.size(); ++d) {
      map.vars.push_back(p_.new_var("i", i32));
      point.push_back(var(map.vars.back(), i32));
      map.extents[d] = cast(shape[d], i32);
    }
    size_t next = 0;
    for (int d : box.dims) element.push_back(d < 0 ? constant(0) : point[next++]);
    map.body = {make_stmt(
        Store{{id, element}, combine(*to.reducer, load(id, element, to.type), load(part, point, to.type), false)}, at)};
    out.push_back(make_stmt(std::move(map), at));
  }

  TileProgram& p_;
  Launch& launch_;
  std::set<BufferId> found_;
  std::set<BufferId> single_;           // parts that are stored to once a point
  std::map<BufferId, Followed> boxes_;  // by part
};

}  // namespace

TileProgram reducers_to_reductions(TileProgram program) {
  for (Launch& launch : program.launches) ReducerParts(program, launch).run();
  return program;
}

}  // namespace tilewright::passes
