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
      if (f->kind == LoopKind::Unroll && f->factor == 0) steps_.insert(f->var);
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

namespace {

uint64_t moved(uint64_t bits, int64_t left) { return left >= 0 ? bits << left : bits >> -left; }

template <class Pieces>
void move(Pieces& pieces, int64_t left, uint64_t kept = ~uint64_t{0}) {
  for (auto& p : pieces) p.left += left, p.bits = moved(p.bits, left) & kept;
  std::erase_if(pieces, [](const auto& p) { return p.bits == 0; });
}
template <class Pieces>
uint64_t bits_of(const Pieces& pieces) {
  uint64_t bits = 0;
  for (const auto& p : pieces) bits |= p.bits;
  return bits;
}

}  // namespace

std::optional<Bits::Pieces> Bits::pieces(const Expr& e) const {
  const uint64_t bits = of(e);
  if (bits == kUnknown) return std::nullopt;
  if (bits == 0) return Pieces{};
  auto found = parts(e);
  return found ? found : Pieces{{e, 0, bits}};
}

std::optional<Bits::Pieces> Bits::addends(const Sum& sum) const {
  Pieces out;
  uint64_t taken = static_cast<uint64_t>(sum.constant);
  if (taken != 0) out.push_back({constant(i64, sum.constant), 0, taken});
  for (const Term& t : sum.terms) {
    auto value = pieces(t.value);
    if (!value || !std::has_single_bit(static_cast<uint64_t>(t.coefficient))) return std::nullopt;
    move(*value, std::countr_zero(static_cast<uint64_t>(t.coefficient)));
    const uint64_t bits = bits_of(*value);
    if ((taken & bits) != 0) return std::nullopt;
    taken |= bits, out.insert(out.end(), value->begin(), value->end());
  }
  return out;
}

// Of an expression whose bits are known, which is not negative.
std::optional<Bits::Pieces> Bits::parts(const Expr& e) const {
  if (const auto* n = e.as<Cast>()) return n->value->type.is_int() ? pieces(n->value) : std::nullopt;
  if (const auto* n = e.as<Sum>()) return addends(*n);
  const auto* n = e.as<Binary>();
  if (!n) return std::nullopt;
  auto a = pieces(n->a);
  if (!a) return std::nullopt;
  if (n->op == BinaryOp::BitXor) {
    const auto b = pieces(n->b);
    if (b) a->insert(a->end(), b->begin(), b->end());
    return b ? a : std::nullopt;
  }
  const auto c = constant_int(n->b);
  if (!c || *c < 0) return std::nullopt;
  const auto by = static_cast<uint64_t>(*c);
  if (n->op == BinaryOp::BitAnd) return move(*a, 0, by), a;
  if (n->op == BinaryOp::Shr && by < 64) return move(*a, -*c), a;
  if (!std::has_single_bit(by)) return std::nullopt;
  if (n->op == BinaryOp::FloorDiv || n->op == BinaryOp::TruncDiv) return move(*a, -std::countr_zero(by)), a;
  if (n->op == BinaryOp::FloorMod || n->op == BinaryOp::TruncMod) return move(*a, 0, by - 1), a;
  return std::nullopt;
}

bool Bits::is_of_steps(const Piece& piece) const {
  const std::set<VarId> used = used_vars(piece.of);
  return constant_int(piece.of) || (!used.empty() && std::ranges::includes(steps_, used));
}

// A digit of the number for each run of bits; those that are never set belong to any.
void Bits::add_terms(const Piece& piece, std::vector<Term>& to) const {
  const uint64_t all = of(piece.of), never = ~moved(all, piece.left);
  for (uint64_t left = piece.bits; left != 0;) {
    const int first = std::countr_zero(left), count = std::countr_one((left | never) >> first);
    const int64_t from = first - piece.left;
    Expr digit = cast(piece.of, i64);
    if (from > 0) digit = binary(BinaryOp::FloorDiv, digit, constant(i64, int64_t{1} << from));
    if (count < 63 && all >> from >> count != 0)
      digit = binary(BinaryOp::FloorMod, digit, constant(i64, int64_t{1} << count));
    to.push_back({int64_t{1} << first, digit});
    if (first + count >= 64) break;
    left &= ~uint64_t{0} << (first + count);
  }
}

// Pieces that share no bits are summed.
Expr Bits::joined(const Pieces& pieces) const {
  struct Apart {
    uint64_t taken = 0;
    std::vector<Term> terms = {};
  };
  std::vector<Apart> sums(1);
  for (const Piece& p : pieces) {
    auto to = std::ranges::find_if(sums, [&](const Apart& s) { return (s.taken & p.bits) == 0; });
    if (to == sums.end()) to = sums.insert(to, Apart{});
    to->taken |= p.bits;
    add_terms(p, to->terms);
  }
  Expr out;
  for (Apart& s : sums) {
    const Expr one = sum(std::move(s.terms), 0, i64);
    out = out ? binary(BinaryOp::BitXor, out, one) : one;
  }
  return out;
}

Expr Bits::exchanged(const Expr& at, int64_t shift, int64_t mask) const {
  const auto under = static_cast<uint64_t>(mask);
  if (auto all = pieces(at)) {
    Pieces to = *all, steady, within, beyond;
    move(to, -shift, under);
    all->insert(all->end(), to.begin(), to.end());
    for (const Piece& p : *all) (is_of_steps(p) ? within : steady).push_back(p);
    beyond = within;
    const uint64_t common = bits_of(steady);
    move(within, 0, common), move(beyond, 0, ~common);
    const Expr base = joined(steady);
    return ir::add(within.empty() ? base : binary(BinaryOp::BitXor, base, joined(within)), joined(beyond));
  }
  const auto whole = [&](const Expr& x) {
    const Expr from = binary(BinaryOp::Shr, x, constant(i64, shift));
    return binary(BinaryOp::BitXor, x, binary(BinaryOp::BitAnd, from, constant(i64, mask)));
  };
  const auto* n = at.as<Sum>();
  if (!n) return whole(at);
  std::vector<Term> terms = n->terms, multiples, rest;
  if (n->constant != 0) terms.push_back({1, constant(i64, n->constant)});
  const auto period = static_cast<int64_t>(std::bit_floor(under | under << shift) * 2);
  for (const Term& t : terms) (power_of_two_divisor(sum({t}, 0, i64)) % period == 0 ? multiples : rest).push_back(t);
  if (multiples.empty()) return whole(at);
  const Expr left = sum(std::move(rest), 0, i64);
  return ir::add(sum(std::move(multiples), 0, i64), pieces(left) ? exchanged(left, shift, mask) : whole(left));
}

}  // namespace tilewright::analysis
