#include "passes/threads/layout_classes.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "layout/standard.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int kQueueBits = 32;  // the least that cp.async moves (PTX ISA 9.7.9.25.3)
constexpr int kVectorBits = 128, kSectorBits = 256;
constexpr int64_t kPartCopies = 4;  // threads that may have the same elements of a part
constexpr int64_t kWithin = 16;     // elements that a thread may have to itself, for sums that cross no lanes

// A row is dealt alike as a tensor of one dimension and as a tile of one row. The last extent stays: vectors run along
// it.
std::vector<int64_t> without_ones(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 || d + 1 == shape.size()) out.push_back(shape[d]);
  return out;
}

FragmentLayout kept(const FragmentLayout& layout, const std::vector<int>& dims) {
  FragmentLayout out = layout;
  for (int d = layout.rank(); d-- > 0;)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) out = reduced(out, d);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] < 0) out = insert_dim(out, static_cast<int>(d));
  return out;
}

// Whether several warps hold a row.
bool crosses_warps(const FragmentLayout& layout) {
  for (const Factor& m : layout.dims().back())
    if (m.home == Home::Warp && m.extent > 1) return true;
  return false;
}

// Small matrices of which rows and columns are reduced, each of them in one thread; none: they are large, or few.
std::optional<FragmentLayout> in_threads(const LayoutClass& c, int bits) {
  const int64_t all = std::accumulate(c.shape.begin(), c.shape.end(), int64_t{1}, std::multiplies<>());
  if (c.within < 2 || c.within > kWithin || all % c.within != 0 || all / c.within < c.threads) return std::nullopt;
  return reshape(row_major_fragment({all / c.within, c.within}, c.threads, c.within, bits), c.shape);
}

// Whether a gemm alone decides: global memory is read in whole rows, and the tile goes to shared memory for that.
bool is_operand(const LayoutClass& c) { return c.operand && !c.anchor && !c.annotated && !c.global; }

// A layout of `shape` that leaves `child` where the last dimension goes: along it lie the threads that hold copies of
// that. None: there are no copies, or they do not divide it.
std::optional<FragmentLayout> over_copies(const FragmentLayout& child, const std::vector<int64_t>& shape, int bits) {
  const int64_t copies = child.copy_count(), last = shape.back();
  if (child.is_padded() || child.is_partial() || copies == 1 || last % copies != 0) return std::nullopt;
  int64_t vector = std::max<int64_t>(1, kVectorBits / bits);
  while (last / copies % vector != 0) vector /= 2;
  FragmentLayout::Dims dims = child.dims();
  for (std::vector<Factor>& d : dims)
    for (Factor& f : d)
      if (f.home == Home::Register) f.stride *= vector;
  std::vector<Factor> along{{last / copies / vector, Home::Register, child.registers() * vector}};
  for (const Copies& c : child.copies()) along.push_back(c.factor);
  along.push_back({vector, Home::Register, 1});
  dims.push_back(std::move(along));
  if (!FragmentLayout::fault(shape, dims).empty()) return std::nullopt;
  return FragmentLayout(shape, std::move(dims));
}

// Points that only memory on chip speaks for, of which fragments that have their layout follow all dimensions but the
// last: they lie so that one of those stays where it is.
void keep_followers(LayoutClasses& all, size_t parent) {
  LayoutClass& c = all.of(parent);
  if (c.anchor || c.annotated || c.operand || c.element_bits == 0 || c.global || c.apart || c.reduced || c.within > 0 ||
      c.by_queue)
    return;
  for (const Follows& f : all.follows) {
    const LayoutClass& child = all.of(f.child);
    const std::vector<int64_t>& shape = all.nodes[f.parent].shape;
    if (all.find(f.parent) != parent || !child.layout || f.dims.size() + 1 != shape.size()) continue;
    bool in_order = true;
    for (size_t d = 0; d < f.dims.size(); ++d) in_order = in_order && f.dims[d] == static_cast<int>(d);
    if (!in_order || (child.layout->is_replicated() && child.layout->copy_count() == child.threads)) continue;
    const FragmentLayout held = all.layout_of(f.child);
    auto layout = over_copies(held, shape, c.element_bits);
    if (!layout || !equal_up_to_registers(shaped(kept(*layout, f.dims), child.shape), *child.layout)) continue;
    c.layout = shaped(*layout, c.shape);
    c.decided_by = fmt::format("{}, whose copies divide what it has not", all.nodes[f.child].name);
    return;
  }
}

// The elements along the last dimension that a thread has together, of points of this shape.
int64_t vector_of(const LayoutClass& c, const std::vector<int64_t>& shape) {
  const int bits = c.vector_bits();
  return best_vector(shape, c.threads, bits, std::min<int64_t>(16, std::max<int64_t>(1, c.aligned * bits / 8)));
}

// How many neighbours of a dimension a thread has at once.
int64_t vector_along(const LayoutClass& c, size_t d, const LayoutClass::Along& along) {
  int64_t out = 1;
  while (2 * out * along.widest <= kVectorBits && c.shape[d] % (2 * out) == 0 && 2 * out <= along.aligned) out *= 2;
  return out;
}

// A layout of points of which memory has neighbours along the last dimension and `down`, another: vectors of both, so
// many lanes along each that sectors are whole. What is left of the warps goes to the other dimensions, from the first.
// None: powers of two do not divide it so.
std::optional<FragmentLayout> both_ways(const LayoutClass& c, size_t down, const LayoutClass::Along& of_down,
                                        const LayoutClass::Along& of_last) {
  if (c.threads % kWarpThreads != 0) return std::nullopt;
  const size_t last = c.shape.size() - 1;
  const int64_t warps = c.threads / kWarpThreads, m = c.shape[down], n = c.shape[last];
  if (!std::has_single_bit(static_cast<uint64_t>(warps))) return std::nullopt;
  std::vector<int64_t> others(c.shape.size(), 1);  // warps along the other dimensions
  int64_t rest = warps, all = 1;
  for (size_t d = 0; d < last; ++d) {
    all *= c.shape[d];
    if (d == down) continue;
    others[d] = std::gcd(rest, c.shape[d]), rest /= others[d];
  }
  if (all * n % c.threads != 0) return std::nullopt;
  const int64_t each = all * n / c.threads;
  struct Cut {
    int64_t vector = 0, lanes = 0, warps = 0;
  };
  // Instructions, and a quarter of the sectors of 32 bytes, of an access by one warp.
  const auto cost = [&](const LayoutClass::Along& along, const Cut& cut) {
    const int64_t run = cut.vector * cut.lanes * along.widest;
    const int64_t sectors = kWarpThreads / cut.lanes * ((run + kSectorBits - 1) / kSectorBits);
    return static_cast<double>(each) / static_cast<double>(cut.vector) * (1.0 + static_cast<double>(sectors) / 4);
  };
  Cut a, b;
  std::tuple<double, int64_t> least{0.0, 0};
  for (int64_t v = vector_along(c, down, of_down); v > 0; v /= 2)
    for (int64_t w = vector_along(c, last, of_last); w > 0; w /= 2)
      for (int64_t lanes = 1; lanes <= kWarpThreads; lanes *= 2)
        for (int64_t along = 1; along <= rest; along *= 2) {
          const Cut x{v, lanes, along}, y{w, kWarpThreads / lanes, rest / along};
          if (v * w > each || m % (x.vector * x.lanes * x.warps) != 0 || n % (y.vector * y.lanes * y.warps) != 0)
            continue;
          const std::tuple now(cost(of_down, x) + cost(of_last, y),
                               -std::min(v * x.lanes * of_down.widest, w * y.lanes * of_last.widest));
          if (a.vector == 0 || now < least) a = x, b = y, least = now;
        }
  if (a.vector * b.vector <= 1) return std::nullopt;
  FragmentLayout::Dims dims(c.shape.size());
  int64_t registers = a.vector * b.vector, of_warps = a.warps * b.warps;
  for (size_t d = last + 1; d-- > 0;) {
    if (d != last && d != down) {
      const int64_t rounds = c.shape[d] / others[d];
      dims[d] = {{rounds, Home::Register, registers}, {others[d], Home::Warp, of_warps}};
      registers *= rounds, of_warps *= others[d];
      continue;
    }
    const Cut& cut = d == down ? a : b;
    const int64_t rounds = c.shape[d] / (cut.vector * cut.lanes * cut.warps);
    dims[d] = {{rounds, Home::Register, registers},
               {cut.warps, Home::Warp, d == down ? b.warps : 1},
               {cut.lanes, Home::Lane, d == down ? b.lanes : 1},
               {cut.vector, Home::Register, d == down ? b.vector : 1}};
    registers *= rounds;
  }
  return FragmentLayout(c.shape, std::move(dims));
}

// Points whose elements global memory has side by side along another dimension than the last: lanes and vectors lie
// along that; along both, where the last is memory's too. None: global memory has none, or more along the last.
std::optional<FragmentLayout> along_memory(const LayoutClass& c) {
  if (c.by_queue || c.within > 0) return std::nullopt;
  const size_t last = c.shape.size() - 1;
  const auto found = std::ranges::max_element(
      c.in_global, {}, [&](const auto& x) { return x.first == last ? int64_t{0} : x.second.bits; });
  if (found == c.in_global.end() || found->first == last) return std::nullopt;
  const auto& [d, along] = *found;
  const auto of_last = c.in_global.find(last), chip = c.on_chip.find(last);
  const bool in_rows = of_last != c.in_global.end();
  if (!c.reduced && (in_rows || chip != c.on_chip.end()))
    if (auto both = both_ways(c, d, along, in_rows ? of_last->second : chip->second)) return both;
  if (in_rows && of_last->second.bits >= along.bits) return std::nullopt;
  std::vector<int> order, back(c.shape.size());  // dimensions, that one last; and where each went
  for (size_t k = 0; k <= last; ++k)
    if (k != d) order.push_back(static_cast<int>(k));
  order.push_back(static_cast<int>(d));
  std::vector<int64_t> shape;
  for (size_t k = 0; k <= last; ++k) {
    shape.push_back(c.shape[static_cast<size_t>(order[k])]);
    back[static_cast<size_t>(order[k])] = static_cast<int>(k);
  }
  const int64_t most = std::min<int64_t>(16, std::max<int64_t>(1, along.aligned * along.widest / 8));
  const int64_t vector = best_vector(shape, c.threads, along.widest, most);
  return permute(row_major_fragment(shape, c.threads, vector, along.widest), back);
}

void anchor(LayoutClass& c) {
  if (c.anchor) {
    c.layout = c.anchor;
    return;
  }
  if (c.annotated) {
    c.layout = c.annotated, c.decided_by = "its annotation";
    return;
  }
  if (is_operand(c)) {
    c.layout = c.operand, c.decided_by = "a gemm that reads it from registers";
    return;
  }
  if (auto along = along_memory(c)) {
    c.layout = std::move(along), c.decided_by = "accesses of memory that has neighbours along another dimension";
    return;
  }
  const int bits = c.vector_bits();
  c.decided_by =
      c.element_bits ? fmt::format("accesses of memory, elements of {} bits", bits) : "nothing: row after row";
  // Of what memory holds apart a thread would bring the neighbours one by one: they are other threads'.
  const bool apart = c.apart && c.element_bits == 0;
  if (apart) c.decided_by = "accesses of memory, apart along the last dimension: a thread has no neighbours";
  int64_t vector = apart ? 1 : vector_of(c, c.shape);
  if (const int64_t least = kQueueBits / bits; c.by_queue && vector < least && c.shape.back() % least == 0)
    vector = least;
  c.layout = row_major_fragment(c.shape, c.threads, vector, bits);
  // Half as wide, where then no place is empty, which would be asked for in every use.
  const auto is_full = [](const FragmentLayout& l) { return !l.is_padded() && l.uses_all_threads(); };
  if (vector > 1 && vector * bits >= kVectorBits && !is_full(*c.layout) &&
      c.shape.back() % (kWarpThreads * vector / 2) == 0) {
    FragmentLayout half = row_major_fragment(c.shape, c.threads, vector / 2, bits);
    if (is_full(half) && half.threads() == c.threads && half.registers() <= c.layout->registers())
      c.layout = std::move(half), vector /= 2;
  }
  if (auto own = in_threads(c, bits); own && !c.by_queue) {
    c.layout = std::move(own);
    c.decided_by = "reductions along several dimensions: a thread has whole matrices";
    return;
  }
  if (!c.reduced || !crosses_warps(*c.layout)) return;
  if (auto rows = rows_in_warps(c.shape, c.threads, vector)) {
    c.layout = std::move(rows);
    c.decided_by = "a reduction along rows: each lies in one warp";
  }
}

// Points that run over parts of fragments, one part after the other, where the layout that memory likes best would have
// the parts in different threads: every thread has some of each part.
void keep_parts(LayoutClasses& all, size_t i) {
  LayoutClass& c = all.classes[i];
  if (c.anchor || c.annotated || is_operand(c) || c.by_queue) return;
  const auto serves = [&] {
    return std::all_of(all.covers.begin(), all.covers.end(),
                       [&](const Covers& box) { return all.find(box.fragment) != i || wanted_of(all, box); });
  };
  if (serves()) return;
  std::optional<std::vector<int64_t>> part;
  std::vector<int64_t> whole;
  for (const Covers& box : all.covers) {
    if (all.find(box.fragment) != i) continue;
    const std::vector<int64_t>&shape = all.nodes[box.fragment].shape, &points = all.nodes[box.map].shape;
    if (!part) part = whole = shape;
    if (shape != whole) return;
    for (size_t d = 0; d < whole.size(); ++d) {
      const int64_t extent = box.box.dims[d] < 0 ? 1 : points[static_cast<size_t>(box.box.dims[d])];
      (*part)[d] = std::gcd(std::gcd((*part)[d], extent), box.box.first[d]);
    }
  }
  const int64_t elements = std::accumulate(part->begin(), part->end(), int64_t{1}, std::multiplies<>());
  if (elements * kPartCopies < c.threads) return;
  const int bits = c.vector_bits();
  const std::optional<FragmentLayout> before = c.layout;
  FragmentLayout layout = row_major_fragment(*part, c.threads, vector_of(c, *part), bits);
  if (layout.is_padded()) return;  // nothing is repeated behind places that hold no element
  for (size_t d = whole.size(); d-- > 0;)
    layout = repeat(layout, static_cast<int>(d), whole[d] / (*part)[d], Home::Register);
  c.layout = shaped(layout, c.shape);
  if (serves())
    c.decided_by = "parallel loops over parts of it: every thread has some of each";
  else
    c.layout = before;
}

// The layout of a fragment of which a gemm's tile covers a box: that tile's, again and again. None: it would not serve
// all other boxes that have a layout.
std::optional<FragmentLayout> over_boxes(const LayoutClasses& all, const Covers& c) {
  const FragmentLayout tile = all.layout_of(c.map);
  const std::vector<int64_t>& whole = all.nodes[c.fragment].shape;
  if (!all.of(c.map).anchor || tile.is_padded() || tile.shape().size() != whole.size()) return std::nullopt;
  FragmentLayout out = tile;
  for (size_t d = whole.size(); d-- > 0;) {
    const int64_t extent = tile.shape()[d];
    if (c.box.dims[d] != static_cast<int>(d) || whole[d] % extent != 0) return std::nullopt;
    if (whole[d] > extent) out = repeat(out, static_cast<int>(d), whole[d] / extent, Home::Register);
  }
  LayoutClasses tried = all;
  tried.of(c.fragment).layout = shaped(out, tried.of(c.fragment).shape);
  const bool serves = std::ranges::all_of(all.covers, [&](const Covers& other) {
    if (all.find(other.fragment) != all.find(c.fragment) || !all.of(other.map).layout) return true;
    const auto wanted = wanted_of(tried, other);
    return wanted && equal_up_to_registers(all.layout_of(other.map), shaped(*wanted, all.nodes[other.map].shape));
  });
  return serves ? std::optional(std::move(out)) : std::nullopt;
}

// Classes that follow this one and have no layout take theirs from it.
void hand_on(LayoutClasses& all, size_t parent) {
  const auto take = [&](size_t child, const FragmentLayout& layout, std::string from) {
    LayoutClass& c = all.of(child);
    c.layout = shaped(layout, c.shape), c.decided_by = std::move(from);
    hand_on(all, all.find(child));
  };
  const auto is_open = [&](size_t child) { return !all.of(child).layout && !all.of(child).anchor; };
  for (const Covers& c : all.covers)
    if (all.find(c.fragment) == parent && is_open(c.map))
      if (const auto layout = wanted_of(all, c))
        take(c.map, *layout, fmt::format("{}: a box of it", all.nodes[c.fragment].name));
  for (const Covers& c : all.covers)
    if (all.find(c.map) == parent && is_open(c.fragment))
      if (const auto layout = over_boxes(all, c))
        take(c.fragment, *layout, fmt::format("{}, of which it has several", all.nodes[c.map].name));
  for (const Reshaped& r : all.reshaped)
    for (const auto& [from, to] : {std::pair{r.fragment, r.view}, std::pair{r.view, r.fragment}})
      if (all.find(from) == parent && is_open(to))
        if (const auto layout = wanted_of(all, from, to))
          take(to, *layout, fmt::format("{} in another shape", all.nodes[from].name));
  for (const Follows& f : all.follows)
    if (all.find(f.parent) == parent && is_open(f.child))
      take(f.child, wanted_of(all, f), fmt::format("{}: dimensions of it", all.nodes[f.parent].name));
}

}  // namespace

size_t LayoutClasses::add(LayoutNode node, const analysis::ThreadSet& threads) {
  LayoutClass c;
  c.shape = without_ones(node.shape), c.threads = threads.count(), c.first_thread = threads.begin[0];
  parents.push_back(nodes.size());
  nodes.push_back(std::move(node)), classes.push_back(std::move(c));
  return nodes.size() - 1;
}

size_t LayoutClasses::find(size_t i) const {
  while (parents[i] != i) i = parents[i];
  return i;
}

bool LayoutClasses::are_alike(size_t a, size_t b) const {
  const std::vector<int64_t>&x = of(a).shape, &y = of(b).shape;
  const size_t least = std::min(x.size(), y.size());
  const auto ones = [&](const std::vector<int64_t>& shape) {
    return std::all_of(shape.begin() + static_cast<std::ptrdiff_t>(least), shape.end(),
                       [](int64_t e) { return e == 1; });
  };
  return std::equal(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(least), y.begin()) && ones(x) && ones(y);
}

void LayoutClasses::unite(size_t a, size_t b) {
  a = find(a), b = find(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  parents[b] = a;
  LayoutClass& keep = classes[a];
  LayoutClass gone = classes[b];
  // Where one has a column of extent 1, vectors run along the rows of the other: what the column is like says nothing.
  if (keep.shape.size() != gone.shape.size()) {
    LayoutClass& column = keep.shape.size() > gone.shape.size() ? keep : gone;
    column.shape = std::min(keep.shape, gone.shape, [](const auto& x, const auto& y) { return x.size() < y.size(); });
    column.apart = column.apart || column.element_bits > 0;
    column.element_bits = column.own_bits = 0, column.aligned = kMostLanes, column.reduced = false;
  }
  if (keep.shape == gone.shape) {
    const auto join = [](auto& into, const auto& from) {
      for (const auto& [d, a] : from) {
        LayoutClass::Along& have = into[d];
        have.bits += a.bits, have.widest = std::max(have.widest, a.widest);
        have.aligned = std::min(have.aligned, a.aligned);
      }
    };
    join(keep.in_global, gone.in_global), join(keep.on_chip, gone.on_chip);
  } else {
    keep.in_global.clear(), keep.on_chip.clear();
  }
  keep.element_bits = std::max(keep.element_bits, gone.element_bits);
  keep.own_bits = std::max(keep.own_bits, gone.own_bits);
  keep.aligned = std::min(keep.aligned, gone.aligned);
  keep.global = keep.global || gone.global;
  keep.apart = keep.apart || gone.apart;
  keep.within = std::max(keep.within, gone.within);
  keep.reduced = keep.reduced || gone.reduced;
  keep.by_queue = keep.by_queue || gone.by_queue;
  if (!keep.anchor) keep.anchor = gone.anchor, keep.decided_by = gone.decided_by;
  if (!keep.operand) keep.operand = gone.operand;
  if (!keep.annotated) keep.annotated = gone.annotated;
}

FragmentLayout LayoutClasses::layout_of(size_t node) const { return shaped(*of(node).layout, nodes[node].shape); }

FragmentLayout shaped(const FragmentLayout& layout, const std::vector<int64_t>& shape) {
  if (layout.shape() == shape) return layout;
  auto out = reshape(layout, shape);
  check_internal(out.has_value(), "a layout cannot take a shape that differs by extents of 1");
  return *out;
}

void choose_layouts(LayoutClasses& all) {
  std::vector<size_t> order;
  for (size_t i = 0; i < all.nodes.size(); ++i)
    if (all.find(i) == i) order.push_back(i);
  const auto size = [&](size_t i) {
    const auto& s = all.classes[i].shape;
    return std::accumulate(s.begin(), s.end(), int64_t{1}, std::multiplies<>());
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool x = all.classes[a].anchor.has_value(), y = all.classes[b].anchor.has_value();
    if (x != y) return x;
    const bool v = is_operand(all.classes[a]), w = is_operand(all.classes[b]);
    return v != w ? v : size(a) > size(b);
  });
  for (size_t i : order) {
    if (!all.classes[i].layout) keep_followers(all, i);
    if (!all.classes[i].layout) anchor(all.classes[i]), keep_parts(all, i);
    hand_on(all, i);
  }
}

FragmentLayout wanted_of(const LayoutClasses& all, const Follows& f) {
  return shaped(kept(all.layout_of(f.parent), f.dims), all.of(f.child).shape);
}

std::optional<FragmentLayout> wanted_of(const LayoutClasses& all, size_t from, size_t to) {
  return reshape(all.layout_of(from), all.nodes[to].shape);
}

std::optional<FragmentLayout> wanted_of(const LayoutClasses& all, const Covers& c) {
  const auto part = box_of(all.layout_of(c.fragment), c.box, all.nodes[c.map].shape);
  if (!part) return std::nullopt;
  // The dimensions that no variable follows have an extent of 1.
  FragmentLayout out = part->layout;
  for (size_t d = c.box.dims.size(); d-- > 0;)
    if (c.box.dims[d] < 0) out = remove_dim(out, static_cast<int>(d));
  return reshape(out, all.nodes[c.map].shape);
}

}  // namespace tilewright::passes
