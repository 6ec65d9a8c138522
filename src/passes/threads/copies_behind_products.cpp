#include "passes/threads/copies_behind_products.h"

#include "analysis/accessed.h"
#include "analysis/body_order.h"
#include "analysis/slots_apart.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;
using analysis::accessed_by;

namespace {

class Turn {
 public:
  Turn(const TileProgram& p, const Placement& placement) : p_(p), placement_(placement) {}

  // With the first product that has copies in front of it before them; none: there is no such.
  std::optional<Body> body(const Body& in) const {
    for (size_t i = 0; i < in.size(); ++i) {
      const auto* gemm = in[i].as<Gemm>();
      if (!gemm || !gemm->completion.immediate() || !placement_.choice_of(in[i]).wgmma) continue;
      size_t first = i;
      bool issues = false;
      for (; first > 0 && may_be_passed(in[first - 1], *gemm); --first) issues = issues || issues_copies(in[first - 1]);
      return issues ? std::optional(with_product_at(in, i, first)) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static bool issues_copies(const Stmt& s) {
    const auto* n = s.as<Commit>();
    return n && n->queue == Queue::CpAsync;
  }
  // What only brings elements: what copies, and names what it does so by, where no barrier and no other order is asked.
  static bool brings(const Stmt& s) {
    if (const auto* n = s.as<Copy>())
      return n->completion.queue == Queue::CpAsync || (n->completion.immediate() && !n->completion.barrier.valid());
    if (s.as<Store>() || s.as<Let>() || issues_copies(s)) return true;
    if (!s.as<If>() && !s.as<For>() && !s.as<Map>()) return false;
    bool all = true;
    for_each_body(s, [&](const Body& b) { all = all && std::ranges::all_of(b, brings); });
    return all;
  }
  bool may_be_passed(const Stmt& s, const Gemm& gemm) const {
    if (!brings(s)) return false;
    if (const auto* name = s.as<Let>(); name && used_vars(Body{make_stmt(gemm)}).contains(name->var)) return false;
    for (BufferId id : accessed_by({s}, p_))
      if (p_.root(gemm.c.buffer) == id || (p_.buffer(id).space == Space::Fragment && p_.root(gemm.a.buffer) == id))
        return false;  // registers that the product has while it is at work (PTX, wgmma.mma_async)
    bool apart = true;
    walk({s}, [&](const Stmt& x) {
      for (const Effect& e : effects_of(x).list)
        if (e.region.valid() && e.access != Access::Read && e.access != Access::Order)
          for (const Region* operand : operands_of(gemm)) apart = apart && are_apart(e.region, *operand);
    });
    return apart;
  }
  static std::vector<const Region*> operands_of(const Gemm& gemm) {
    std::vector<const Region*> out{&gemm.a, &gemm.b};
    if (gemm.is_sparse()) out.push_back(&gemm.metadata);
    return out;
  }
  bool are_apart(const Region& a, const Region& b) const {
    if (!analysis::may_overlap(p_.root(a.buffer), p_.root(b.buffer), p_)) return true;
    if (a.buffer != b.buffer || a.min.size() != b.min.size()) return false;
    for (size_t d = 0; d < a.min.size(); ++d)
      if (constant_int(a.extent[d]) == 1 && constant_int(b.extent[d]) == 1 &&
          analysis::are_other_slots(a.min[d], b.min[d]))
        return true;
    return false;
  }
  static Body with_product_at(const Body& in, size_t product, size_t first) {
    const auto at = [&](size_t i) { return in.begin() + static_cast<std::ptrdiff_t>(i); };
    const LocationId place = in[product]->location;
    Gemm open = *in[product].as<Gemm>();
    open.completion.queue = Queue::Wgmma;
    Body out(in.begin(), at(first));
    out.push_back(Stmt(StmtNode{std::move(open), place, in[product]->id}));
    out.push_back(make_stmt(Commit{Queue::Wgmma}, place));
    out.insert(out.end(), at(first), at(product));
    out.push_back(make_stmt(Drain{Queue::Wgmma, 0, {}}, place));
    out.insert(out.end(), at(product + 1), in.end());
    return out;
  }

  const TileProgram& p_;
  const Placement& placement_;
};

}  // namespace

Body copies_behind_products(const TileProgram& program, const Launch& launch, const Placement& placement) {
  const Turn turn(program, placement);
  return rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* loop = s.as<For>();
    if (!loop) return std::nullopt;
    // Groups of other products are counted: where any is open, this one is not.
    bool open = false;
    walk(loop->body, [&](const Stmt& x) {
      const auto* gemm = x.as<Gemm>();
      open = open || (gemm && !gemm->completion.immediate());
    });
    std::optional<Body> own = open ? std::nullopt : turn.body(loop->body);
    if (!own) return std::nullopt;
    For f = *loop;
    f.body = std::move(*own);
    return Body{Stmt(StmtNode{std::move(f), s->location, s->id})};
  });
}

}  // namespace tilewright::passes
