#include "layout/picture.h"

#include <algorithm>

#include "support/function_ref.h"

namespace tilewright {
namespace {

struct Cell {
  std::string text, tooltip;
  int64_t colour = 0;  // cells of one number look alike
};
using CellAt = function_ref<Cell(std::span<const int64_t> index)>;

// The rows and columns that a picture shows, and the index of each.
struct Window {
  int64_t rows = 1, columns = 1;
  bool cut = false;
  size_t rank;

  Window(const std::vector<int64_t>& shape, int64_t limit) : rank(shape.size()) {
    if (rank >= 1) columns = shape[rank - 1];
    if (rank >= 2) rows = shape[rank - 2];
    cut = rows > limit || columns > limit || rank > 2;
    rows = std::min(rows, limit), columns = std::min(columns, limit);
  }
  std::vector<int64_t> index(int64_t row, int64_t column) const {
    std::vector<int64_t> out(rank, 0);
    if (rank >= 1) out[rank - 1] = column;
    if (rank >= 2) out[rank - 2] = row;
    return out;
  }
};

std::string table(const std::string& title, const std::vector<int64_t>& shape, int64_t limit, CellAt cell) {
  const Window window(shape, limit);
  std::vector<std::string> texts;
  size_t width = 1;
  for (int64_t row = 0; row < window.rows; ++row)
    for (int64_t column = 0; column < window.columns; ++column) {
      texts.push_back(cell(window.index(row, column)).text);
      width = std::max(width, texts.back().size());
    }
  width = std::max(width, std::to_string(window.columns - 1).size());
  const size_t margin = std::to_string(window.rows - 1).size();
  std::string out = title + "\n" + std::string(margin, ' ');
  for (int64_t column = 0; column < window.columns; ++column) out += fmt::format("  {:>{}}", column, width);
  out += '\n';
  for (int64_t row = 0; row < window.rows; ++row) {
    out += fmt::format("{:>{}}", row, margin);
    for (int64_t column = 0; column < window.columns; ++column)
      out += fmt::format("  {:>{}}", texts[row * window.columns + column], width);
    out += '\n';
  }
  if (window.cut) out += "(a part of the tile)\n";
  return out;
}

// Colours of equal lightness, neighbours far apart: the golden angle around the circle of hues.
std::string colour_of(int64_t number) {
  return fmt::format("hsl({}, 70%, {}%)", number * 137 % 360, 70 + number / 32 % 4 * 6);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string svg(const std::string& title, const std::vector<int64_t>& shape, int64_t limit, CellAt cell) {
  constexpr int64_t kWidth = 48, kHeight = 20, kTop = 44, kLeft = 36;
  const Window window(shape, limit);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"monospace\" font-size=\"10\" "
      "text-anchor=\"middle\">\n<text x=\"{}\" y=\"16\" font-size=\"12\" text-anchor=\"start\">{}{}</text>\n",
      kLeft + window.columns * kWidth + 4, kTop + window.rows * kHeight + 4, kLeft, escaped(title),
      window.cut ? " (a part of the tile)" : "");
  for (int64_t column = 0; column < window.columns; ++column)
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft + column * kWidth + kWidth / 2, kTop - 6, column);
  for (int64_t row = 0; row < window.rows; ++row) {
    const int64_t y = kTop + row * kHeight;
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft / 2, y + 14, row);
    for (int64_t column = 0; column < window.columns; ++column) {
      const int64_t x = kLeft + column * kWidth;
      const Cell c = cell(window.index(row, column));
      out += fmt::format(
          "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#888\"/>"
          "<text x=\"{}\" y=\"{}\">{}</text></g>\n",
          escaped(c.tooltip), x, y, kWidth, kHeight, colour_of(c.colour), x + kWidth / 2, y + 14, c.text);
    }
  }
  return out + "</svg>\n";
}

std::string place_text(const FragmentLayout& layout, const Place& place) {
  const std::string text = fmt::format("{}:{}", place.thread, place.reg);
  return layout.ctas() > 1 ? fmt::format("{}/{}", place.cta, text) : text;
}

Cell fragment_cell(const FragmentLayout& layout, std::span<const int64_t> index) {
  constexpr int64_t kMostCopies = 32;
  const Place place = layout.place(index);
  Cell cell{place_text(layout, place), fmt::format("({})", fmt::join(index, ", ")), place.thread};
  const int64_t shown = std::min(layout.copy_count(), kMostCopies);
  for (int64_t copy = 0; copy < shown; ++copy)
    cell.tooltip += (copy == 0 ? " thread:register " : ", ") + place_text(layout, layout.place(index, copy));
  if (shown < layout.copy_count()) cell.tooltip += fmt::format(" and {} more", layout.copy_count() - shown);
  return cell;
}

int64_t bank_of(int64_t byte) { return byte / 4 % 32; }

Cell memory_cell(const MemoryLayout& layout, std::span<const int64_t> index) {
  const int64_t byte = layout.byte_offset(index), bank = bank_of(byte);
  return {fmt::format("{}/b{}", byte, bank), fmt::format("({}) byte {}, bank {}", fmt::join(index, ", "), byte, bank),
          bank};
}

LayoutGrid grid(const std::vector<int64_t>& shape, int64_t limit,
                function_ref<std::pair<int64_t, int64_t>(std::span<const int64_t>)> cell) {
  const Window window(shape, limit);
  LayoutGrid out{window.rows, window.columns, window.cut, {}, {}};
  for (int64_t row = 0; row < window.rows; ++row)
    for (int64_t column = 0; column < window.columns; ++column) {
      const auto [first, second] = cell(window.index(row, column));
      out.first.push_back(first), out.second.push_back(second);
    }
  return out;
}

}  // namespace

std::string fragment_table(const FragmentLayout& layout, int64_t limit) {
  return table(layout.text(), layout.shape(), limit,
               [&](std::span<const int64_t> index) { return fragment_cell(layout, index); });
}

std::string fragment_svg(const FragmentLayout& layout, int64_t limit) {
  return svg(layout.text(), layout.shape(), limit,
             [&](std::span<const int64_t> index) { return fragment_cell(layout, index); });
}

std::string memory_table(const MemoryLayout& layout, int64_t limit) {
  return table(layout.text(), layout.shape(), limit,
               [&](std::span<const int64_t> index) { return memory_cell(layout, index); });
}

std::string memory_svg(const MemoryLayout& layout, int64_t limit) {
  return svg(layout.text(), layout.shape(), limit,
             [&](std::span<const int64_t> index) { return memory_cell(layout, index); });
}

LayoutGrid fragment_grid(const FragmentLayout& layout, int64_t limit) {
  return grid(layout.shape(), limit, [&](std::span<const int64_t> index) {
    const Place place = layout.place(index);
    return std::pair(place.cta * layout.threads() + place.thread, place.reg);
  });
}

LayoutGrid memory_grid(const MemoryLayout& layout, int64_t limit) {
  return grid(layout.shape(), limit, [&](std::span<const int64_t> index) {
    const int64_t byte = layout.byte_offset(index);
    return std::pair(byte, bank_of(byte));
  });
}

}  // namespace tilewright
