#include "analysis/map_points.h"

#include <set>

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

bool has_element_for_each(const Map& map, const std::vector<Expr>& indices) {
  std::set<VarId> used;
  for (const Expr& e : indices) used.merge(used_vars(e));
  for (size_t d = 0; d < map.vars.size(); ++d)
    if (constant_int(map.extents[d]) != 1 && !used.contains(map.vars[d])) return false;
  return true;
}

}  // namespace tilewright::analysis
