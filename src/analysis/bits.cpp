#include "analysis/bits.h"

#include <bit>

#include "analysis/divisibility.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr uint64_t kLargest = uint64_t{1} << 40;  // beyond, sums of a few could wrap

// All bits up to the highest of the value.
uint64_t up_to(uint64_t value) { return value == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(value); }
uint64_t bounded(uint64_t bits) { return bits < kLargest ? bits : Bits::kUnknown; }
// What is computed in a type that may not hold it wraps around.
uint64_t held(uint64_t bits, DType type) {
  const int digits = type.bits - (type.is_signed() ? 1 : 0);
  return digits >= 63 || bits <= ~uint64_t{0} >> (64 - digits) ? bounded(bits) : Bits::kUnknown;
}

}  // namespace

Bits::Bits(const ProgramTables& program) {
  for (const Launch& launch : program.launches) {
    for (size_t d = 0; d < launch.thread.size(); ++d)
      vars_[launch.thread[d]] = up_to(static_cast<uint64_t>(launch.threads[d] - 1));
    for (size_t d = 0; d < launch.block.size(); ++d)
      if (const auto blocks = constant_int(launch.grid[d]); blocks && *blocks > 0)
        vars_[launch.block[d]] = bounded(up_to(static_cast<uint64_t>(*blocks - 1)));
    add(launch);
  }
}

void Bits::add(const Launch& launch) {
  const auto is_thread = [&](VarId id) { return std::ranges::find(launch.thread, id) != launch.thread.end(); };
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* f = s.as<For>()) {
      const auto begin = constant_int(f->begin), extent = constant_int(f->extent);
      if (begin && extent && *begin >= 0 && *extent > 0)
        vars_[f->var] = bounded(up_to(static_cast<uint64_t>(*begin + *extent - 1)));
    } else if (const auto* n = s.as<Role>(); n && !n->body.empty()) {
      // Its threads' own numbers.
      const auto* number = n->body[0].as<Let>();
      const auto* from = number ? number->value.as<Sum>() : nullptr;
      const auto* same = number && n->begin == 0 ? number->value.as<Var>() : nullptr;
      const bool moved =
          from && from->terms.size() == 1 && from->terms[0].coefficient == 1 && from->constant == -n->begin;
      if (moved || (same && is_thread(same->id)))
        vars_[number->var] = up_to(static_cast<uint64_t>(n->end - n->begin - 1));
    } else if (const auto* name = s.as<Let>(); name && name->value->type.is_int() && !vars_.contains(name->var)) {
      vars_[name->var] = of(name->value);
    }
  });
}

uint64_t Bits::of(const Expr& e) const {
  if (const auto c = constant_int(e)) return *c >= 0 ? bounded(static_cast<uint64_t>(*c)) : kUnknown;
  if (const auto* n = e.as<Var>()) {
    const auto found = vars_.find(n->id);
    return found == vars_.end() ? kUnknown : found->second;
  }
  if (const auto* n = e.as<Cast>(); n && n->value->type.is_int() && e->type.is_int() && e->type.bits >= 32) {
    const uint64_t bits = of(n->value);
    return bits <= INT32_MAX || e->type.bits == 64 ? bits : kUnknown;
  }
  if (const auto* n = e.as<Sum>()) {
    uint64_t together = 0, most = 0;
    bool apart = true;
    const auto join = [&](uint64_t bits) {
      apart = apart && (together & bits) == 0;
      together |= bits, most += bits;
    };
    if (n->constant < 0) return kUnknown;
    join(bounded(static_cast<uint64_t>(n->constant)));
    for (const Term& t : n->terms) {
      const uint64_t value = of(t.value);
      if (value == kUnknown || t.coefficient < 0 || t.coefficient > INT32_MAX || together == kUnknown) return kUnknown;
      const auto factor = static_cast<uint64_t>(t.coefficient);
      if (value != 0 && factor > kLargest / value) return kUnknown;
      join(std::has_single_bit(factor) ? value * factor
                                       : up_to(value * factor) & ~uint64_t{0} << std::countr_zero(factor | kLargest));
    }
    if (apart) return held(together, e->type);
    // Carries go up, never below the lowest bit of all.
    return held(up_to(most) & ~uint64_t{0} << std::countr_zero(together | kLargest), e->type);
  }
  if (const auto* n = e.as<Binary>()) {
    const uint64_t a = of(n->a);
    const auto c = constant_int(n->b);
    if (n->op == BinaryOp::BitXor || n->op == BinaryOp::BitOr) {
      const uint64_t b = of(n->b);
      return a == kUnknown || b == kUnknown ? kUnknown : a | b;
    }
    // Of anything, if it is known or not.
    if (n->op == BinaryOp::BitAnd && c && *c >= 0) return a & static_cast<uint64_t>(*c);
    const bool rest = n->op == BinaryOp::FloorMod || (n->op == BinaryOp::TruncMod && !e->type.is_signed());
    if (rest && c && *c > 0 && a == kUnknown) return up_to(static_cast<uint64_t>(*c - 1));
    if (a == kUnknown || !c || *c < 0) return kUnknown;
    const auto by = static_cast<uint64_t>(*c);
    if (n->op == BinaryOp::Shr && *c < 64) return a >> by;
    const bool quotient = n->op == BinaryOp::FloorDiv || n->op == BinaryOp::TruncDiv;
    if (quotient && by > 0) return std::has_single_bit(by) ? a / by : up_to(a / by);
    if ((n->op == BinaryOp::FloorMod || n->op == BinaryOp::TruncMod) && by > 0)
      return std::has_single_bit(by) ? a & (by - 1) : up_to(std::min(a, by - 1));
  }
  return kUnknown;
}

Expr Bits::exchanged(const Expr& at, int64_t shift, int64_t mask) const {
  const auto whole = [&](const Expr& to, const Expr& from) {
    const Expr moved = binary(BinaryOp::Shr, from, constant(i64, shift));
    return binary(BinaryOp::BitXor, to, binary(BinaryOp::BitAnd, moved, constant(i64, mask)));
  };
  const auto* n = at.as<Sum>();
  if (!n) return whole(at, at);
  std::vector<Term> terms = n->terms, targets, sources, others;
  if (n->constant != 0) terms.push_back({1, constant(i64, n->constant)});
  const auto under = static_cast<uint64_t>(mask), above = under << shift;
  // Whatever bits the terms have: multiples of what is above all that is read.
  const auto by_multiples = [&] {
    const auto period = static_cast<int64_t>(std::bit_floor(under | above) * 2);
    std::vector<Term> multiples, rest;
    for (const Term& t : terms) (power_of_two_divisor(sum({t}, 0, i64)) % period == 0 ? multiples : rest).push_back(t);
    const Expr all = sum(std::move(rest), 0, i64);
    return multiples.empty() ? whole(at, at) : ir::add(sum(std::move(multiples), 0, i64), whole(all, all));
  };
  uint64_t taken = 0;
  for (const Term& t : terms) {
    const uint64_t mine = of(sum({t}, 0, i64));
    if (mine == kUnknown || (taken & mine) != 0) return by_multiples();
    taken |= mine;
    ((mine & under) != 0 ? targets : others).push_back(t);
    if ((mine & above) != 0) sources.push_back(t);
  }
  return ir::add(sum(std::move(others), 0, i64),
                 whole(sum(std::move(targets), 0, i64), sum(std::move(sources), 0, i64)));
}

}  // namespace tilewright::analysis
