#include "passes/warp_matrices.h"

#include "analysis/divisibility.h"
#include "analysis/uniformity.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "target/mma.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kWordBits = 32, kRowBits = 128, kRows = 8;
constexpr int64_t kLanesOfRow = 4;

int64_t elements(const Region& r) { return constant_int(r.extent.back()).value_or(0); }
// What a lane holds side by side.
int64_t elements_of_word(DType type) { return std::max<int64_t>(1, kWordBits / type.bits); }

Expr divided(const Expr& e, int64_t by) { return binary(BinaryOp::FloorDiv, e, constant(by)); }
Expr rest(const Expr& e, int64_t of) { return binary(BinaryOp::FloorMod, e, constant(of)); }
Expr times(int64_t factor, const Expr& e) { return sum({{factor, e}}, 0, i32); }

class Speller {
 public:
  Speller(TileProgram& p, const Launch& launch) : p_(p) {
    Expr thread = constant(0);
    for (size_t d = launch.threads.size(); d-- > 0;)
      thread = add(mul(thread, constant(launch.threads[d])), var(launch.thread[d], i32));
    lane_ = rest(thread, kWarpThreads);
  }

  // One step of the depth a turn: the elements of c that a lane holds stand in two rows, or one, and two columns.
  Body spell(const Mma& n, LocationId at) {
    at_ = at;
    const DType type = p_.buffer(n.a.buffer).type, c_type = p_.buffer(n.c.buffer).type;
    const DType sum_type = c_type.is_float() && c_type.bits < f32.bits ? f32 : c_type;
    const int64_t word = elements_of_word(type), halves = elements(n.c) / 2, depth = kLanesOfRow * elements(n.b);
    const VarId k_id = p_.new_var("k", i32);
    const Expr k = var(k_id, i32);
    const Expr step = divided(k, kLanesOfRow * word), source = divided(rest(k, kLanesOfRow * word), word);
    Body turn;
    std::vector<Expr> rows, columns;
    for (int64_t h = 0; h < halves; ++h)
      rows.push_back(of_lane(element(n.a, add(sum({{halves * word, step}}, h * word, i32), rest(k, word))),
                             add(times(kLanesOfRow, divided(lane_, kLanesOfRow)), source), turn));
    for (int64_t i = 0; i < 2; ++i)
      columns.push_back(of_lane(element(n.b, add(times(word, step), rest(k, word))),
                                add(sum({{2 * kLanesOfRow, rest(lane_, kLanesOfRow)}}, i * kLanesOfRow, i32), source),
                                turn));
    for (int64_t h = 0; h < halves; ++h)
      for (int64_t i = 0; i < 2; ++i) {
        const Expr c = element(n.c, constant(2 * h + i));
        const Expr x = cast(rows[static_cast<size_t>(h)], sum_type),
                   y = cast(columns[static_cast<size_t>(i)], sum_type);
        const Expr value = sum_type.is_float() ? fma(x, y, cast(c, sum_type)) : add(c, mul(x, y));
        turn.push_back(make_stmt(Store{{n.c.buffer, c.as<Load>()->indices}, cast(value, c_type)}, at));
      }
    For loop;
    loop.var = k_id, loop.begin = constant(0), loop.extent = constant(depth), loop.kind = LoopKind::Unroll;
    loop.body = std::move(turn);
    return {make_stmt(std::move(loop), at)};
  }

  Body spell(const LoadMatrix& n, LocationId at) {
    at_ = at;
    const DType type = p_.buffer(n.to.buffer).type;
    const int64_t held = elements_of_word(type);
    const int64_t units = std::max<int64_t>(1, 16 / type.bits);  // elements of the 16 bits that are transposed
    Body out;
    for (int64_t m = 0; m < n.matrices; ++m) {
      std::vector<Expr> place;
      for (int64_t e = 0; e < held; ++e) {
        Expr row = divided(lane_, kLanesOfRow), column = sum({{held, rest(lane_, kLanesOfRow)}}, e, i32);
        if (n.transpose) {
          row = sum({{2, rest(lane_, kLanesOfRow)}}, e / units, i32);
          column = sum({{units, divided(lane_, kLanesOfRow)}}, e % units, i32);
        }
        if (e % (n.transpose ? units : held) == 0) {
          place.clear();
          for (const Expr& index : n.from.indices)
            place.push_back(index.as<Const>() ? index : of_lane(index, add(row, constant(kRows * m)), out));
        }
        std::vector<Expr> index = place;
        index.back() = add(index.back(), cast(column, index.back()->type));
        const Expr to = element(n.to, constant(m * held + e));
        out.push_back(make_stmt(Store{{n.to.buffer, to.as<Load>()->indices}, load(n.from.buffer, index, type)}, at));
      }
    }
    return out;
  }

 private:
  Expr element(const Region& r, const Expr& offset) const {
    std::vector<Expr> index = r.min;
    index.back() = add(index.back(), cast(offset, index.back()->type));
    return load(r.buffer, std::move(index), p_.buffer(r.buffer).type);
  }
  Expr of_lane(const Expr& value, const Expr& lane, Body& out) {
    Shuffle s;
    s.result = p_.new_var("shuffled", value->type), s.value = value, s.lane = lane;
    const Expr result = var(s.result, value->type);
    out.push_back(make_stmt(std::move(s), at_));
    return result;
  }

  TileProgram& p_;
  LocationId at_;
  Expr lane_;
};

std::optional<Body> spelled(const Stmt& s, Speller& speller) {
  if (const auto* n = s.as<Mma>()) return speller.spell(*n, s->location);
  if (const auto* n = s.as<LoadMatrix>()) return speller.spell(*n, s->location);
  return std::nullopt;
}

bool holds_matrices(const Launch& launch) {
  bool found = false;
  walk(launch.body, [&](const Stmt& s) { found = found || s.as<Mma>() || s.as<LoadMatrix>(); });
  return found;
}

bool begins_at(const std::vector<Expr>& index, int64_t multiple, const ProgramTables& p) {
  return analysis::power_of_two_divisor(index.back(), p) % multiple == 0;
}

const target::MmaInstruction* instruction_for(const Mma& n, const ProgramTables& p, const target::GpuTarget& target) {
  const DType a = p.buffer(n.a.buffer).type, b = p.buffer(n.b.buffer).type, c = p.buffer(n.c.buffer).type;
  const int64_t depth = kLanesOfRow * elements(n.b);
  const target::MmaInstruction* found = target::mma_for(a, b, c, target.arch, false, depth);
  if (!found || found->k != depth || found->m != kLanesOfRow * elements(n.c)) return nullptr;
  const int64_t word = elements_of_word(a);
  return begins_at(n.a.min, word, p) && begins_at(n.b.min, word, p) ? found : nullptr;
}

// Rows of 16 bytes: where a lane's begins, and what lies between rows.
bool has_rows(const LoadMatrix& n, const ProgramTables& p) {
  const Buffer& from = p.buffer(n.from.buffer);
  const DType type = p.buffer(n.to.buffer).type;
  const int64_t row = kRowBits / type.bits;
  if ((n.transpose && type.bits != 16) || from.is_view() || !from.strides.empty() || from.tile) return false;
  const auto columns = from.rank() > 0 ? constant_int(from.shape.back()) : std::nullopt;
  return columns && *columns % row == 0 && begins_at(n.from.indices, row, p) &&
         begins_at(n.to.min, elements_of_word(type), p);
}

}  // namespace

TileProgram spell_matrices(TileProgram program) {
  for (Launch& launch : program.launches) {
    if (!holds_matrices(launch)) continue;
    Speller speller(program, launch);
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return spelled(s, speller); });
  }
  return program;
}

TileProgram choose_matrix_instructions(TileProgram program, const target::GpuTarget& target) {
  for (Launch& launch : program.launches) {
    if (!holds_matrices(launch)) continue;
    number_statements(launch);
    const analysis::Uniformity uniformity(program, launch);
    Speller speller(program, launch);
    const bool whole_warps = launch.thread_count() % kWarpThreads == 0;
    launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      const bool together =
          whole_warps && (s.as<Mma>() || s.as<LoadMatrix>()) && uniformity.control(s) != analysis::Agreement::None;
      if (const auto* n = s.as<Mma>(); n && together)
        if (const target::MmaInstruction* found = instruction_for(*n, program, target)) {
          Mma named = *n;
          named.instruction = std::string(found->name);
          return Body{make_stmt(std::move(named), s->location)};
        }
      if (const auto* n = s.as<LoadMatrix>(); n && together && has_rows(*n, program)) return std::nullopt;
      return spelled(s, speller);
    });
  }
  return program;
}

}  // namespace tilewright::passes
