#include "passes/loops/side_by_side.h"

#include "analysis/slope.h"
#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/index.h"
#include "passes/lower/strands.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Blocks that must be left: enough for the cores there are, with some to spare where one takes longer.
constexpr int64_t kBlocksLeft = 64;
constexpr int64_t kMostBytes = 32768;  // of copies; as much as is nearest on the processors we know

// Consecutive statements of an iteration: loops and what ends them, or scalars.
struct Step {
  Body body;
  bool scalars = false;
};

bool mentions(const Body& body, BufferId id) { return used_buffers(body).contains(id); }

class SideBySide {
 public:
  SideBySide(LoopProgram& program, int32_t launch) : program_(program), launch_(launch) {}

  std::optional<Stmt> run(const Stmt& s) {
    const For& grid = *s.as<For>();
    const auto blocks = constant_int(grid.extent);
    if (!blocks || constant_int(grid.begin) != 0 || !find_part(grid)) return std::nullopt;
    if (*blocks % parts_ != 0 || *blocks / parts_ < kBlocksLeft) return std::nullopt;
    const Stmt& last = grid.body.back();
    const For* rows = last.as<For>();
    if (!rows || rows->kind != LoopKind::Serial || depends(rows->begin) || depends(rows->extent)) return std::nullopt;
    if (!plain(rows->body) || !reads_beside(rows->body)) return std::nullopt;
    const std::vector<Step> steps = steps_of(rows->body);
    if (steps.size() < 2 || !copy_what_stays(steps)) return std::nullopt;

    const VarId block = program_.new_var("block", i64);
    For out = grid;
    out.var = block, out.extent = constant(grid.extent->type, *blocks / parts_), out.body.clear();
    for (size_t k = 0; k + 1 < grid.body.size(); ++k) {
      const auto* n = grid.body[k].as<Let>();
      if (n->var == part_) continue;
      const Expr value = without_part(n->value, grid.var, block);
      if (depends(value) || used_vars(value).contains(grid.var)) return std::nullopt;
      out.body.push_back(make_stmt(Let{n->var, value}, grid.body[k]->location));
    }
    For row = *rows;
    row.body.clear();
    for (const Step& step : steps) row.body.push_back(for_all_parts(step, last->location));
    out.body.push_back(make_stmt(std::move(row), last->location));
    return make_stmt(std::move(out), s->location);
  }

 private:
  // The block's index that changes from block to block: block % parts.
  bool find_part(const For& grid) {
    if (grid.body.empty()) return false;
    for (size_t k = 0; k + 1 < grid.body.size(); ++k) {
      const auto* n = grid.body[k].as<Let>();
      if (!n) return false;
      const auto* c = n->value.as<Cast>();
      const auto* rest = (c ? c->value : n->value).as<Binary>();
      const auto* of = rest && rest->op == BinaryOp::FloorMod ? rest->a.as<Var>() : nullptr;
      if (of && of->id == grid.var && constant_int(rest->b)) part_ = n->var, parts_ = *constant_int(rest->b);
    }
    return parts_ > 1;
  }
  // With the new block in place of block // parts.
  Expr without_part(const Expr& e, VarId old, VarId block) const {
    return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      const auto* n = x.as<Binary>();
      const auto* of = n && n->op == BinaryOp::FloorDiv ? n->a.as<Var>() : nullptr;
      if (!of || of->id != old || constant_int(n->b) != parts_) return std::nullopt;
      return cast(var(block, i64), x->type);
    });
  }
  bool depends(const Expr& e) const { return used_vars(e).contains(part_); }

  // Nothing but loops and elements, of tensors that are the same for all parts and turns.
  bool plain(const Body& body) const {
    bool found = true;
    walk(body, [&](const Stmt& s) {
      const auto* f = s.as<For>();
      const bool loop = f && (f->kind == LoopKind::Serial || f->kind == LoopKind::Vectorized);
      found = found && (loop || s.as<Let>() || s.as<Store>());
    });
    const std::set<VarId> bound = bound_vars(body);
    for (BufferId id : used_buffers(body)) {
      const Buffer& b = program_.buffer(id);
      for (VarId v : vars_of_buffer(program_, id)) found = found && v != part_ && !bound.contains(v);
      found =
          found && !b.is_view() && !b.tile && (b.space == Space::Global || (b.strides.empty() && !b.type.is_packed()));
    }
    return found;
  }
  // Do parts follow one another in the rows of a global tensor that the body reads?
  bool reads_beside(const Body& body) const {
    std::unordered_map<VarId, Expr> lets;
    walk(body, [&](const Stmt& s) {
      if (const auto* n = s.as<Let>()) lets[n->var] = n->value;
    });
    bool found = false;
    walk_exprs(body, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (!n || n->indices.empty() || program_.buffer(n->buffer).space != Space::Global) return;
      bool beside = analysis::slope_through_casts(substitute(n->indices.back(), lets), part_).value_or(0) > 1;
      for (size_t d = 0; d + 1 < n->indices.size(); ++d) beside = beside && !depends(substitute(n->indices[d], lets));
      found = found || beside;
    });
    return found;
  }

  std::vector<Step> steps_of(const Body& body) const {
    std::vector<Step> steps;
    for (const Stmt& s : body) {
      const bool loop = s.as<For>() != nullptr;
      // What takes the result of a reduction out of its lanes belongs to it.
      bool ends = false;
      if (!loop && !steps.empty() && !steps.back().scalars)
        for (BufferId id : used_buffers({s})) {
          const Buffer& b = program_.buffer(id);
          ends = ends || (b.space == Space::Local && b.rank() > 0 && mentions(steps.back().body, id));
        }
      if (steps.empty() || (steps.back().scalars == loop && !ends)) steps.push_back({{}, !loop});
      steps.back().body.push_back(s);
    }
    return steps;
  }

  // Notes the tiles that need copies: those of several steps, and those that a step may find as the last part left
  // them.
  bool copy_what_stays(const std::vector<Step>& steps) {
    int64_t bytes = 0;
    std::map<BufferId, size_t> first;
    std::map<VarId, size_t> bound;
    for (size_t k = 0; k < steps.size(); ++k) {
      for (VarId v : bound_vars(steps[k].body)) bound.try_emplace(v, k);
      for (VarId v : used_vars(steps[k].body))
        if (const auto at = bound.find(v); at != bound.end() && at->second != k) return false;
      for (BufferId id : used_buffers(steps[k].body)) {
        if (program_.buffer(id).space == Space::Global) continue;
        const bool fresh = first.try_emplace(id, k).second;
        if ((fresh && !begins_anew(steps[k].body, id)) || first[id] != k) copied_.insert(id);
      }
    }
    for (BufferId id : copied_) bytes += copies_bytes(id);
    return bytes <= kMostBytes;
  }
  int64_t copies_bytes(BufferId id) const {
    int64_t elements = parts_;
    for (const Expr& e : program_.buffer(id).shape) elements *= constant_int(e).value_or(kMostBytes);
    return elements * std::max(program_.buffer(id).type.storage_bits(), 8) / 8;
  }
  // Does the body begin by storing to all of it?
  bool begins_anew(const Body& body, BufferId id) const {
    const auto at = std::find_if(body.begin(), body.end(), [&](const Stmt& s) { return mentions({s}, id); });
    const Buffer& b = program_.buffer(id);
    const For* f = at->as<For>();
    const Store* store = f && f->body.size() == 1 ? f->body[0].as<Store>() : at->as<Store>();
    if (!store || store->to.buffer != id || b.rank() != (f ? 1 : 0)) return false;
    bool reads = false;
    walk(store->value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      reads = reads || (n && n->buffer == id);
    });
    if (reads || !f) return !reads;
    const auto* v = store->to.indices[0].as<Var>();
    return v && v->id == f->var && constant_int(f->begin) == 0 && equal(cast(f->extent, i64), cast(b.shape[0], i64));
  }

  // The step of every part, each with its copies.
  Stmt for_all_parts(const Step& step, LocationId at) {
    const VarId v = program_.new_var("part", i64);
    For loop;
    loop.var = part_, loop.begin = constant(i64, int64_t{0}), loop.extent = constant(i64, parts_);
    loop.kind = step.scalars ? LoopKind::Vectorized : LoopKind::Serial;
    loop.body = step.body;
    loop.body = with_index(loop, var(v, i64), program_);
    loop.var = v;
    for (BufferId id : copied_) loop.body = with_copies(loop.body, id, v);
    return make_stmt(std::move(loop), at);
  }
  Body with_copies(const Body& body, BufferId id, VarId v) {
    const BufferId copies = copies_of(id);
    auto moved = [&](std::vector<Expr> index) {
      index.insert(index.begin(), var(v, i64));
      return index;
    };
    const Body out = rewrite_exprs(body, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      return n && n->buffer == id ? std::optional(load(copies, moved(n->indices), e->type)) : std::nullopt;
    });
    return rewrite(out, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Store>();
      if (!n || n->to.buffer != id) return std::nullopt;
      return Body{make_stmt(Store{{copies, moved(n->to.indices)}, n->value}, s->location)};
    });
  }
  BufferId copies_of(BufferId id) {
    const auto [at, fresh] = copies_.try_emplace(id);
    if (fresh) {
      Buffer b = program_.buffer(id);
      b.shape.insert(b.shape.begin(), constant(i32, parts_));
      b.space = Space::Shared, b.launch = launch_;
      at->second = program_.new_buffer(std::move(b));
    }
    return at->second;
  }

  LoopProgram& program_;
  int32_t launch_;
  VarId part_;
  int64_t parts_ = 0;
  std::set<BufferId> copied_;
  std::map<BufferId, BufferId> copies_;
};

}  // namespace

LoopProgram side_by_side(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    if (has_waits(program.launches[i])) continue;
    Body& body = program.launches[i].body;
    if (auto together = SideBySide(program, static_cast<int32_t>(i)).run(body.front())) body = {*together};
  }
  return program;
}

}  // namespace tilewright::passes
