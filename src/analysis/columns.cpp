#include "analysis/columns.h"

#include "analysis/accessed.h"
#include "ir/extent.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

std::optional<size_t> column_of(const ProgramTables& p, const Map& map, BufferId matrix) {
  std::optional<size_t> out;
  bool fits = true;
  auto access = [&](const std::vector<Expr>& indices) {
    const auto at = followed(indices, map.vars);
    fits = fits && at && at->dims.size() == 2 && at->dims[1] >= 0 && at->first[1] == 0;
    if (!fits) return;
    const auto column = static_cast<size_t>(at->dims[1]);
    fits = (!out || *out == column) && constant_int(map.extents[column]) == constant_int(p.buffer(matrix).shape[1]);
    out = column;
  };
  walk_exprs(map.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>(); n && n->buffer == matrix) access(n->indices);
  });
  walk(map.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>(); n && n->to.buffer == matrix) access(n->to.indices);
  });
  return fits ? out : std::nullopt;
}

bool columns_are_apart(const ProgramTables& p, const Stmt& s, BufferId result) {
  if (const auto* n = s.as<Fill>()) return is_whole(n->to, p.buffer(result));
  if (const auto* n = s.as<Copy>())
    return n->from.buffer == result && is_whole(n->from, p.buffer(result)) &&
           constant_int(n->to.extent.back()) == constant_int(n->from.extent.back());
  const auto* n = s.as<Map>();
  return n && column_of(p, *n, result);
}

}  // namespace tilewright::analysis
