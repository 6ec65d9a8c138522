#include "passes/threads/clear_in_gemms.h"

#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Clearer {
 public:
  explicit Clearer(const ProgramTables& p) : p_(p) {}

  Body run(const Body& in) const {
    Body out;
    for (size_t i = 0; i < in.size(); ++i) {
      if (const auto* n = in[i].as<If>()) {
        out.push_back(make_stmt(If{n->condition, run(n->then_body), run(n->else_body)}, in[i]->location));
        continue;
      }
      const auto* loop = in[i].as<For>();
      if (!loop) {
        out.push_back(in[i]);
        continue;
      }
      For f = *loop;
      f.body = run(f.body);
      while (!out.empty() && clears_instead(out.back(), f)) out.pop_back();
      out.push_back(make_stmt(std::move(f), in[i]->location));
    }
    return out;
  }
  bool clears_instead(const Stmt& s, For& loop) const {
    const auto* fill = s.as<Fill>();
    if (!fill || !is_zero(fill->value) || constant_int(loop.extent).value_or(0) < 1) return false;
    const BufferId c = fill->to.buffer;
    const Buffer& b = p_.buffer(c);
    if (b.space != Space::Fragment || b.is_view()) return false;
    Stmt* only = nullptr;
    for (Stmt& x : loop.body) {
      if (!used_buffers({x}).contains(c)) continue;
      if (only || !x.as<Gemm>()) return false;
      only = &x;
    }
    if (!only) return false;
    Gemm g = *only->as<Gemm>();
    if (!is_whole(fill->to, b) || !is_whole(g.c, b)) return false;
    if (g.clear || g.a.buffer == c || g.b.buffer == c) return false;
    g.clear = binary(BinaryOp::Eq, var(loop.var, p_.var(loop.var).type), loop.begin);
    *only = make_stmt(std::move(g), (*only)->location);
    return true;
  }
  static bool is_zero(const Expr& e) {
    const auto* c = e.as<Const>();
    return c && c->bits == 0;
  }

 private:
  const ProgramTables& p_;
};

}  // namespace

Body clear_in_gemms(const ProgramTables& program, const Body& body) { return Clearer(program).run(body); }

}  // namespace tilewright::passes
