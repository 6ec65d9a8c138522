#include "passes/threads/plain_quotients.h"

#include <bit>
#include <limits>

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_plain(Interval range, int64_t least) {
  return range.low >= least && range.high <= std::numeric_limits<uint32_t>::max();
}

std::optional<Expr> plain(const Expr& e, const Intervals& ranges) {
  const auto* n = e.as<Binary>();
  if (!n || (n->op != BinaryOp::FloorDiv && n->op != BinaryOp::FloorMod) || !e->type.is_int()) return std::nullopt;
  if (e->type == u32 || e->type.bits < 32) return std::nullopt;
  const auto divisor = constant_int(n->b);
  if (divisor && *divisor > 0 && std::has_single_bit(static_cast<uint64_t>(*divisor))) return std::nullopt;
  if (!is_plain(ranges.of(n->a), 0) || !is_plain(ranges.of(n->b), 1)) return std::nullopt;
  return cast(binary(n->op, cast(n->a, u32), cast(n->b, u32)), e->type);
}

}  // namespace

void plain_quotients(ThreadProgram& program) {
  const Intervals symbols = ranges_of_symbols(program);
  for (Launch& launch : program.launches) {
    const Intervals ranges = ranges_in(launch, symbols);
    launch.body = rewrite_exprs(launch.body, [&](const Expr& e) { return plain(e, ranges); });
  }
}

}  // namespace tilewright::passes
