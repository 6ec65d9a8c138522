// The parts of the table, put together once.
#include "capi/operations.h"

namespace tilewright::capi {

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = [] {
    std::vector<Operation> rows;
    add_scalar_operations(rows);
    add_buffer_operations(rows);
    add_scope_operations(rows);
    add_tile_operations(rows);
    add_thread_operations(rows);
    return rows;
  }();
  return table;
}

}  // namespace tilewright::capi
