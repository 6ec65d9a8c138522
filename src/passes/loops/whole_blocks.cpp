#include "passes/loops/whole_blocks.h"

#include <algorithm>

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kFewestLoops = 2, kMostStatements = 64;

bool reads_memory(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { found = found || x.as<Load>() || x.as<Address>(); });
  return found;
}

// max(0, min(x, n)): that x is n at least.
std::optional<std::pair<Expr, Expr>> part_of(const Expr& e) {
  const auto* outer = e.as<Binary>();
  if (!outer || outer->op != BinaryOp::Max) return std::nullopt;
  const bool first = constant_int(outer->a) == 0;
  const auto* inner = (first ? outer->b : outer->a).as<Binary>();
  if (!inner || inner->op != BinaryOp::Min || constant_int(first ? outer->a : outer->b) != 0) return std::nullopt;
  const bool whole_first = constant_int(inner->a).has_value();
  const Expr &x = whole_first ? inner->b : inner->a, &n = whole_first ? inner->a : inner->b;
  if (constant_int(n).value_or(0) <= 0 || reads_memory(x)) return std::nullopt;
  return std::pair(x, n);
}

class WholeBlock {
 public:
  WholeBlock(LoopProgram& program, const Body& block) : program_(program), block_(block) {}

  std::optional<Body> run(LocationId at) {
    if (!is_plain()) return std::nullopt;
    Body names, rest;  // names first: nothing of theirs is in memory
    Substitution whole;
    for (const Stmt& s : block_) {
      const auto* let = s.as<Let>();
      if (!let || reads_memory(let->value)) {
        rest.push_back(s);
        continue;
      }
      names.push_back(s);
      if (const auto part = part_of(let->value)) {
        whole[let->var] = cast(part->second, let->value->type);
        ask(binary(BinaryOp::Le, part->second, part->first));
      }
    }
    Body first;
    for (const Stmt& s : rest) {
      const auto* n = s.as<If>();
      if (n && !n->else_body.empty() && !reads_memory(n->condition)) {
        ask(n->condition);
        first.insert(first.end(), n->then_body.begin(), n->then_body.end());
      } else {
        first.push_back(s);
      }
    }
    if (!condition_) return std::nullopt;
    const std::set<VarId> inside = bound_vars(rest);
    std::set<VarId> asked = used_vars(names);
    asked.merge(used_vars(*condition_));
    for (VarId v : asked)
      if (inside.contains(v)) return std::nullopt;
    std::optional<Body> own = with_own_names(substitute(first, whole));
    if (!own) return std::nullopt;
    names.push_back(make_stmt(If{*condition_, std::move(*own), std::move(rest)}, at));
    return names;
  }

 private:
  bool is_plain() const {
    int64_t loops = 0, statements = 0;
    bool plain = true;
    for (const Stmt& s : block_) loops += s.as<For>() || s.as<If>();
    walk(block_, [&](const Stmt& s) {
      ++statements;
      plain = plain && (s.as<For>() || s.as<Let>() || s.as<Store>() || s.as<If>());
    });
    return plain && loops >= kFewestLoops && statements <= kMostStatements;
  }
  void ask(const Expr& e) {
    for (const Expr& known : asked_)
      if (equal(known, e)) return;
    asked_.push_back(e);
    condition_ = condition_ ? binary(BinaryOp::And, *condition_, e) : e;
  }
  // A copy, so that what is found of a name or a tile in one of the two ways is not taken for the other.
  std::optional<Body> with_own_names(const Body& body) {
    std::map<BufferId, BufferId> tiles;
    for (BufferId id : used_buffers(body)) {
      const Buffer b = program_.buffer(id);
      if (b.space == Space::Global) continue;
      const bool viewed =
          b.is_view() || std::ranges::any_of(program_.buffers, [&](const Buffer& x) { return x.root == id; });
      if (viewed) return std::nullopt;
      tiles[id] = program_.new_buffer(b);
    }
    Substitution names;
    std::map<VarId, VarId> vars;
    for (VarId v : bound_vars(body)) {
      const VarInfo info = program_.var(v);
      vars[v] = program_.new_var(info.name, info.type);
      names[v] = var(vars[v], info.type);
    }
    return rewrite(substitute(with_buffers(body, tiles), names), [&](const Stmt& s) -> std::optional<Body> {
      if (const auto* n = s.as<For>()) {
        if (constant_int(n->extent) == 0) return Body{};
        For f = *n;
        f.var = vars.at(n->var);
        return Body{make_stmt(std::move(f), s->location)};
      }
      if (const auto* n = s.as<Let>()) return Body{make_stmt(Let{vars.at(n->var), n->value}, s->location)};
      return std::nullopt;
    });
  }

  LoopProgram& program_;
  const Body& block_;
  std::vector<Expr> asked_;
  std::optional<Expr> condition_;
};

}  // namespace

LoopProgram whole_blocks(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    if (program.launches[i].body.size() != 1) continue;
    const Stmt grid = program.launches[i].body[0];
    const auto* g = grid.as<For>();
    if (!g || g->kind != LoopKind::Grid) continue;
    For out = *g;
    auto body = WholeBlock(program, g->body).run(grid->location);
    if (!body) continue;
    out.body = std::move(*body);
    program.launches[i].body = {make_stmt(std::move(out), grid->location)};
  }
  return program;
}

}  // namespace tilewright::passes
