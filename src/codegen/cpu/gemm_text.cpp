// Writes the gemm function: packing of operands that are not in the kernel's form, loops over groups of rows and
// panels, the register kernel, and the update of C.
#include "codegen/cpu/gemm_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>

#include "codegen/cpu/gemm_element.h"
#include "codegen/cpu/gemm_kernel.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using Form = OperandLayout::Form;

// More steps than this are cut, so that the rows of the broadcast operand that a group reads stay in the first-level
// cache (14 rows of 256 floats are 14 KB). Attention and gemm tiles have at most 256; 384 is better in one piece.
constexpr int64_t kLongestRun = 512, kRun = 256;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// An operand as the kernel sees it: index `outer` along C, index k, either of which may be the buffer's row.
struct View {
  std::string name;     // of the parameter
  std::string leading;  // of the parameter for the row stride
  OperandLayout layout;
  int64_t rows = 0, columns = 0;
  bool outer_is_row = true;

  int64_t outer() const { return outer_is_row ? rows : columns; }
  int64_t outer_stride() const { return outer_is_row ? layout.row_stride : layout.column_stride; }
  int64_t k_stride() const { return outer_is_row ? layout.column_stride : layout.row_stride; }
  bool has_fixed_strides() const { return layout.form == Form::Strided && layout.row_stride > 0; }
  bool has_panels_along_outer() const { return layout.form == Form::Panels && layout.axis == (outer_is_row ? 0 : 1); }
  std::string offset(const std::string& at_outer, const std::string& at_k) const {
    const std::string &row = outer_is_row ? at_outer : at_k, &column = outer_is_row ? at_k : at_outer;
    return layout_offset_text(layout, rows, columns, row, column, leading);
  }
};

// Strides, in elements, at which the kernel walks an operand.
struct Walk {
  bool packed = false;       // in the function's own buffer
  int64_t outer_stride = 0;  // between rows of the broadcast operand; of tiles: a row's part of those above it
  int64_t row_stride = 0;    // between rows of one tile
  int64_t panel_stride = 0;  // between panels of the vector operand
  int64_t step_stride = 0;   // between steps of k
};

class GemmWriter {
 public:
  explicit GemmWriter(const GemmSpec& spec);
  GemmText write();

 private:
  std::string function_name() const;
  void choose_walks();
  void choose_update();
  void write_kernel(int64_t rows);
  void write_tile_kernel(int64_t rows);
  void begin_kernel(int64_t rows);
  std::string fetches(int64_t steps) const;
  void write_tile_shapes(int64_t rows);
  std::string kernel_step(int64_t rows, bool half) const;
  void write_update();
  void write_packing();
  void write_groups(int64_t rows, int64_t begin, int64_t end, bool runs);
  void write_call(int64_t rows, const std::string& panels, bool direct, bool runs, const std::string& indent);
  std::string signature() const;
  template <typename... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
    text_ += '\n';
  }

  const GemmSpec& spec_;
  GemmKernel kernel_;
  View x_, y_, c_;  // broadcast, vector, result; c_'s outer index is x_'s, its "k" is the vector axis
  int64_t i_, j_;   // extents of C along the broadcast and the vector axis
  Walk x_walk_, y_walk_;
  bool direct_ = false;                            // whole panels of C are read and written as vectors
  bool direct_last_ = false;                       // the last panel too
  int64_t c_row_stride_ = 0, c_panel_stride_ = 0;  // where direct_
  std::string name_, text_, element_, accumulator_;
  std::set<std::string> pieces_ = {"types"};
};

GemmWriter::GemmWriter(const GemmSpec& spec) : spec_(spec) {
  const VectorAxis axis = vector_axis(spec);
  const View a{"a",
               "lda",
               spec.a_layout,
               spec.transpose_a ? spec.k : spec.m,
               spec.transpose_a ? spec.m : spec.k,
               !spec.transpose_a};
  const View b{"b",
               "ldb",
               spec.b_layout,
               spec.transpose_b ? spec.n : spec.k,
               spec.transpose_b ? spec.k : spec.n,
               spec.transpose_b};
  c_ = {"c", "ldc", spec.c_layout, spec.m, spec.n, axis == VectorAxis::N};
  x_ = axis == VectorAxis::N ? a : b;
  y_ = axis == VectorAxis::N ? b : a;
  i_ = axis == VectorAxis::N ? spec.m : spec.n;
  j_ = axis == VectorAxis::N ? spec.n : spec.m;
  kernel_ = choose_kernel(spec, axis);
  element_ = storage_type(kernel_.element);
  accumulator_ = storage_type(kernel_.accumulator);
  choose_walks();
  choose_update();
  name_ = function_name();
}

std::string layout_code(const OperandLayout& layout) {
  if (layout.form == Form::Panels) {
    return fmt::format("{}p{}w{}i{}", type_code(layout.stored), layout.axis, layout.width, layout.interleave);
  }
  return fmt::format("{}r{}c{}", type_code(layout.stored), layout.row_stride, layout.column_stride);
}

std::string GemmWriter::function_name() const {
  return fmt::format("gemm_{}x{}x{}_{}_{}_{}_{}_{}_{}{}{}{}_{}", spec_.m, spec_.n, spec_.k, type_code(spec_.a),
                     type_code(spec_.b), type_code(spec_.c), layout_code(spec_.a_layout), layout_code(spec_.b_layout),
                     layout_code(spec_.c_layout), spec_.transpose_a ? "_ta" : "", spec_.transpose_b ? "_tb" : "",
                     spec_.clear ? "_clear" : "", kernel_.code()) +
         (spec_.fetch_lines > 0 ? fmt::format("_fetches_{}", spec_.fetch_lines) : "");
}

void GemmWriter::choose_walks() {
  const int interleave = kernel_.interleave;
  const int64_t groups = ceil_div(spec_.k, interleave), width = kernel_.width();
  const auto matches = [&](const View& view) { return same_bits(view.layout.stored, kernel_.element); };
  const bool x_panel =
      !kernel_.tiles() && x_.has_panels_along_outer() && x_.layout.width >= i_ && x_.layout.interleave == interleave;
  const bool x_tiles = kernel_.tiles() && x_.has_panels_along_outer() && x_.layout.width == kTileRows &&
                       x_.layout.interleave == kTileSteps * interleave;
  if (matches(x_) && x_.has_fixed_strides() && (interleave == 1 || x_.k_stride() == 1)) {
    x_walk_ = {false, x_.outer_stride(), x_.outer_stride(), 0, x_.k_stride() * interleave};
  } else if (matches(x_) && x_tiles) {
    x_walk_ = {false, groups * interleave, kTileSteps * interleave, 0, kTileRows * interleave};
  } else if (matches(x_) && x_panel) {
    x_walk_ = {false, interleave, interleave, 0, x_.layout.width * interleave};
  } else {
    const int64_t row = groups * interleave + 64 / (kernel_.element.bits / 8);
    x_walk_ = {true, row, row, 0, interleave};
  }
  const bool y_panels = y_.has_panels_along_outer() && y_.layout.width == width && y_.layout.interleave == interleave;
  if (matches(y_) && y_panels) {
    y_walk_ = {false, 0, 0, groups * width * interleave, width * interleave};
  } else if (matches(y_) && y_.has_fixed_strides() && y_.outer_stride() == 1 && interleave == 1 && j_ % width == 0) {
    y_walk_ = {false, 0, 0, width, y_.k_stride()};
  } else {
    y_walk_ = {true, 0, 0, groups * width * interleave, width * interleave};
  }
}

void GemmWriter::choose_update() {
  const bool narrowed = spec_.c.is_float() && (spec_.c.bits < 32 || spec_.c == tf32);
  if (narrowed || !same_bits(spec_.c_layout.stored, kernel_.accumulator)) return;
  const OperandLayout& layout = spec_.c_layout;
  if (c_.has_fixed_strides() && c_.k_stride() == 1) {
    direct_ = true;
    direct_last_ = j_ % kernel_.width() == 0;
    c_row_stride_ = c_.outer_stride();
    c_panel_stride_ = kernel_.width();
  } else if (layout.form == Form::Panels && !c_.has_panels_along_outer() && layout.width == kernel_.width() &&
             layout.interleave == 1) {
    direct_ = direct_last_ = true;
    c_row_stride_ = kernel_.width();
    c_panel_stride_ = kernel_.width() * i_;
  }
}

std::string GemmWriter::kernel_step(int64_t rows, bool half) const {
  std::string text;
  const auto out = std::back_inserter(text);
  if (!half) text += fetches(spec_.k / kernel_.interleave);
  const char* zero = kernel_.accumulator.is_float() && kernel_.interleave == 1 ? "- words{}" : "+ words{}";
  for (int v = 0; v < kernel_.vectors; ++v) {
    fmt::format_to(out, "    const words y{0} = *(const loose_words*)(y + k * {1} + {2}){3};\n", v, y_walk_.step_stride,
                   v * kernel_.lanes() * kernel_.interleave, half ? " & (words{} + 0xffffu)" : "");
  }
  text += "    words b;\n";
  for (int64_t i = 0; i < rows; ++i) {
    const std::string at = fmt::format("x + {} + k * {}", i * x_walk_.outer_stride, x_walk_.step_stride);
    fmt::format_to(out, "    b = {}({}) {};\n", half ? "(uint32_t)*" : "*(const word*)", at, zero);
    for (int v = 0; v < kernel_.vectors; ++v) {
      fmt::format_to(out, "    c{0}_{1} = {2}(c{0}_{1}, b, y{1});\n", i, v, step_name(kernel_));
    }
  }
  return text;
}

void GemmWriter::begin_kernel(int64_t rows) {
  line("__attribute__((always_inline)) static inline void {}_{}(const {}* x, const {}* y, {}* c, int64_t stride,",
       name_, rows, element_, element_, accumulator_);
  line("    int64_t steps, bool add{}) {{", spec_.fetch_lines > 0 ? ", tw_rows& next" : "");
}

// A step's part of what is to be fetched meanwhile, where a block of C takes so many.
std::string GemmWriter::fetches(int64_t steps) const {
  const int64_t blocks = ceil_div(i_, kernel_.rows) * ceil_div(j_, kernel_.width());
  std::string text;
  for (int64_t i = 0; i < ceil_div(spec_.fetch_lines, blocks * std::max<int64_t>(1, steps)); ++i)
    text += "    tw_fetch_line(next);\n";
  return text;
}

// The rows and bytes of each tile, as ldtilecfg reads them: 0 to 3 hold sums, 4 and 5 rows of x, 6 and 7 columns of y.
// Only where some end early.
void GemmWriter::write_tile_shapes(int64_t rows) {
  if (rows % kTileRows == 0) return;
  std::vector<int64_t> bytes(64, 0);
  const int64_t first = std::min<int64_t>(rows, kTileRows), second = rows - first;
  const std::array<int64_t, 8> heights = {first, first, second, second, first, second, kTileSteps, kTileSteps};
  bytes[0] = 1;  // the palette
  for (size_t t = 0; t < heights.size(); ++t)
    if (heights[t] > 0) bytes[16 + 2 * t] = kernel_.bytes, bytes[48 + t] = heights[t];
  line("static const uint8_t {}_tiles_{}[64] __attribute__((aligned(64))) = {{{}}};", name_, rows,
       fmt::join(bytes, ", "));
}

// Likewise, of tiles: rows of x against columns of y, which come in panels.
void GemmWriter::write_tile_kernel(int64_t rows) {
  write_tile_shapes(rows);
  begin_kernel(rows);
  struct Sums {
    int tile;
    int64_t row;
    int vector;
  };
  std::vector<Sums> sums;
  for (int r = 0; r < (rows > kTileRows ? 2 : 1); ++r)
    for (int v = 0; v < kernel_.vectors; ++v) sums.push_back({r * 2 + v, int64_t{r} * kTileRows, v});
  const auto of_sums = [&](const char* what) {
    for (const Sums& s : sums)
      line("    {}({}, c + {} * stride + {}, stride * {});", what, s.tile, s.row, s.vector * kernel_.lanes(),
           kernel_.accumulator.bits / 8);
  };
  line("  if (add) {{");
  of_sums("tw_tile_load");
  line("  }} else {{");
  for (const Sums& s : sums) line("    tw_tile_zero({});", s.tile);
  line("  }}\n  for (int64_t k = 0; k < steps; k += {}) {{", kTileSteps);
  text_ += fetches(spec_.k / kernel_.interleave / kTileSteps);
  const int64_t size = kernel_.element.bits / 8;
  for (int v = 0; v < kernel_.vectors; ++v)
    line("    tw_tile_load({}, y + k * {} + {}, {});", 6 + v, y_walk_.step_stride,
         v * kernel_.lanes() * kernel_.interleave, y_walk_.step_stride * size);
  for (const Sums& s : sums) {
    if (s.vector == 0)
      line("    tw_tile_load({}, x + k * {} + {}, {});", 4 + s.tile / 2, x_walk_.step_stride,
           s.row * x_walk_.outer_stride, x_walk_.row_stride * size);
    line("    {}({}, {}, {});", step_name(kernel_), s.tile, 4 + s.tile / 2, 6 + s.vector);
  }
  line("  }}");
  of_sums("tw_tile_store");
  line("}}\n");
}

// rows x width of C, from `steps` steps along k. The sums replace *c or are added to it.
void GemmWriter::write_kernel(int64_t rows) {
  if (kernel_.tiles()) return write_tile_kernel(rows);
  begin_kernel(rows);
  text_ += kernel_types(kernel_);
  for (int64_t i = 0; i < rows; ++i) {
    text_ += "  vec";
    for (int v = 0; v < kernel_.vectors; ++v)
      fmt::format_to(std::back_inserter(text_), "{} c{}_{} = {{}}", v ? "," : "", i, v);
    text_ += ";\n";
  }
  line("#pragma GCC unroll 4\n  for (int64_t k = 0; k < steps; ++k) {{");
  text_ += kernel_step(rows, false);
  line("  }}");
  if (spec_.k % kernel_.interleave != 0) {
    line("  {{  // the last pair has one product\n    const int64_t k = steps;");
    text_ += kernel_step(rows, true);
    line("  }}");
  }
  line("  if (add) {{");
  for (int64_t i = 0; i < rows; ++i) {
    for (int v = 0; v < kernel_.vectors; ++v) {
      line("    c{0}_{1} = *(const loose*)(c + {0} * stride + {2}) + c{0}_{1};", i, v, v * kernel_.lanes());
    }
  }
  line("  }}");
  for (int64_t i = 0; i < rows; ++i) {
    for (int v = 0; v < kernel_.vectors; ++v) {
      line("  *(loose*)(c + {0} * stride + {2}) = c{0}_{1};", i, v, v * kernel_.lanes());
    }
  }
  line("}}\n");
}

// Element by element: C has another type or layout than the kernel's block, or ends within it.
void GemmWriter::write_update() {
  const DType stored = c_.layout.stored;
  const std::string ldc = c_.layout.form == Form::Strided && c_.layout.row_stride == 0 ? ", int64_t ldc" : "";
  line("static void {}_update(const {}* block, {}* c, int64_t i0, int64_t j0, int64_t rows, int64_t columns{}) {{",
       name_, accumulator_, storage_type(stored), ldc);
  line("  for (int64_t i = 0; i < rows; ++i) {{\n    for (int64_t j = 0; j < columns; ++j) {{");
  line("      const int64_t at = {};", c_.offset("i0 + i", "j0 + j"));
  const std::string sum = fmt::format("block[i * {} + j]", kernel_.width());
  const std::string old = spec_.clear ? "" : load_element(stored, kernel_.accumulator, "c", "at", pieces_) + " + ";
  line("      {}", store_element(spec_.c, stored, "c", "at", old + sum, pieces_));
  line("    }}\n  }}\n}}\n");
}

std::string GemmWriter::signature() const {
  std::string text =
      fmt::format("({} a, {} b, {} c", "const " + storage_type(spec_.a_layout.stored) + "*",
                  "const " + storage_type(spec_.b_layout.stored) + "*", storage_type(spec_.c_layout.stored) + "*");
  const auto open = [](const OperandLayout& layout) { return layout.form == Form::Strided && layout.row_stride == 0; };
  if (open(spec_.a_layout)) text += ", int64_t lda";
  if (open(spec_.b_layout)) text += ", int64_t ldb";
  if (open(spec_.c_layout)) text += ", int64_t ldc";
  if (spec_.fetch_lines > 0) text += ", tw_rows next";
  return text + ")";
}

void GemmWriter::write_packing() {
  const int interleave = kernel_.interleave;
  if (x_walk_.packed) {
    line("  for (int64_t i = 0; i < {}; ++i) {{\n    for (int64_t k = 0; k < {}; ++k) {{", i_, spec_.k);
    line("      {}_x[i * {} + k] = {};", name_, x_walk_.outer_stride,
         load_element(x_.layout.stored, kernel_.element, x_.name, x_.offset("i", "k"), pieces_));
    line("    }}\n  }}");
  }
  if (y_walk_.packed) {
    const int64_t width = kernel_.width();
    line("  for (int64_t p = 0; p < {}; ++p) {{", ceil_div(j_, width));
    line("    const int64_t lanes = {0} - p * {1} < {1} ? {0} - p * {1} : {1};", j_, width);
    line("    for (int64_t k = 0; k < {}; ++k) {{\n      for (int64_t j = 0; j < lanes; ++j) {{", spec_.k);
    const std::string at = interleave == 1 ? fmt::format("p * {} + k * {} + j", y_walk_.panel_stride, width)
                                           : fmt::format("p * {} + k / {} * {} + j * {} + k % {}", y_walk_.panel_stride,
                                                         interleave, width * interleave, interleave, interleave);
    line("        {}_y[{}] = {};", name_, at,
         load_element(y_.layout.stored, kernel_.element, y_.name, y_.offset(fmt::format("p * {} + j", width), "k"),
                      pieces_));
    line("      }}\n    }}\n  }}");
  }
}

void GemmWriter::write_call(int64_t rows, const std::string& panels, bool direct, bool runs,
                            const std::string& indent) {
  const int64_t steps = spec_.k / kernel_.interleave;
  const char* next = spec_.fetch_lines > 0 ? ", next" : "";
  const std::string x =
      fmt::format("x + i * {}{}", x_walk_.outer_stride, runs ? fmt::format(" + k0 * {}", x_walk_.step_stride) : "");
  const std::string y =
      fmt::format("y + p * {}{}", y_walk_.panel_stride, runs ? fmt::format(" + k0 * {}", y_walk_.step_stride) : "");
  line("{}for (int64_t p = {}; ++p) {{", indent, panels);
  if (direct) {
    const std::string add = spec_.clear ? (runs ? "k0 > 0" : "false") : "true";
    line("{}  {}_{}({}, {}, ({}*)c + i * {} + p * {}, {}, {}, {}{});", indent, name_, rows, x, y, accumulator_,
         c_row_stride_, c_panel_stride_, c_row_stride_, runs ? "steps" : std::to_string(steps), add, next);
  } else {
    const int64_t width = kernel_.width();
    line("{}  {}_{}({}, {}, block, {}, {}, false{});", indent, name_, rows, x, y, width, steps, next);
    const bool open = c_.layout.form == Form::Strided && c_.layout.row_stride == 0;
    line("{0}  {1}_update(block, c, i, p * {2}, {3}, {4} - p * {2} < {2} ? {4} - p * {2} : {2}{5});", indent, name_,
         width, rows, j_, open ? ", ldc" : "");
  }
  line("{}}}", indent);
}

// Groups of `rows` rows from `begin` to `end`. A group's rows stay in the first-level cache while the panels stream by:
// measured 3% faster than holding a panel and streaming the rows.
void GemmWriter::write_groups(int64_t rows, int64_t begin, int64_t end, bool runs) {
  if (begin == end) return;
  const std::string indent = runs ? "    " : "  ";
  const bool end_early = kernel_.tiles() && rows % kTileRows != 0;
  if (end_early) line("{}tw_tile_configure({}_tiles_{});", indent, name_, rows);
  const int64_t panels = ceil_div(j_, kernel_.width());
  const int64_t whole = direct_ ? (direct_last_ ? panels : panels - 1) : 0;
  line("{}for (int64_t i = {}; i < {}; i += {}) {{", indent, begin, end, rows);
  if (whole > 0) write_call(rows, fmt::format("0; p < {}", whole), true, runs, indent + "  ");
  if (whole < panels) write_call(rows, fmt::format("{}; p < {}", whole, panels), false, runs, indent + "  ");
  line("{}}}", indent);
  if (end_early) line("{}tw_tile_configure(tw_whole_tiles);", indent);
}

GemmText GemmWriter::write() {
  // As few groups as the registers allow, of nearly equal size: the first of one row more than the rest. Those of tiles
  // are whole tiles as far as there are.
  const int64_t groups = ceil_div(i_, kernel_.rows);
  int64_t rows = ceil_div(i_, groups), others = rows - 1, end = (i_ - others * groups) * rows;
  if (kernel_.tiles()) rows = std::min<int64_t>(i_, kernel_.rows), others = i_ % rows, end = i_ - others;
  const int64_t steps = spec_.k / kernel_.interleave, panels = ceil_div(j_, kernel_.width());
  const bool runs = direct_ && direct_last_ && steps > kLongestRun && spec_.k % kernel_.interleave == 0;
  text_ += step_definition(kernel_);
  write_kernel(rows);
  if (end < i_) write_kernel(others);
  if (!direct_ || !direct_last_) write_update();
  const auto buffer = [&](std::string_view operand, int64_t elements) {
    line("static __thread {} {}_{}[{}] __attribute__((aligned(64)));", element_, name_, operand, elements);
  };
  if (x_walk_.packed) buffer("x", i_ * x_walk_.outer_stride);
  if (y_walk_.packed) buffer("y", panels * y_walk_.panel_stride);
  line("__attribute__((noinline)) static void {}{} {{", name_, signature());
  write_packing();
  const auto pointer = [&](std::string_view operand, const Walk& walk, const View& view) {
    if (walk.packed) return line("  const {0}* {1} = {2}_{1};", element_, operand, name_);
    line("  const {0}* {1} = (const {0}*){2};", element_, operand, view.name);
  };
  pointer("x", x_walk_, x_);
  pointer("y", y_walk_, y_);
  if (!direct_ || !direct_last_) {
    line("  {} block[{}] __attribute__((aligned(64)));", accumulator_, rows * kernel_.width());
  }
  if (runs) {
    line("  for (int64_t k0 = 0; k0 < {}; k0 += {}) {{", steps, kRun);
    line("    const int64_t steps = {0} - k0 < {1} ? {0} - k0 : {1};", steps, kRun);
  }
  write_groups(rows, 0, end, runs);
  write_groups(others, end, i_, runs);
  if (runs) line("  }}");
  line("}}\n");
  GemmText result;
  result.name = name_, result.tiles = kernel_.tiles();
  result.definition = std::move(text_);
  result.pieces = std::move(pieces_);
  result.kernel = fmt::format("{}, {} x {}", kernel_.code(), rows, kernel_.width());
  result.packs_a = x_.name == "a" ? x_walk_.packed : y_walk_.packed;
  result.packs_b = x_.name == "b" ? x_walk_.packed : y_walk_.packed;
  result.updates_elements = !direct_ || !direct_last_;
  return result;
}

}  // namespace

std::optional<std::string> gemm_unsupported(DType a, DType b, DType c) {
  if (c.is_packed() || c.is_bool() || c.is_pointer() || c == e8m0) {
    return fmt::format("gemm cannot accumulate in {}", c.name());
  }
  for (DType operand : {a, b}) {
    if (operand.is_pointer()) return std::string("gemm cannot multiply pointers");
    if (c.is_int() && !operand.is_integral()) {
      return fmt::format("gemm cannot accumulate products of {} in {}", operand.name(), c.name());
    }
    const int most = c == f64 ? (operand.is_float() ? 64 : 32) : (operand.is_float() ? 32 : 16);
    if (c.is_float() && operand.bits > most) {
      return fmt::format("gemm in {} cannot hold every value of {}", c.name(), operand.name());
    }
  }
  return std::nullopt;
}

bool uses_tiles(const GemmSpec& spec) { return choose_kernel(spec, vector_axis(spec)).tiles(); }

bool flushes_subnormals(const GemmSpec& spec) {
  const GemmStep step = choose_kernel(spec, vector_axis(spec)).step;
  return step == GemmStep::Bf16Pairs || step == GemmStep::Bf16Tiles;
}

GemmText gemm_text(const GemmSpec& spec) {
  check_internal(spec.m > 0 && spec.n > 0 && spec.k > 0, "gemm of {} x {} x {}", spec.m, spec.n, spec.k);
  const std::optional<std::string> reason = gemm_unsupported(spec.a, spec.b, spec.c);
  check_internal(!reason, "{}", *reason);
  return GemmWriter(spec).write();
}

}  // namespace tilewright
