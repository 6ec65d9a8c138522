#include "passes/threads/name_slots.h"

#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

Expr without_casts(Expr e) {
  while (const auto* c = e.as<Cast>()) {
    if (!c->value->type.is_int()) break;
    e = c->value;
  }
  return e;
}

// A quotient, a remainder or bits of something.
const Binary* part_of(const Expr& e) {
  const auto* n = e.as<Binary>();
  if (!n || constant_int(n->b).value_or(0) <= 0) return nullptr;
  const bool parts = n->op == BinaryOp::FloorMod || n->op == BinaryOp::FloorDiv || n->op == BinaryOp::TruncMod ||
                     n->op == BinaryOp::TruncDiv || n->op == BinaryOp::BitAnd || n->op == BinaryOp::Shr;
  return parts ? n : nullptr;
}

class SlotNames {
 public:
  explicit SlotNames(ThreadProgram& p) : p_(p) {}

  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) out.push_back(inside(s));
    return out;
  }

 private:
  struct Name {
    Expr value;
    const char* name;
    int least;  // times that it is said
  };

  Stmt inside(const Stmt& s) {
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.body = loop(n->body);
      return make_stmt(std::move(f), s->location);
    }
    if (const auto* n = s.as<While>()) return make_stmt(While{n->condition, loop(n->body)}, s->location);
    if (const auto* n = s.as<If>())
      return make_stmt(If{n->condition, body(n->then_body), body(n->else_body)}, s->location);
    if (const auto* n = s.as<Role>()) return make_stmt(Role{n->begin, n->end, body(n->body)}, s->location);
    return s;
  }

  Body loop(Body in) {
    Body lets;
    for (;;) {
      const auto next = next_name(in);
      if (!next) break;
      const VarId id = p_.new_var(next->name, next->value->type);
      const Expr value = next->value;
      in = rewrite_exprs(in, [&](const Expr& e) -> std::optional<Expr> {
        if (e->type == value->type && equal(e, value)) return var(id, value->type);
        return std::nullopt;
      });
      lets.push_back(make_stmt(Let{id, value}, in.front()->location));
    }
    in = body(in);
    in.insert(in.begin(), lets.begin(), lets.end());
    return in;
  }

  // What its slots and phases are computed from comes before they do.
  std::optional<Name> next_name(const Body& in) const {
    std::vector<Name> found;
    const auto note = [&](const Expr& of, const char* name, int least) {
      Expr e = of;
      if (const auto* flips = e.as<Binary>(); flips && flips->op == BinaryOp::BitXor) e = flips->a;
      if (const auto* wide = e.as<Cast>(); wide && wide->value->type == i32) e = wide->value;
      Expr whole = without_casts(e);
      if (!part_of(whole)) return;
      while (const Binary* n = part_of(whole)) whole = without_casts(n->a);
      if (whole.as<Sum>()) found.insert(found.begin(), {whole, "fill", 2});
      found.push_back({e, name, least});
    };
    const auto slot = [&](const Element& barrier) {
      if (!barrier.indices.empty()) note(barrier.indices[0], "slot", 2);
    };
    walk(in, [&](const Stmt& s) {
      if (const auto* n = s.as<Wait>()) slot(n->barrier), note(n->parity, "parity", 1);
      if (const auto* n = s.as<Arrive>()) slot(n->barrier);
      if (const auto* n = s.as<Expect>()) slot(n->barrier);
      if (const auto* n = s.as<Copy>(); n && n->completion.barrier.valid()) slot(n->completion.barrier);
    });
    if (found.empty()) return std::nullopt;
    const std::set<VarId> bound = bound_vars(in);
    for (const Name& n : found)
      if (is_known_before(n.value, bound) && times(n.value, in) >= n.least) return n;
    return std::nullopt;
  }
  static bool is_known_before(const Expr& e, const std::set<VarId>& bound) {
    bool known = true;
    walk(e, [&](const Expr& x) {
      const auto* v = x.as<Var>();
      known = known && !x.as<Load>() && !(v && bound.contains(v->id));
    });
    return known;
  }
  static int times(const Expr& value, const Body& in) {
    int out = 0;
    walk_exprs(in, [&](const Expr& e) { out += e->type == value->type && equal(e, value); });
    return out;
  }

  ThreadProgram& p_;
};

// Names of names go one after the other. Where tensors lie is read with them.
Body without_unread_names(Body body, const ProgramTables& p) {
  const std::set<VarId> of_buffers = vars_of_buffers(p);
  for (;;) {
    std::set<VarId> read = of_buffers;
    walk_exprs(body, [&](const Expr& e) {
      if (const auto* v = e.as<Var>()) read.insert(v->id);
    });
    bool any = false;
    body = rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Let>();
      if (!n || read.contains(n->var)) return std::nullopt;
      any = true;
      return Body{};
    });
    if (!any) return body;
  }
}

}  // namespace

void name_slots(ThreadProgram& program) {
  for (Launch& launch : program.launches)
    launch.body = without_unread_names(SlotNames(program).body(launch.body), program);
}

}  // namespace tilewright::passes
