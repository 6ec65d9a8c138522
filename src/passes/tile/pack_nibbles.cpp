#include "passes/tile/pack_nibbles.h"

#include <map>
#include <set>

#include "analysis/divisibility.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kOfByte = 2;  // nibbles; the lower one comes first

class PackNibbles {
 public:
  explicit PackNibbles(TileProgram& p) : p_(p) {}

  void run() {
    for (uint32_t i = 0; i < p_.buffers.size(); ++i)
      if (may_be_bytes(p_.buffers[i])) bytes_.insert(BufferId{i});
    for (const Buffer& b : p_.buffers)
      if (b.is_view()) bytes_.erase(b.root);
    // A copy keeps or loses both of its sides.
    for (size_t before = bytes_.size() + 1; before != bytes_.size();) {
      before = bytes_.size();
      for (const Launch& launch : p_.launches) walk(launch.body, [&](const Stmt& s) { keep_what_fits(s); });
    }
    if (bytes_.empty()) return;
    for (Launch& launch : p_.launches) launch.body = packed(launch.body);
    for (BufferId id : bytes_) {
      Buffer& b = p_.buffers[id.index];
      b.type = u8, b.shape.back() = constant(b.shape.back()->type, *constant_int(b.shape.back()) / kOfByte);
    }
  }

 private:
  static bool may_be_bytes(const Buffer& b) {
    if (!b.type.is_int() || b.type.bits != 4 || b.shape.empty() || !b.strides.empty() || b.is_view()) return false;
    if (b.address || b.fill || b.reducer || b.workspace || (b.space != Space::Global && b.space != Space::Shared))
      return false;
    const auto columns = constant_int(b.shape.back());
    return columns && *columns % kOfByte == 0;
  }
  bool is_whole_bytes(const Region& r) const {
    const auto columns = constant_int(r.extent.back());
    return columns && *columns % kOfByte == 0 && analysis::power_of_two_divisor(r.min.back(), p_) % kOfByte == 0;
  }
  bool is_copied(const Stmt& s) const {
    const auto* n = s.as<Copy>();
    return n && n->combine == Combine::None && !n->im2col.present() && bytes_.contains(n->from.buffer) &&
           bytes_.contains(n->to.buffer) && p_.buffer(n->from.buffer).space == Space::Global &&
           p_.buffer(n->to.buffer).space == Space::Shared &&
           p_.buffer(n->from.buffer).type == p_.buffer(n->to.buffer).type && is_whole_bytes(n->from) &&
           is_whole_bytes(n->to);
  }
  // Of a tile, what code loads; of a tensor, nothing but its copies.
  void keep_what_fits(const Stmt& s) {
    if (is_copied(s)) return;
    std::set<BufferId> loaded;
    for_each_expr(s, [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        const auto* n = x.as<Load>();
        if (n && p_.buffer(n->buffer).space == Space::Shared) loaded.insert(n->buffer);
      });
    });
    const bool code = s.as<Store>() || s.as<Let>() || s.as<If>();
    for (const Effect& e : effects_of(s).list)
      if (e.region.valid() && !(code && e.access == Access::Read && loaded.contains(e.region.buffer)))
        bytes_.erase(e.region.buffer);
  }

  Body packed(const Body& in) {
    const Body with_loads = rewrite_exprs(in, [&](const Expr& e) { return unpacked(e); });
    return rewrite(with_loads, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<Copy>();
      if (!n || !bytes_.contains(n->to.buffer)) return std::nullopt;
      Copy c = *n;
      for (Region* r : {&c.from, &c.to}) {
        r->min.back() = half(r->min.back());
        r->extent.back() = half(r->extent.back());
      }
      return Body{make_stmt(std::move(c), s->location)};
    });
  }
  static Expr half(const Expr& e) {
    if (const auto c = constant_int(e)) return constant(e->type, *c / kOfByte);
    const auto* n = e.as<ir::Sum>();
    if (n && n->constant % kOfByte == 0 &&
        std::ranges::all_of(n->terms, [](const Term& t) { return t.coefficient % kOfByte == 0; })) {
      std::vector<Term> terms = n->terms;
      for (Term& t : terms) t.coefficient /= kOfByte;
      return sum(std::move(terms), n->constant / kOfByte, e->type);
    }
    return binary(BinaryOp::FloorDiv, e, constant(e->type, kOfByte));
  }
  // The nibble of a byte in 32 bits; what it is converted to is converted from these.
  std::optional<Expr> unpacked(const Expr& e) {
    if (const auto* to = e.as<Cast>()) {
      const auto known = values_.find(&*to->value);
      return known == values_.end() ? std::nullopt : std::optional(cast(known->second.value, e->type, to->rounding));
    }
    const auto* n = e.as<Load>();
    if (!n || !bytes_.contains(n->buffer)) return std::nullopt;
    std::vector<Expr> index = n->indices;
    const Expr at = index.back(), two = constant(at->type, kOfByte);
    index.back() = binary(BinaryOp::FloorDiv, at, two);
    const Expr shift = mul(cast(binary(BinaryOp::FloorMod, at, two), i32), constant(4));
    Expr value =
        binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, cast(load(n->buffer, index, u8), i32), shift), constant(15));
    if (e->type.is_signed()) value = sub(binary(BinaryOp::BitXor, value, constant(8)), constant(8));
    const Expr out = cast(value, e->type);
    values_[&*out] = {out, value};
    return out;
  }

  TileProgram& p_;
  std::set<BufferId> bytes_;
  struct Unpacked {
    Expr nibble, value;  // in its own type, and in 32 bits
  };
  std::map<const ExprNode*, Unpacked> values_;
};

}  // namespace

TileProgram pack_nibbles(TileProgram program) {
  PackNibbles(program).run();
  return program;
}

}  // namespace tilewright::passes
