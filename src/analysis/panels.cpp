#include "analysis/panels.h"

#include "ir/operators.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Of a tile of one dimension, or a row of one, which nothing swizzles: all of it, or the longest box of which it is
// made so that each begins where one may.
int64_t box_of_vector(const Buffer& b) {
  const int64_t elements = constant_int(b.shape.back()).value_or(0), bytes = b.type.bits / 8;
  if (elements <= 0 || elements * bytes % kNarrowestPanel != 0) return 0;
  if (elements <= kMaxBox) return elements;
  for (int64_t box = kMaxBox; box * bytes >= kSharedAlignment; --box)
    if (elements % box == 0 && box * bytes % kSharedAlignment == 0) return box;
  return 0;
}

// Of shared memory, with nothing that says how it lies.
bool is_plain(const Buffer& b) {
  return b.space == Space::Shared && !b.is_view() && b.type.bits >= 8 && b.strides.empty();
}

}  // namespace

bool comes_by_rows(const Buffer& b) {
  const int64_t row = constant_int(b.shape.back()).value_or(0) * b.type.bits / 8;
  return b.rank() > 1 && is_plain(b) && row > 0 && row % kSharedAlignment == 0;
}

bool may_have_layout(const ProgramTables& p, BufferId id) {
  return is_plain(p.buffer(id)) &&
         std::none_of(p.buffers.begin(), p.buffers.end(), [&](const Buffer& other) { return other.root == id; });
}

int64_t panel_span(const Buffer& b) {
  if (b.rank() < 2 || !is_plain(b)) return 0;
  const int64_t row = constant_int(b.shape.back()).value_or(0) * b.type.bits / 8;
  if (b.panel == kWidestPanel && row > kWidestPanel && row % kNarrowestPanel == 0) return kWidestPanel;
  for (int64_t span : {128, 64, 32})
    if (row % span == 0 && row > 0 && (b.panel == 0 || span <= b.panel)) return span;
  return row == kNarrowestPanel ? row : 0;
}

int64_t panel_span(const ProgramTables& p, BufferId id) {
  return may_have_layout(p, id) ? panel_span(p.buffer(id)) : 0;
}

int64_t box_columns(const Buffer& b) {
  if (b.rank() == 1) return is_plain(b) ? box_of_vector(b) : 0;
  if (b.panel == kNarrowestPanel) return comes_by_rows(b) ? box_of_vector(b) : 0;
  const int64_t panel = panel_span(b) * 8 / b.type.bits;
  if (panel == 0 || constant_int(b.shape[b.rank() - 2]) != 1) return panel;
  const int64_t columns = constant_int(b.shape.back()).value_or(0);
  const bool is_row =
      columns * b.type.bits / 8 % kSharedAlignment == 0 && (columns <= kMaxBox || columns % kMaxBox == 0);
  if (is_row) return std::min(columns, kMaxBox);
  return columns == panel ? panel : 0;  // of several, each would have room for eight rows
}

int64_t box_columns(const ProgramTables& p, BufferId id) {
  return may_have_layout(p, id) ? box_columns(p.buffer(id)) : 0;
}

bool begins_anywhere(const Buffer& tensor) {
  return tensor.space == Space::Global && tensor.alignment > 0 &&
         tensor.alignment * 8 <= std::max(8, tensor.type.storage_bits());
}

}  // namespace tilewright::analysis
