#include "analysis/tma.h"

#include "analysis/divisibility.h"
#include "analysis/im2col.h"
#include "analysis/panels.h"
#include "ir/widen.h"

namespace tilewright::analysis {

using namespace ir;

bool is_by_tma(const Copy& copy) {
  const Queue queue = copy.completion.queue;
  return !copy.completion.immediate() && queue != Queue::CpAsync && queue != Queue::Prefetch && queue != Queue::StAsync;
}

namespace {

constexpr size_t kMaxRank = 5;  // of a tensor (CUDA driver API, cuTensorMapEncodeTiled)

bool is_multiple(const Expr& e, int64_t elements, const ProgramTables& p) {
  return elements <= 1 || analysis::power_of_two_divisor(widen(e), p) % elements == 0;
}

// A coordinate that the hardware would wrap around: numbers that leave 32 bits, or the upper half of unsigned ones.
bool may_leave_coordinates(const Expr& e) {
  const int64_t most = int64_t{1} << 31;
  if (const auto number = constant_int(e)) return *number >= most || *number < -most;
  return leaves_32_bits(e) || (!e->type.is_signed() && e->type.bits >= 32);
}

bool begins_between_eights(const Region& shared, const ProgramTables& p) {
  const size_t rank = shared.min.size();
  return rank > 1 && !is_multiple(shared.min[rank - 2], 8, p);
}

// Of a copy whose side on chip is `shared`, a part of tile `s`, of whose rows a box has `panel` elements.
std::string misfit(const Copy& copy, const Region& shared, const Buffer& s, int64_t panel, const ProgramTables& p) {
  const bool loads = p.buffer(copy.from.buffer).space == Space::Global;
  const std::optional<Region> patches = copy.im2col.present() ? im2col_box(copy, p) : std::nullopt;
  if (copy.im2col.present() && !patches) return "it takes patches of an image that are no box of it";
  const Region& global = patches ? *patches : loads ? copy.from : copy.to;
  const Buffer& g = p.buffer(global.buffer);
  if (g.type != s.type) return "it converts";
  const Buffer& memory = p.buffer(p.root(global.buffer));
  for (const Buffer* b : {&memory, &g})
    if (begins_anywhere(*b)) return fmt::format("'{}' may begin at any of its elements", b->name);
  // What is read through a view of a whole tensor has a map of its own, with the view's dimensions.
  if (g.address || memory.address || (g.is_view() && (!loads || g.offset || !memory.strides.empty())))
    return fmt::format("'{}' is a view", g.name);
  for (const Buffer* b : {&memory, &g})
    if (b->fill && constant_int(b->fill) != 0) return fmt::format("'{}' has a fill value", b->name);
  if (g.rank() > kMaxRank) return fmt::format("'{}' has more than {} dimensions", g.name, kMaxRank);
  if (panel == 0)
    return s.rank() == 1 ? fmt::format("'{}' is no multiple of 16 bytes, or seen through views", s.name)
                         : fmt::format("rows of '{}' are not 16 bytes, nor whole panels of 32, 64 or 128", s.name);
  const int64_t elements = std::max<int64_t>(kStrideBytes * 8 / g.type.bits, 1);
  if (!g.strides.empty() && constant_int(g.strides.back()) != 1) return fmt::format("'{}' is not contiguous", g.name);
  for (size_t d = 0; d + 1 < g.rank(); ++d)
    if (!is_multiple(g.strides.empty() ? g.shape.back() : g.strides[d], elements, p))
      return fmt::format("rows of '{}' are not known to be multiples of {} bytes", g.name, kStrideBytes);
  // Seen on an H200: a box that begins elsewhere is an illegal instruction, whatever its swizzle.
  if (!is_multiple(global.min.back(), elements, p))
    return fmt::format("it may begin between pieces of {} bytes of rows of '{}'", kStrideBytes, g.name);
  // Seen on an H200: loads are cut at the tensor's last element, but stores write whole pieces. What lies between
  // padded rows, or behind a tensor, is not the program's.
  const auto first_of_box = constant_int(global.min.back()), wide = constant_int(global.extent.back()),
             width = constant_int(g.shape.back());
  const bool ends_inside = first_of_box && wide && width && *first_of_box + *wide <= *width;
  if (!loads && !ends_inside && !is_multiple(g.shape.back(), elements, p))
    return fmt::format("stores write pieces of {} bytes, and rows of '{}' are not known to end with one", kStrideBytes,
                       g.name);
  for (const Expr& e : global.min)
    if (may_leave_coordinates(e)) return "it may begin beyond 32 bits, which TMA counts with";
  // The tile: the last two dimensions on chip, whole rows of it, against the last of the tensor.
  const size_t rank = shared.min.size();
  for (size_t d = 0; d + 2 < rank; ++d)
    if (constant_int(shared.extent[d]) != 1) return fmt::format("it fills more than a matrix of '{}'", s.name);
  const auto first = constant_int(shared.min[rank - 1]), columns = constant_int(shared.extent[rank - 1]);
  // A box that is narrower than the widest swizzle leaves the rest of its rows as it is (panels.h).
  const bool narrower = rank > 1 && panel_span(s) == kWidestPanel && constant_int(s.shape[s.rank() - 2]) != 1 &&
                        columns && *columns % elements == 0;
  const bool ends = narrower || (first && columns && *first + *columns == constant_int(s.shape.back()));
  if (!first || !columns || *first % panel != 0 || (*columns % panel != 0 && !ends))
    return fmt::format("it moves part of a panel of '{}'", s.name);
  if (s.panel != kNarrowestPanel && begins_between_eights(shared, p))
    return fmt::format("it begins between eights of rows of '{}'", s.name);
  if (constant_int(global.extent.back()) != constant_int(shared.extent.back()))
    return fmt::format("rows of '{}' are not along its last dimension", g.name);
  const int64_t rows = rank > 1 ? constant_int(shared.extent[rank - 2]).value_or(0) : 1;
  int64_t boxed = 1;
  for (size_t d = 0; d + 1 < global.extent.size(); ++d) {
    const auto extent = constant_int(global.extent[d]);
    if (!extent || *extent <= 0 || *extent > kMaxBox) return "its box has more than 256 rows";
    if (*extent != 1 && boxed != 1 && !patches) return "its rows run over two dimensions";
    boxed *= *extent;
  }
  if (boxed != rows) return "the rows of both sides differ";
  if (copy.combine != ir::Combine::None && loads) return "it combines on chip";
  return "";
}

}  // namespace

std::string tma_misfit(const Copy& copy, const ProgramTables& p) {
  const Region& shared = p.buffer(copy.from.buffer).space == Space::Global ? copy.to : copy.from;
  return misfit(copy, shared, p.buffer(shared.buffer), box_columns(p, shared.buffer), p);
}

bool wants_rows(const Copy& copy, const ProgramTables& p) {
  const Region& shared = p.buffer(copy.from.buffer).space == Space::Global ? copy.to : copy.from;
  const Buffer& b = p.buffer(shared.buffer);
  return may_have_layout(p, shared.buffer) && comes_by_rows(b) &&
         (begins_between_eights(shared, p) || is_one_run(copy, b, p));
}

std::string tma_misfit_as_row(const Copy& copy, const ProgramTables& p) {
  Buffer row = p.buffer(copy.to.buffer);
  row.shape.insert(row.shape.begin(), constant(i32, int64_t{1}));
  Copy into = copy;
  into.to = {copy.to.buffer, {constant(0), copy.to.min[0]}, {constant(1), copy.to.extent[0]}};
  return misfit(into, into.to, row, box_columns(row), p);
}

bool is_one_run(const Copy& c, const Buffer& to, const ProgramTables& p) {
  const Buffer& from = p.buffer(c.from.buffer);
  if (c.combine != ir::Combine::None || c.im2col.present() || c.multicast != 0) return false;
  if (from.space != Space::Global || to.space != Space::Shared || from.type != to.type) return false;
  // Views and strides of the program's own say otherwise where elements are.
  if (from.is_view() || from.address || from.offset || !from.strides.empty() || begins_anywhere(from) || to.is_view() ||
      to.layout.kind != LayoutHint::None)
    return false;
  // A bulk copy knows neither panels nor their swizzle.
  if (to.memory && (to.memory->swizzle().bits != 0 || to.memory->dims().back().size() != 1)) return false;
  const auto row = from.shape.empty() ? std::nullopt : constant_int(from.shape.back());
  if (!row || *row <= kMaxBox || *row * from.type.storage_bits() % (kStrideBytes * 8) != 0) return false;
  if (constant_int(c.from.min.back()) != 0 || constant_int(c.from.extent.back()) != row) return false;
  const auto is_row = [&](const Region& r) {
    for (size_t d = 0; d + 1 < r.extent.size(); ++d)
      if (constant_int(r.extent[d]) != 1) return false;
    return constant_int(r.extent.back()) == row;
  };
  return is_row(c.from) && is_row(c.to) && constant_int(c.to.min.back()) == 0 && constant_int(to.shape.back()) == row;
}

std::vector<Expr> inside_of_tensor(const Copy& c, const ProgramTables& p) {
  const Buffer& from = p.buffer(c.from.buffer);
  std::vector<Expr> out;
  for (size_t d = 0; d + 1 < from.rank(); ++d) {
    const Expr at = widen(c.from.min[d]);
    out.push_back(binary(BinaryOp::Le, wide(0), at));
    out.push_back(binary(BinaryOp::Lt, at, widen(from.shape[d])));
  }
  return out;
}

}  // namespace tilewright::analysis
