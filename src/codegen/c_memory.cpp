#include "codegen/c_memory.h"

#include "ir/buffer_vars.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/narrow.h"
#include "passes/threads/wrap_sums.h"
#include "scalar/convert.h"

namespace tilewright::codegen {

using namespace ir;

std::string CMemory::pointer(BufferId id) {
  const Buffer& b = program_.buffer(id);
  const std::string type = storage_type(b.type);
  if (b.address) return fmt::format("(({}*){})", type, in(value(b.address), Binds::Unary));
  const BufferId root = program_.root(id);
  if (program_.buffer(root).address) return fmt::format("(({}*){})", type, pointer(root));
  const std::string& name = names_.of(root);
  const char* place = is_variable(program_.buffer(root)) ? "&" : "";
  if (b.cta) {
    pieces_.insert("tw_map_shared");
    return fmt::format("(({}*)tw_map_shared({}{}, {}))", type, place, name, text(narrowed(b.cta)));
  }
  if (b.is_view() && storage_type(program_.buffer(root).type) != type)
    return fmt::format("(({}*){}{})", type, place, name);
  return b.is_view() && *place ? fmt::format("(&{})", name) : name;
}

namespace {

// The swizzle on offsets of elements.
Expr swizzled(const Expr& at, const tilewright::Swizzle& s, int64_t element_bits, const analysis::Bits& bits) {
  if (s.bits == 0) return at;
  int base = s.base;
  for (int64_t bytes = element_bits / 8; bytes > 1; bytes /= 2) --base;
  return bits.exchanged(at, s.shift, ((int64_t{1} << s.bits) - 1) << base);
}

}  // namespace

std::string CMemory::element(BufferId id, const std::vector<Expr>& index) {
  const Buffer& b = program_.buffer(id);
  if (is_variable(b)) return names_.of(id);
  return fmt::format("{}[{}]", pointer(id), text(element_offset(id, index)));
}

std::string CMemory::pointer_to(BufferId id, const std::vector<Expr>& index) {
  const Buffer& b = program_.buffer(id);
  if (is_variable(b)) return "&" + names_.of(id);
  Expr at = element_offset(id, index);
  if (b.type.is_packed()) at = ir::binary(BinaryOp::FloorDiv, at, ir::constant(at->type, int64_t{2}));
  return constant_int(at) == 0 ? pointer(id) : fmt::format("&{}[{}]", pointer(id), text(at));
}

Expr CMemory::element_offset(BufferId id, const std::vector<Expr>& index) const {
  const Buffer& b = program_.buffer(id);
  Expr at = offset(id, index);
  if (b.memory) at = swizzled(at, b.memory->swizzle(), b.memory->element_bits(), bits_);
  if (narrows_offsets() && !is_global(id)) at = narrowed(at);
  if (narrows_global_offsets() && is_global(id)) {
    if (const auto narrow = passes::in_32_bits(at, values_))
      at = *narrow;
    else if (may_be_anything(at))  // and may leave 64 bits where nobody loads
      at = passes::wrapped(at, values_);
  }
  // An index need not be widened by itself.
  if (const auto* c = at.as<Cast>(); c && c->value->type == i32) at = c->value;
  return at;
}

// In 64 bits, where it may leave 32.
Expr CMemory::as_meant(const Expr& index) const {
  if (index->type != i32 || !may_be_anything(index)) return index;
  const Expr wide = widen(index);
  return passes::in_32_bits(wide, values_) ? index : wide;
}

Expr CMemory::offset(BufferId id, const std::vector<Expr>& index) const {
  std::vector<Expr> meant;
  for (const Expr& e : index) meant.push_back(as_meant(e));
  return analysis::element_offset(program_, id, meant);
}

void CMemory::note_values(const Launch& launch) {
  values_ = passes::ranges_in(launch, passes::ranges_of_symbols(program_));
  of_data_.clear();
  for (const Param& p : program_.params)
    if (!p.is_tensor()) of_data_.insert(p.var);
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Let>(); n && may_be_anything(n->value)) of_data_.insert(n->var);
    if (const auto* n = s.as<For>(); n && may_be_anything(n->begin)) of_data_.insert(n->var);
  });
}

bool CMemory::may_be_anything(const Expr& e) const {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const auto* v = x.as<Var>();
    const auto* s = x.as<Sum>();
    found = found || x.as<Load>() || (v && of_data_.contains(v->id));
    const int64_t beyond = int64_t{1} << (x->type == i32 ? 24 : 47);
    if (s)
      for (const Term& t : s->terms) found = found || t.coefficient >= beyond || t.coefficient <= -beyond;
  });
  return found;
}

// Terms that are not negative have no partial sum that is larger than the whole.
std::optional<Expr> CMemory::in_32_bits(const Expr& e, bool cut) const {
  if (e->type == i32) return e;
  if (e->type != i64) return std::nullopt;
  if (const auto c = constant_int(e)) {
    if (*c < INT32_MIN || *c > INT32_MAX) return std::nullopt;
    return ir::constant(i32, *c);
  }
  if (const auto* n = e.as<Cast>()) {
    const DType from = n->value->type;
    if (from == i32) return n->value;
    if (!from.is_int() || from.bits > 32 || (from == u32 && bits_.of(e) > INT32_MAX)) return std::nullopt;
    return ir::cast(n->value, i32);
  }
  if (const auto* n = e.as<Sum>()) {
    const bool rises = n->constant >= 0 && std::all_of(n->terms.begin(), n->terms.end(), [](const Term& t) {
                         return t.coefficient > 0 && t.coefficient <= INT32_MAX;
                       });
    if (!rises || n->constant > INT32_MAX || (!cut && bits_.of(e) > INT32_MAX)) return std::nullopt;
    std::vector<Term> terms = n->terms;
    for (Term& t : terms) {
      const auto value = in_32_bits(t.value, false);
      if (!value) return std::nullopt;
      t.value = *value;
    }
    return ir::sum(std::move(terms), n->constant, i32);
  }
  if (const auto* n = e.as<Binary>()) {
    switch (n->op) {
      case BinaryOp::FloorDiv:
      case BinaryOp::FloorMod:
      case BinaryOp::Shr:
        if (constant_int(n->b).value_or(0) <= 0) return std::nullopt;
        break;
      case BinaryOp::BitAnd:
      case BinaryOp::BitOr:
      case BinaryOp::BitXor: break;
      default: return std::nullopt;
    }
    const auto a = in_32_bits(n->a, false), b = in_32_bits(n->b, false);
    if (!a || !b) return std::nullopt;
    return ir::binary(n->op, *a, *b);
  }
  return std::nullopt;
}

Expr CMemory::narrowed(const Expr& e, bool cut) const { return in_32_bits(e, cut).value_or(e); }

int64_t CMemory::storage_elements(const Buffer& b) {
  const int64_t n = elements_on_chip(b);
  return b.type.is_packed() ? bytes_of(b.type, n) : n;
}

std::set<VarId> CMemory::needed_vars(const Body& b) const {
  std::set<VarId> vars = used_vars(b);
  auto also = [&](const Expr& e) {
    if (e) vars.merge(used_vars(e));
  };
  for (BufferId id : buffers_needed(b, program_)) {
    const Buffer& buffer = program_.buffer(id);
    for (const Expr& e : buffer.shape) also(e);
    for (const Expr& e : buffer.strides) also(e);
    also(buffer.offset), also(buffer.cta), also(buffer.address);
  }
  return vars;
}

std::string CMemory::load_bits(const Load& n, DType type) {
  const Buffer& b = program_.buffer(n.buffer);
  if (!type.is_packed()) return element(n.buffer, n.indices);
  if (is_variable(b)) return names_.of(n.buffer);
  return load_nibble(n.buffer, pointer(n.buffer), text(offset(n.buffer, n.indices)));
}

Text CMemory::load(const Load& n, DType type) { return {load_text(type, load_bits(n, type), pieces_)}; }

Text CMemory::address(const Address& n) {
  return {fmt::format("(uint64_t)&{}", element(n.buffer, n.indices)), Binds::Unary};
}

void CMemory::store(const Store& n) {
  const Buffer& b = program_.buffer(n.to.buffer);
  const std::string v = bits(n.value);
  if (!b.type.is_packed() || is_variable(b))
    return line(fmt::format("{} = {};", element(n.to.buffer, n.to.indices), v));
  store_nibble(n.to.buffer, pointer(n.to.buffer), text(offset(n.to.buffer, n.to.indices)), v);
}

std::string CMemory::updated(const Atomic& n, DType type, const std::string& old) {
  const Text a{old}, b = n.value ? value(n.value) : Text{};
  const bool flag = type.is_bool();
  auto stored = [&](const Text& t) { return bits_of(type, t.text); };
  switch (n.op) {
    case AtomicOp::Add: return stored(binary(flag ? BinaryOp::Or : BinaryOp::Add, type, a, b));
    case AtomicOp::Max: return stored(binary(BinaryOp::Max, type, a, b));
    case AtomicOp::Min: return stored(binary(BinaryOp::Min, type, a, b));
    case AtomicOp::And: return stored(binary(BinaryOp::BitAnd, type, a, b));
    case AtomicOp::Or: return stored(binary(BinaryOp::BitOr, type, a, b));
    case AtomicOp::Xor: return stored(binary(BinaryOp::BitXor, type, a, b));
    case AtomicOp::Exchange:
    case AtomicOp::Store: return stored(b);
    case AtomicOp::CompareExchange:
      return fmt::format("{} == {} ? {} : old", bits_of(type, old), bits_of(type, text(n.compare)), stored(b));
    case AtomicOp::Load: return "old";
  }
  return {};
}

}  // namespace tilewright::codegen
