// Rows that lie on chip whole, of which several blocks could each have a part of the columns.
#pragma once
#include <map>
#include <optional>

#include "ir/program.h"

namespace tilewright::analysis {

// The tiles of such rows by the dimension along which they are cut; what has no columns every block has for itself.
struct SharedRows {
  int64_t columns = 0, elements = 0;  // of a row; of the tile with the longest ones
  std::map<ir::BufferId, size_t> cut;

  std::optional<size_t> dimension_of(ir::BufferId tile) const;
  // The variable that counts columns; none: the map has no columns.
  std::optional<ir::VarId> columns_of(const ir::Map& map) const;
};

// None: the rows of the launch cannot be shared, and `why` says why. What reductions along the columns find in a part
// is then to be joined, and what writes memory without columns is one block's to do.
std::optional<SharedRows> rows_to_share(const ir::ProgramTables& program, const ir::Launch& launch, std::string& why);

// The dimension of one region of a copy that is dimension `d` of the other; -1: its elements are not told apart so.
int dimension_across(const ir::Region& of, size_t d, const ir::Region& other);

}  // namespace tilewright::analysis
