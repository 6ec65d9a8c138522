#include "analysis/shared_rows.h"

#include <algorithm>
#include <set>

#include "analysis/own_schedule.h"
#include "ir/any_in.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Every element that a map's body reads or writes, with its indices.
void for_each_element(const Body& body, function_ref<void(BufferId, const std::vector<Expr>&, bool written)> f) {
  walk(body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) f(n->to.buffer, n->to.indices, true);
    if (const auto* n = s.as<Atomic>()) f(n->to.buffer, n->to.indices, true);
  });
  walk_exprs(body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) f(n->buffer, n->indices, false);
  });
}

class RowsToShare {
 public:
  RowsToShare(const ProgramTables& p, const Launch& launch, std::string& why) : p_(p), launch_(launch), why_(why) {}

  std::optional<SharedRows> run() {
    why_ = why_as_written(launch_);
    if (!why_.empty()) return std::nullopt;
    why_ = why_no_cluster(launch_, true);
    if (!why_.empty()) return std::nullopt;
    if (has_own_layouts(p_, launch_)) return refuse("the program says how its tiles lie");
    if (!find_columns()) return std::nullopt;
    do {
      grown_ = false;
      for (const Stmt& s : launch_.body)
        if (!follow(s)) return std::nullopt;
    } while (grown_);
    if (!is_partable()) return std::nullopt;
    return out_;
  }

 private:
  template <class... Args>
  std::nullopt_t refuse(fmt::format_string<Args...> format, Args&&... args) {
    why_ = fmt::format(format, std::forward<Args>(args)...);
    return std::nullopt;
  }
  template <class... Args>
  bool no(fmt::format_string<Args...> format, Args&&... args) {
    return refuse(format, std::forward<Args>(args)...), false;
  }
  const std::string& name(BufferId id) const { return p_.buffer(id).name; }
  bool is_cut(BufferId id) const { return out_.cut.contains(id); }
  bool is_on_chip(BufferId id) const {
    const Space space = p_.buffer(p_.root(id)).space;
    return space == Space::Fragment || space == Space::Shared;
  }

  // The tile with the longest rows.
  bool find_columns() {
    BufferId longest;
    for (BufferId id : used_buffers(launch_.body)) {
      const Buffer& b = p_.buffer(id);
      if (!is_on_chip(id) || b.rank() == 0) continue;
      const int64_t columns = constant_int(b.shape.back()).value_or(0);
      if (columns > out_.columns) out_.columns = columns, longest = id;
    }
    if (!longest.valid()) return no("it has no tile");
    out_.elements = elements_on_chip(p_.buffer(longest));
    return cut(longest, p_.buffer(longest).rank() - 1);
  }
  bool cut(BufferId id, size_t d) {
    const Buffer& b = p_.buffer(id);
    if (const auto known = out_.cut.find(id); known != out_.cut.end())
      return known->second == d || no("the columns of '{}' lie along two dimensions", b.name);
    if (b.is_view() || b.reducer || !b.strides.empty() || !is_on_chip(id))
      return no("'{}' has columns, and is no tile of its own", b.name);
    if (constant_int(b.shape[d]) != out_.columns) return no("'{}' has columns, but not {}", b.name, out_.columns);
    out_.cut[id] = d, grown_ = true;
    return true;
  }

  // What goes along with the columns of what is known.
  bool follow(const Stmt& s) {
    if (const auto* n = s.as<Copy>()) return follow_copy(*n);
    if (const auto* n = s.as<Map>()) return follow_map(*n);
    if (const auto* n = s.as<Reduce>()) return follow_along(*n, kept_dims(*n));
    return match(s->op, [&]<class Op>(const Op& op) {
      if constexpr (CombinesAlong<Op>)
        return follow_between(op.from, op.to) && (!goes_along(op) || no("a {} goes along the columns", Op::name));
      else
        return true;
    });
  }
  template <CombinesAlong Op>
  bool goes_along(const Op& op) const {
    const auto known = out_.cut.find(op.from.buffer);
    return known != out_.cut.end() && static_cast<int64_t>(known->second) == op.dim;
  }

  bool follow_copy(const Copy& c) {
    const bool from = is_cut(c.from.buffer), to = is_cut(c.to.buffer);
    if (!from && !to) return true;
    if (c.im2col.present()) return no("pixels are gathered");
    return follow_between(c.from, c.to);
  }
  bool follow_between(const Region& from, const Region& to) { return follow_into(from, to) && follow_into(to, from); }
  bool follow_into(const Region& from, const Region& to) {
    if (!is_cut(from.buffer)) return true;
    if (!has_columns(from)) return false;
    const int d = dimension_across(from, out_.cut.at(from.buffer), to);
    if (d < 0) return no("columns of '{}' and '{}' do not go together", name(from.buffer), name(to.buffer));
    return !is_on_chip(to.buffer) || (cut(to.buffer, static_cast<size_t>(d)) && has_columns(to));
  }
  // All of them.
  bool has_columns(const Region& r) {
    const size_t d = out_.cut.at(r.buffer);
    if (constant_int(r.extent[d]) == out_.columns && constant_int(r.min[d]) == 0) return true;
    return no("a part of the columns of '{}' is used by itself", name(r.buffer));
  }
  bool follow_along(const Reduce& r, const std::vector<int>& dims) {
    const auto known = out_.cut.find(r.from.buffer);
    if (known == out_.cut.end()) return !is_cut(r.to.buffer) || no("'{}' is of other columns", name(r.from.buffer));
    if (!has_columns(r.from)) return false;
    if (goes_along(r)) return true;
    const auto at = std::ranges::find(dims, static_cast<int>(known->second));
    if (at == dims.end()) return no("columns of '{}' get lost", name(r.from.buffer));
    return cut(r.to.buffer, static_cast<size_t>(at - dims.begin())) && has_columns(r.to);
  }
  bool follow_map(const Map& m) {
    for (bool more = true; std::exchange(more, false);) {
      const auto columns = out_.columns_of(m);
      if (!columns) return true;
      const auto at = std::ranges::find(m.vars, *columns);
      if (constant_int(m.extents[static_cast<size_t>(at - m.vars.begin())]) != out_.columns)
        return no("a map goes over a part of the columns");
      bool fine = true;
      for_each_element(m.body, [&](BufferId id, const std::vector<Expr>& indices, bool) {
        for (size_t d = 0; fine && d < indices.size(); ++d) {
          const auto* v = indices[d].as<Var>();
          if (!v || v->id != *columns || is_cut(id) || !is_on_chip(id)) continue;
          if (constant_int(p_.buffer(id).shape[d]) == out_.columns) more = fine = cut(id, d);
        }
      });
      if (!fine) return false;
    }
    return true;
  }

  // Whether each statement does with a part of the columns what it does with all of them, or is a reduction. Blocks
  // have no order among each other: memory that one statement writes no other one uses.
  bool is_partable() {
    std::map<BufferId, int> users;
    std::set<BufferId> written;
    bool fine = true;
    for (const Stmt& s : launch_.body) {
      std::set<BufferId> used;
      walk({s}, [&](const Stmt& inner) {
        for (const Effect& e : effects_of(inner).list) {
          if (!e.region.valid()) continue;
          const BufferId root = p_.root(e.region.buffer);
          if (fine && root != e.region.buffer && is_cut(root)) fine = no("'{}' is seen in another way", name(root));
          if (p_.buffer(root).space != Space::Global) continue;
          used.insert(root);
          if (e.access != Access::Read) written.insert(root);
        }
      });
      for (BufferId id : used) ++users[id];
    }
    for (BufferId id : written)
      if (fine && users[id] > 1) fine = no("'{}' is written, and used by another statement", name(id));
    for (const Stmt& s : launch_.body) fine = fine && is_partable(s);
    return fine && (joins_ || no("no reduction goes along its columns"));
  }
  bool is_partable(const Stmt& s) {
    if (const auto* n = s.as<Map>()) return is_partable_map(*n);
    if (const auto* n = s.as<Reduce>()) return is_partable_reduce(*n);
    if (const auto* n = s.as<Fill>()) return !is_cut(n->to.buffer) || has_columns(n->to);
    if (const auto* n = s.as<Copy>())
      return is_on_chip(n->from.buffer) || is_on_chip(n->to.buffer) || no("a copy goes from memory to memory");
    if (match(s->op, []<class Op>(const Op&) { return CombinesAlong<Op>; })) return true;
    if (!s.as<Let>() && !s.as<Assert>() && !s.as<Assume>()) return no("it has a {} at its top", name_of(s));
    bool fine = true;
    for_each_expr(s, [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        if (const auto* n = x.as<Load>(); fine && n && is_cut(n->buffer))
          fine = no("an element of '{}' is used by itself", name(n->buffer));
      });
    });
    return fine;
  }
  bool is_partable_reduce(const Reduce& r) {
    if (!goes_along(r)) return true;
    joins_ = true;
    const Buffer& to = p_.buffer(r.to.buffer);
    return (is_on_chip(r.to.buffer) && !to.is_view() && is_whole(r.to, to)) ||
           no("columns are reduced to a part of '{}'", to.name);
  }
  bool is_partable_map(const Map& m) {
    const auto columns = out_.columns_of(m);
    bool fine = true;
    walk(m.body, [&](const Stmt& s) {
      const auto* n = s.as<Atomic>();
      if (n && (n->result.valid() || p_.buffer(p_.root(n->to.buffer)).reducer))
        fine = fine && no("a map has an atomic that is more than an update");
      if (!n && !s.as<Store>() && !s.as<Let>() && !s.as<If>() && !s.as<For>() && !s.as<Assert>() && !s.as<Assume>())
        fine = fine && no("a map has a {}", name_of(s));
    });
    for_each_element(m.body, [&](BufferId id, const std::vector<Expr>& indices, bool written) {
      if (!fine) return;
      if (const auto at = out_.cut.find(id); at != out_.cut.end()) {
        const auto* v = indices[at->second].as<Var>();
        if (!columns || !v || v->id != *columns) fine = no("elements of '{}' are read out of their order", name(id));
      } else if (written && columns) {
        const bool each = std::ranges::any_of(indices, [&](const Expr& e) { return used_vars(e).contains(*columns); });
        if (is_on_chip(id) || p_.buffer(p_.root(id)).space != Space::Global || !each)
          fine = no("every column writes to '{}'", name(id));
      }
    });
    return fine;
  }

  const ProgramTables& p_;
  const Launch& launch_;
  std::string& why_;
  SharedRows out_;
  bool grown_ = false;  // a tile more is cut than when statements were looked at
  bool joins_ = false;
};

}  // namespace

std::optional<size_t> SharedRows::dimension_of(BufferId tile) const {
  const auto found = cut.find(tile);
  return found == cut.end() ? std::nullopt : std::optional(found->second);
}

std::optional<VarId> SharedRows::columns_of(const Map& map) const {
  std::optional<VarId> out;
  for_each_element(map.body, [&](BufferId id, const std::vector<Expr>& indices, bool) {
    const auto at = cut.find(id);
    const auto* v = at == cut.end() ? nullptr : indices[at->second].as<Var>();
    if (!out && v && std::ranges::find(map.vars, v->id) != map.vars.end()) out = v->id;
  });
  return out;
}

std::optional<SharedRows> rows_to_share(const ProgramTables& program, const Launch& launch, std::string& why) {
  return RowsToShare(program, launch, why).run();
}

int dimension_across(const Region& of, size_t d, const Region& other) {
  const auto several = [](const Expr& e) { return constant_int(e) != 1; };
  const auto before = std::count_if(of.extent.begin(), of.extent.begin() + static_cast<std::ptrdiff_t>(d), several);
  if (std::ranges::count_if(of.extent, several) != std::ranges::count_if(other.extent, several)) return -1;
  std::ptrdiff_t seen = 0;
  for (size_t i = 0; i < other.extent.size(); ++i) {
    if (!several(other.extent[i])) continue;
    if (seen++ == before) return equal(of.extent[d], other.extent[i]) ? static_cast<int>(i) : -1;
  }
  return -1;
}

}  // namespace tilewright::analysis
