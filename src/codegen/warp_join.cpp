#include "codegen/warp_join.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

constexpr int64_t kSteps = 5;  // that 32 lanes take

bool is_word(DType type) { return type.is_int() && type.bits == 32; }

// Past casts that keep the bits.
const Expr& bare(const Expr& e) {
  const auto* n = e.as<Cast>();
  return n && is_word(e->type) && is_word(n->value->type) ? bare(n->value) : e;
}

const char* name_of_join(BinaryOp op) {
  switch (op) {
    case BinaryOp::Min: return "__reduce_min_sync";
    case BinaryOp::Max: return "__reduce_max_sync";
    case BinaryOp::BitAnd: return "__reduce_and_sync";
    case BinaryOp::BitOr: return "__reduce_or_sync";
    case BinaryOp::BitXor: return "__reduce_xor_sync";
    default: return nullptr;
  }
}

// The function that joins two values as `joined` does, which is one of them and the other; none: it is no such join.
const char* joins(const Expr& joined, const Expr& own, VarId other) {
  const auto are_both = [&](const Expr& a, const Expr& b) {
    const auto* n = bare(b).as<Var>();
    return n && n->id == other && equal(bare(a), bare(own));
  };
  const Expr& e = bare(joined);
  if (const auto* n = e.as<Sum>()) {
    const bool two =
        n->constant == 0 && n->terms.size() == 2 && n->terms[0].coefficient == 1 && n->terms[1].coefficient == 1;
    const bool both =
        two && (are_both(n->terms[0].value, n->terms[1].value) || are_both(n->terms[1].value, n->terms[0].value));
    return both ? "__reduce_add_sync" : nullptr;
  }
  const auto* n = e.as<Binary>();
  if (!n || !is_word(n->a->type)) return nullptr;
  const bool signs = n->op == BinaryOp::Min || n->op == BinaryOp::Max;
  if (signs && (n->a->type != own->type || e->type != own->type)) return nullptr;
  return are_both(n->a, n->b) || are_both(n->b, n->a) ? name_of_join(n->op) : nullptr;
}

const Shuffle* exchange(const Stmt& s, int64_t distance) {
  const auto* n = s.as<Shuffle>();
  const bool is = n && n->kind == ShuffleKind::Xor && n->width == 32 && n->converged && is_word(n->value->type) &&
                  constant_int(n->lane) == distance;
  return is ? n : nullptr;
}

bool takes_signs(const std::string& function) {
  return function == "__reduce_add_sync" || function == "__reduce_min_sync" || function == "__reduce_max_sync";
}

// for i { other = xor(places[i]); places[i] = join(places[i], other) }, five times.
std::optional<WarpJoin> of_registers(const Body& b, size_t at, const ProgramTables& program) {
  WarpJoin out;
  for (int64_t step = 0; step < kSteps; ++step) {
    const size_t i = at + static_cast<size_t>(step);
    const auto* loop = i < b.size() ? b[i].as<For>() : nullptr;
    if (!loop || loop->body.size() != 2 || constant_int(loop->begin) != 0) return std::nullopt;
    const Shuffle* s = exchange(loop->body[0], 16 >> step);
    const auto* store = loop->body[1].as<Store>();
    const auto* own = s ? s->value.as<Load>() : nullptr;
    if (!store || !own || store->to.buffer != own->buffer || own->indices.size() != 1) return std::nullopt;
    const auto* index = own->indices[0].as<Var>();
    const Buffer& places = program.buffer(own->buffer);
    const bool all = index && index->id == loop->var && places.space == Space::Local && !places.is_view() &&
                     constant_int(places.shape[0]) == constant_int(loop->extent) &&
                     equal(store->to.indices, own->indices);
    const char* function = all ? joins(store->value, s->value, s->result) : nullptr;
    if (!function || (step > 0 && (out.function != function || out.place.buffer != own->buffer))) return std::nullopt;
    out.function = function, out.place = {own->buffer, {}}, out.value = s->value;
    out.registers = *constant_int(loop->extent);
  }
  out.statements = kSteps;
  return out;
}

// other = xor(total); next = join(total, other), five times, each of the one before.
std::optional<WarpJoin> of_names(const Body& b, size_t at) {
  WarpJoin out;
  Expr total;
  std::set<VarId> between;
  for (int64_t step = 0; step < kSteps; ++step) {
    const size_t i = at + 2 * static_cast<size_t>(step);
    if (i + 1 >= b.size()) return std::nullopt;
    const Shuffle* s = exchange(b[i], 16 >> step);
    const auto* next = b[i + 1].as<Let>();
    if (!s || !next || (total && !equal(s->value, total))) return std::nullopt;
    const char* function = joins(next->value, s->value, s->result);
    if (!function || (step > 0 && out.function != function)) return std::nullopt;
    if (step == 0) out.value = s->value;
    if (step > 0) between.insert(out.result);
    between.insert(s->result);
    out.function = function, out.result = next->var, total = var(next->var, next->value->type);
  }
  out.statements = 2 * kSteps;
  const Body behind(b.begin() + static_cast<int64_t>(at + out.statements), b.end());
  for (const VarId v : used_vars(behind))
    if (between.contains(v)) return std::nullopt;
  return out;
}

}  // namespace

std::optional<WarpJoin> warp_join(const Body& b, size_t at, const ProgramTables& program) {
  auto out = b[at].as<For>() ? of_registers(b, at, program) : b[at].as<Shuffle>() ? of_names(b, at) : std::nullopt;
  if (out) out->takes_signs = takes_signs(out->function);
  return out;
}

}  // namespace tilewright::codegen
