// Layouts as people look at them: text tables and SVG. A picture shows the last two dimensions at index 0 of the
// others, and at most `limit` rows and columns of them.
#pragma once
#include "layout/fragment.h"
#include "layout/memory.h"

namespace tilewright {

// Each cell: the thread and register that hold the element, as 37:2, of copy 0; with CTAs 1/37:2.
std::string fragment_table(const FragmentLayout& layout, int64_t limit = 64);
// Colour by thread; a cell's tooltip names all copies.
std::string fragment_svg(const FragmentLayout& layout, int64_t limit = 64);

// Each cell: the byte offset of the element and its bank, as 1040/b4. Elements of less than a byte share an offset.
std::string memory_table(const MemoryLayout& layout, int64_t limit = 64);
// Colour by bank.
std::string memory_svg(const MemoryLayout& layout, int64_t limit = 64);

// The same as numbers, a row after the other: of a fragment the thread (over all CTAs) and the register of copy 0, of
// memory the byte offset and the bank.
struct LayoutGrid {
  int64_t rows = 1, columns = 1;
  bool cut = false;  // of a part of the tile
  std::vector<int64_t> first, second;
};
LayoutGrid fragment_grid(const FragmentLayout& layout, int64_t limit = 64);
LayoutGrid memory_grid(const MemoryLayout& layout, int64_t limit = 64);

}  // namespace tilewright
