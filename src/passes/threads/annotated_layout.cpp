#include "passes/threads/annotated_layout.h"

#include "ir/operators.h"
#include "layout/fit.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The value of an expression in numbers and the variables of an index; none: it has other parts.
class IndexFunction {
 public:
  explicit IndexFunction(const std::vector<VarId>& vars) : vars_(vars) {}

  std::optional<int64_t> operator()(const Expr& e, std::span<const int64_t> index) const {
    if (const auto c = constant_int(e)) return c;
    if (const auto* n = e.as<Cast>(); n && n->value->type.is_int()) return (*this)(n->value, index);
    if (const auto* n = e.as<Var>()) {
      const auto at = std::find(vars_.begin(), vars_.end(), n->id) - vars_.begin();
      return static_cast<size_t>(at) < index.size() ? std::optional(index[static_cast<size_t>(at)]) : std::nullopt;
    }
    if (const auto* n = e.as<Sum>()) {
      int64_t total = n->constant;
      for (const Term& t : n->terms) {
        const auto value = (*this)(t.value, index);
        if (!value) return std::nullopt;
        total += t.coefficient * *value;
      }
      return total;
    }
    const auto* n = e.as<Binary>();
    const auto a = n ? (*this)(n->a, index) : std::nullopt, b = n ? (*this)(n->b, index) : std::nullopt;
    if (!a || !b || *a < 0 || *b < 0) return std::nullopt;
    switch (n->op) {
      case BinaryOp::Mul: return *a * *b;
      case BinaryOp::FloorDiv: return *b ? std::optional(*a / *b) : std::nullopt;
      case BinaryOp::FloorMod: return *b ? std::optional(*a % *b) : std::nullopt;
      case BinaryOp::BitXor: return *a ^ *b;
      case BinaryOp::BitAnd: return *a & *b;
      default: return std::nullopt;
    }
  }

 private:
  const std::vector<VarId>& vars_;
};

}  // namespace

std::optional<FragmentLayout> annotated_layout(const ProgramTables& program, const Buffer& fragment,
                                               const std::vector<int64_t>& shape, int64_t threads) {
  const LayoutAnnotation& given = fragment.layout;
  if (given.kind != LayoutHint::Function || given.replicate != 1 || given.image.size() != 2 ||
      given.vars.size() != shape.size())
    return std::nullopt;
  const IndexFunction value(given.vars);
  try {
    FragmentLayout layout = fit_fragment(
        shape, threads, 1,
        [&](std::span<const int64_t> index, int64_t) {
          const auto thread = value(given.image[0], index), reg = value(given.image[1], index);
          return UserPlace{thread.value_or(-1), reg.value_or(-1)};
        },
        program.location(fragment.location));
    if (layout.threads() != threads || !layout.uses_all_threads() || layout.is_padded()) return std::nullopt;
    return layout;
  } catch (const CompileError&) {
    return std::nullopt;
  }
}

}  // namespace tilewright::passes
