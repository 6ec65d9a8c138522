#include "passes/tile/widen_operands.h"

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/lowering.h"
#include "passes/schedule/role_code.h"
#include "target/mma.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool holds_all_of(DType wide, DType x) { return x == wide || (x.is_float() && x.bits <= 8 && x != e8m0); }

bool has_instruction(DType a, DType b, DType c, int64_t k, const target::GpuTarget& target) {
  const target::MmaInstruction* i = target::mma_for(a, b, c, target.arch, false, k);
  return i && k % i->k == 0;
}

class Operands {
 public:
  Operands(TileProgram& p, int32_t launch, const target::GpuTarget& target)
      : p_(p), launch_(launch), target_(target), room_(target.shared_bytes) {
    const Body& body = p.launches[static_cast<size_t>(launch)].body;
    std::map<BufferId, int64_t> stages;
    walk(body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (!loop || loop->kind != LoopKind::Pipelined) return;
      walk(loop->body, [&](const Stmt& x) {
        if (const auto* copy = x.as<Copy>()) stages[p.root(copy->to.buffer)] = std::max<int64_t>(loop->stages, 1);
      });
    });
    for (BufferId id : used_roots(body, p))
      if (p.buffer(id).space == Space::Shared)
        room_ -= bytes_on_chip(p.buffer(id)) * (stages.contains(id) ? stages[id] : 1);
  }

  std::optional<Body> widened(const Stmt& s) {
    const auto* gemm = s.as<Gemm>();
    if (!gemm || gemm->is_sparse() || !gemm->completion.immediate()) return std::nullopt;
    const DType a = operand_type(p_, *gemm, gemm->a), b = operand_type(p_, *gemm, gemm->b);
    const DType c = accumulator(p_.buffer(gemm->c.buffer).type);
    const int64_t k = depth_of(*gemm);
    if (k == 0 || has_instruction(a, b, c, k, target_) || !is_tile(gemm->a) || !is_tile(gemm->b)) return std::nullopt;
    for (const DType wide : {f16, bf16}) {
      if (!holds_all_of(wide, a) || !holds_all_of(wide, b) || !has_instruction(wide, wide, c, k, target_)) continue;
      int64_t more = 0;  // shared memory
      for (const Region* r : {&gemm->a, &gemm->b})
        if (p_.buffer(r->buffer).type != wide && p_.buffer(p_.root(r->buffer)).space == Space::Shared)
          more += elements_of(*r) * wide.bits / 8;
      if (more > room_) continue;
      room_ -= more;
      Body out;
      Gemm g = *gemm;
      for (Region* r : {&g.a, &g.b})
        if (p_.buffer(r->buffer).type != wide) *r = copied(*r, wide, false, s->location, out);
      out.push_back(make_stmt(std::move(g), s->location));
      return out;
    }
    return std::nullopt;
  }
  std::optional<Body> turned(const Stmt& s) {
    const auto* gemm = s.as<Gemm>();
    if (!gemm || gemm->is_sparse() || !gemm->completion.immediate()) return std::nullopt;
    const DType a = operand_type(p_, *gemm, gemm->a), b = operand_type(p_, *gemm, gemm->b);
    if (a.bits != 8 || b.bits != 8 || !is_tile(gemm->a) || !is_tile(gemm->b)) return std::nullopt;
    if (!has_instruction(a, b, accumulator(p_.buffer(gemm->c.buffer).type), depth_of(*gemm), target_))
      return std::nullopt;
    Body out;
    Gemm g = *gemm;
    const auto turn = [&](Region& r) {
      if (p_.buffer(p_.root(r.buffer)).space != Space::Shared || elements_of(r) > room_) return false;
      room_ -= elements_of(r);
      r = copied(r, p_.buffer(r.buffer).type, true, s->location, out);
      return true;
    };
    if (gemm->transpose_a) g.transpose_a = !turn(g.a);
    if (!gemm->transpose_b) g.transpose_b = turn(g.b);
    if (out.empty()) return std::nullopt;
    out.push_back(make_stmt(std::move(g), s->location));
    return out;
  }

 private:
  static int64_t depth_of(const Gemm& g) {
    const size_t rank = g.a.extent.size();
    return rank < 2 ? 0 : constant_int(g.a.extent[rank - (g.transpose_a ? 2 : 1)]).value_or(0);
  }
  static int64_t elements_of(const Region& r) {
    int64_t n = 1;
    for (const Expr& e : r.extent) n *= *constant_int(e);
    return n;
  }
  bool is_tile(const Region& r) const {
    const Space space = p_.buffer(p_.root(r.buffer)).space;
    return (space == Space::Shared || space == Space::Fragment) && r.extent.size() >= 2 &&
           std::ranges::all_of(r.extent, [](const Expr& e) { return constant_int(e).has_value(); });
  }
  // What the operand holds as a tile of its own, of another type or turned.
  Region copied(const Region& r, DType type, bool turned, LocationId at, Body& out) {
    const Buffer& own = p_.buffer(r.buffer);
    Buffer tile;
    tile.name = own.name + (turned ? "_turned" : "_wide"), tile.type = type;
    tile.space = p_.buffer(p_.root(r.buffer)).space, tile.launch = launch_, tile.location = own.location;
    for (const Expr& e : std::span(r.extent).last(2)) tile.shape.push_back(constant(i32, *constant_int(e)));
    if (turned) std::swap(tile.shape[0], tile.shape[1]);
    const BufferId id = p_.new_buffer(std::move(tile));
    Map m = map_over(p_, p_.buffer(id).shape);
    const std::vector<Expr> point = point_of(m);
    std::vector<Expr> from = r.min;
    for (size_t d = 0; d < 2; ++d) {
      Expr& index = from[from.size() - 2 + d];
      index = add(index, cast(point[turned ? 1 - d : d], index->type));
    }
    m.body = {make_stmt(Store{{id, point}, cast(load(r.buffer, from, p_.buffer(r.buffer).type), type)}, at)};
    out.push_back(make_stmt(std::move(m), at));
    return whole(id, p_);
  }

  TileProgram& p_;
  const int32_t launch_;
  const target::GpuTarget& target_;
  int64_t room_;  // bytes of shared memory beside the launch's tiles, with the stages of their loops
};

}  // namespace

void widen_operands(TileProgram& program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Operands operands(program, static_cast<int32_t>(i), target);
    Body& body = program.launches[i].body;
    body = rewrite(body, [&](const Stmt& s) { return operands.widened(s); });
    body = rewrite(body, [&](const Stmt& s) { return operands.turned(s); });
  }
}

}  // namespace tilewright::passes
