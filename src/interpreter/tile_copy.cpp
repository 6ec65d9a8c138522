// Copy, Fill, and boxes of buffers as rows.
#include <bit>

#include "interpreter/arithmetic.h"
#include "interpreter/shadow.h"
#include "interpreter/strand.h"

namespace tilewright::interpreter {

namespace {

// The dimensions of two boxes that have extents other than 1, matched in order: one loop nest over both.
struct Loop {
  int64_t extent, from_stride, to_stride;
  int64_t from_first, to_first;  // where [0, extent) lies in bounds on each side
  int64_t from_last, to_last;
};

// Where a tile begins that is nowhere near any tensor: what is added to it does not overflow.
constexpr int64_t kFarthest = int64_t{1} << 40;

void in_bounds(int64_t min, int64_t extent, int64_t shape, int64_t& first, int64_t& last) {
  first = std::clamp<int64_t>(-min, 0, extent);
  last = std::clamp<int64_t>(shape - min, first, extent);
}

int64_t corner(const Box& box) {
  int64_t offset = box.base;
  for (size_t d = 0; d < box.min.size(); ++d) offset += box.min[d] * box.strides[d];
  return offset;
}

// A dimension of extent 1 that lies outside: nothing of the box is in bounds.
bool is_outside(const Box& box) {
  for (size_t d = 0; d < box.min.size(); ++d)
    if (box.extent[d] == 1 && (box.min[d] < 0 || box.min[d] >= box.shape[d])) return true;
  return false;
}

}  // namespace

Box Strand::box(const RegionCode& region, Mask mask, int64_t lane, bool reads) {
  ArenaScope scope(arena_);
  const BufferCode& buffer = *region.buffer;
  Box b;
  b.buffer = &buffer;
  auto number = [&](const Node& node) {
    Value v = eval(node, mask);
    return lane >= 0 ? v.int_at(lane, frame_.shape.columns) : eval_uniform(node, mask).base;
  };
  Extents extents = extents_of(buffer, mask);
  b.shape.assign(extents.shape.begin(), extents.shape.end());
  b.strides.assign(extents.strides.begin(), extents.strides.end());
  for (size_t d = 0; d < buffer.rank(); ++d) {
    b.min.push_back(std::clamp(number(*region.min[d]), -kFarthest, kFarthest));
    b.extent.push_back(std::max<int64_t>(number(*region.extent[d]), 0));
  }
  Value offset = uniform_int(0);
  attach(buffer, mask, b.data, b.written, offset);
  int64_t at = lane >= 0 ? lane : first_lane(mask);
  b.base = offset.int_at(at, frame_.shape.columns);
  if (buffer.source->is_view() && !buffer.memory() && may_leave_its_root(buffer)) check_inside(b, mask, lane);
  if (!buffer.on_chip()) return b;
  if (reads) check_readable(buffer, lane);
  for (size_t d = 0; d < buffer.rank(); ++d)
    if (b.extent[d] > 0 && (b.min[d] < 0 || b.min[d] + b.extent[d] > b.shape[d]))
      fail_at(Code::OutOfBounds, lane,
              fmt::format("the region ({}) + ({}) is outside '{}' of shape ({})", fmt::join(b.min, ", "),
                          fmt::join(b.extent, ", "), buffer.source->name, fmt::join(b.shape, ", ")));
  return b;
}

void Strand::collective(const Step& s, Mask mask, const std::function<void(int64_t lane)>& once) {
  if (!s.per_thread) {
    check_converged(s, mask, ir::name_of(s.stmt));
    meet(s, mask, [&] {
      once(-1);
      return Value();
    });
    return;
  }
  for (int64_t l = 0; l < frame_.shape.lanes; ++l)
    if (mask.at(l)) once(l);
}

// n elements from the offset, in bounds, as lanes of the buffer's type.
void Strand::load_row(const Box& box, int64_t offset, int64_t stride, int64_t n, void* out, int64_t lane) {
  DType type = box.buffer->type;
  if (stride == 1 || n == 1) {
    if (box.written)
      if (int64_t bad = first_unwritten(box.written, type, offset, n); bad >= 0) fail_unwritten(*box.buffer, bad, lane);
    return load_lanes(type, box.data, Elements{nullptr, offset}, n, out);
  }
  auto size = lane_bytes(lane_kind(type));
  for (int64_t i = 0; i < n; ++i)
    load_row(box, offset + i * stride, 1, 1, static_cast<std::byte*>(out) + i * size, lane);
}

void Strand::store_row(const Box& box, int64_t offset, int64_t stride, int64_t n, const void* in) {
  DType type = box.buffer->type;
  if (stride == 1 || n == 1) {
    store_lanes(type, box.data, Elements{nullptr, offset}, n, in);
    if (box.written) mark_written(box.written, type, offset, n);
    return;
  }
  auto size = lane_bytes(lane_kind(type));
  for (int64_t i = 0; i < n; ++i)
    store_row(box, offset + i * stride, 1, 1, static_cast<const std::byte*>(in) + i * size);
}

namespace {

std::vector<Loop> match_boxes(const Box& from, const Box& to) {
  std::vector<Loop> loops;
  size_t f = 0, t = 0;
  auto skip = [](const Box& b, size_t& d) {
    while (d < b.extent.size() && b.extent[d] == 1) ++d;
  };
  for (;; ++f, ++t) {
    skip(from, f), skip(to, t);
    if (f >= from.extent.size() || t >= to.extent.size()) break;
    Loop loop{from.extent[f], from.strides[f], to.strides[t], 0, 0, 0, 0};
    in_bounds(from.min[f], loop.extent, from.shape[f], loop.from_first, loop.from_last);
    in_bounds(to.min[t], loop.extent, to.shape[t], loop.to_first, loop.to_last);
    if (from.extent[f] != to.extent[t]) return {};
    loops.push_back(loop);
  }
  if (f < from.extent.size() || t < to.extent.size()) return {};
  if (loops.empty()) loops.push_back({1, 0, 0, 0, 0, 1, 1});
  return loops;
}

// The points of a copy in order: where each reads and writes, from the corners on, as far as it is in bounds.
template <class F>
void for_each_point(const std::vector<Loop>& loops, F f) {
  std::vector<int64_t> at(loops.size(), 0);
  for (int64_t point = 0;; ++point) {
    int64_t from = 0, to = 0;
    bool read = true, write = true;
    for (size_t d = 0; d < loops.size(); ++d) {
      from += at[d] * loops[d].from_stride, to += at[d] * loops[d].to_stride;
      read = read && at[d] >= loops[d].from_first && at[d] < loops[d].from_last;
      write = write && at[d] >= loops[d].to_first && at[d] < loops[d].to_last;
    }
    f(point, read ? std::optional(from) : std::nullopt, write ? std::optional(to) : std::nullopt);
    size_t d = loops.size();
    while (d > 0 && ++at[d - 1] == loops[d - 1].extent) at[--d] = 0;
    if (d == 0) return;
  }
}

Function function_of(ir::Combine combine) {
  return combine == ir::Combine::Add ? Function::Add : combine == ir::Combine::Max ? Function::Max : Function::Min;
}

}  // namespace

void Strand::copy_box(const ir::Copy& op, const Box& from, const Box& to, int64_t lane) {
  std::vector<Loop> loops = match_boxes(from, to);
  if (loops.empty())
    fail_at(Code::ShapeMismatch, lane,
            fmt::format("a copy of ({}) elements of '{}' to ({}) of '{}'", fmt::join(from.extent, ", "),
                        from.buffer->source->name, fmt::join(to.extent, ", "), to.buffer->source->name));
  if (is_outside(to)) return;
  bool nothing_inside = is_outside(from);
  DType source = from.buffer->type, target = to.buffer->type;
  if (from.data == to.data && source.storage_bits() == target.storage_bits() && op.combine == ir::Combine::None &&
      !nothing_inside) {
    // A copy within one memory is a map of its elements; of a thread's own memory they come one after the other.
    const int64_t shift = corner(to) - corner(from);
    std::map<int64_t, int64_t> writers;
    for_each_point(loops, [&](int64_t point, std::optional<int64_t>, std::optional<int64_t> place) {
      if (place) writers[*place + shift] = point;
    });
    for_each_point(loops, [&](int64_t point, std::optional<int64_t> place, std::optional<int64_t>) {
      const auto writer = place ? writers.find(*place) : writers.end();
      if (writer == writers.end() || writer->second == point || (lane >= 0 && point < writer->second)) return;
      fail_at(Code::ReadAcrossPoints, lane,
              fmt::format("the copy reads an element of '{}' that it writes as well", from.buffer->source->name),
              "its elements have no order: copy through a second tile");
    });
  }
  const Loop row = loops.back();
  size_t outer = loops.size() - 1;
  auto bytes_in = lane_bytes(lane_kind(source)), bytes_out = lane_bytes(lane_kind(target));
  ArenaScope scope(arena_);
  auto* in = static_cast<std::byte*>(arena_.allocate(row.extent * bytes_in));
  auto* out = source == target ? in : static_cast<std::byte*>(arena_.allocate(row.extent * bytes_out));
  auto* old = op.combine == ir::Combine::None ? nullptr : arena_.allocate(row.extent * bytes_out);
  Value fill = lane_kind(source) == LaneKind::Int64 ? uniform_int(0) : uniform_float(lane_kind(source), 0);
  if (from.buffer->fill) fill = eval_uniform(*from.buffer->fill, Mask{nullptr, frame_.shape.lanes});
  std::vector<int64_t> at(outer, 0);
  int64_t from_corner = corner(from), to_corner = corner(to);
  for (bool more = true; more;) {
    int64_t f = from_corner, t = to_corner;
    bool read = !nothing_inside, write = true;
    for (size_t d = 0; d < outer; ++d) {
      f += at[d] * loops[d].from_stride, t += at[d] * loops[d].to_stride;
      read = read && at[d] >= loops[d].from_first && at[d] < loops[d].from_last;
      write = write && at[d] >= loops[d].to_first && at[d] < loops[d].to_last;
    }
    if (write && row.to_last > row.to_first) {
      int64_t first = read ? row.from_first : 0, last = read ? row.from_last : 0;
      if (first > 0 || last < row.extent) spread(fill, LaneShape{row.extent, row.extent}, in);
      if (last > first)
        load_row(from, f + first * row.from_stride, row.from_stride, last - first, in + first * bytes_in, lane);
      if (source != target) convert(source, target, Rounding::Nearest, in, nullptr, out, row.extent);
      int64_t n = row.to_last - row.to_first, start = t + row.to_first * row.to_stride;
      std::byte* values = out + row.to_first * bytes_out;
      if (old) {
        load_row(to, start, row.to_stride, n, old, lane);
        const void* operands[] = {old, values};
        apply(function_of(op.combine), target, operands, old, n);
        store_row(to, start, row.to_stride, n, old);
      } else {
        store_row(to, start, row.to_stride, n, values);
      }
    }
    more = false;
    for (size_t d = outer; d-- > 0 && !more;) {
      if (++at[d] < loops[d].extent)
        more = true;
      else
        at[d] = 0;
    }
  }
}

namespace {

// Where the elements of a box that are there lie in memory, in order: in halves of bytes.
std::vector<int64_t> places_of(const Box& box) {
  std::vector<int64_t> out;
  if (box.count() <= 0) return out;
  std::vector<Loop> loops;
  for (size_t d = 0; d < box.extent.size(); ++d) {
    Loop loop{box.extent[d], box.strides[d], box.strides[d], 0, 0, 0, 0};
    in_bounds(box.min[d], loop.extent, box.shape[d], loop.from_first, loop.from_last);
    loops.push_back(loop);
  }
  const int64_t first = corner(box), halves = box.buffer->type.storage_bits() / 4;
  for_each_point(loops, [&](int64_t, std::optional<int64_t> place, std::optional<int64_t>) {
    for (int64_t i = 0; place && i < halves; ++i) out.push_back((first + *place) * halves + i);
  });
  return out;
}

}  // namespace

void Strand::check_apart(const Step& s, const Box& from, const Box& to, bool in_place, int64_t lane) {
  if (from.data != to.data || is_outside(from) || is_outside(to)) return;
  const bool alike = from.base == to.base && from.strides == to.strides;
  if (in_place && alike && from.min == to.min && from.extent == to.extent) return;
  const std::vector<int64_t> read = places_of(from), written = places_of(to);
  if (in_place && read == written) return;
  const std::unordered_set<int64_t> met(written.begin(), written.end());
  if (std::none_of(read.begin(), read.end(), [&](int64_t place) { return met.contains(place); })) return;
  fail_at(Code::ReadAcrossPoints, lane,
          fmt::format("the {} reads an element of '{}' that it writes as well", ir::name_of(s.stmt),
                      from.buffer->source->name),
          "its elements have no order: read from a second tile, or write to one");
}

void Strand::execute(const ir::Copy& op, const Step& s, Mask mask) {
  if (op.completion.queue == ir::Queue::Prefetch) return;
  const auto copy = [&](int64_t lane) {
    Box to = box(s.regions[1], mask, lane, op.combine != ir::Combine::None);
    if (op.im2col.present()) {
      copy_im2col(op, s, to, mask, lane);
    } else {
      const Box from = box(s.regions[0], mask, lane, true);
      if (op.multicast != 0) return copy_to_blocks(op, s, from, to, mask, lane);
      if (from.count() > 0 && to.count() > 0) copy_box(op, from, to, lane);
    }
    if (!s.elements[0]) return;
    if (const BufferCode& target = *s.regions[1].buffer;
        target.cta) {  // it is there: one arrival says so, or its bytes
      const int64_t first = first_lane(mask);
      Block& block = block_at(eval_int(*target.cta, mask), first);
      if (op.completion.queue == ir::Queue::StAsync)
        return complete(block, s.elements[0], bytes_of(to.buffer->type, to.count()), mask);
      return arrive(s.elements[0], barrier_at(block, s.elements[0], mask, first), 1, first);
    }
    // The bytes of the tile, which are those on chip, also where a part is out of bounds.
    complete(block_, s.elements[0], bytes_of(to.buffer->type, to.count()), mask);
  };
  if (s.once)
    collective(s, mask, copy);
  else
    copy(-1);  // by the thread that the program chose
}

// Without a barrier the blocks meet before, when nobody uses any more what lies there, and after.
void Strand::copy_to_blocks(const ir::Copy& op, const Step& s, const Box& from, const Box& to, Mask mask,
                            int64_t lane) {
  const uint32_t root = to.buffer->root;
  const int64_t place = to.data - block_.memory(root).data;
  const auto blocks = block_.cluster ? std::span<Block* const>(block_.cluster->blocks) : std::span<Block* const>();
  const auto gets = [&](size_t rank) { return (op.multicast >> rank & 1) != 0; };
  const auto copy_to = [&](Block& block) {
    Box there = to;
    there.data = block.memory(root).data + place, there.written = block.memory(root).written + place;
    if (from.count() > 0 && to.count() > 0) copy_box(op, from, there, lane);
    if (s.elements[0]) complete(block, s.elements[0], bytes_of(to.buffer->type, to.count()), mask);
  };
  const bool waits = op.completion.immediate();
  const auto own = static_cast<size_t>(std::find(blocks.begin(), blocks.end(), &block_) - blocks.begin());
  const auto meet_all = [&] {
    if (block_.cluster) meet_cluster(block_.cluster->copies[&s], static_cast<int>(blocks.size()), true, true);
  };
  if (waits) meet_all();
  if (!waits || own == static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(op.multicast)))) {
    for (size_t rank = 0; rank < std::max<size_t>(blocks.size(), 1); ++rank)
      if (gets(rank)) copy_to(blocks.empty() ? block_ : *blocks[rank]);
  } else if (!gets(own)) {
    copy_to(block_);
  }
  if (waits) meet_all();
}

// Row r of the patch matrix is output pixel (n, oh, ow), column k is (kh, kw, c) of an NHWC image.
void Strand::copy_im2col(const ir::Copy& op, const Step& s, const Box& to, Mask mask, int64_t lane) {
  Box image = box(s.regions[0], mask, lane, true);
  const ir::Im2col& p = op.im2col;
  int64_t rows = to.extent[to.extent.size() - 2], columns = to.extent.back();
  int64_t row0 = eval_int(*s.nodes[0], mask) * rows, column0 = eval_int(*s.nodes[1], mask) * columns;
  int64_t h = image.shape[1], w = image.shape[2], channels = image.shape[3];
  auto out_extent = [&](int64_t n) { return (n + 2 * p.pad - p.dilation * (p.kernel - 1) - 1) / p.stride + 1; };
  const int64_t oh = std::max<int64_t>(out_extent(h), 1), ow = std::max<int64_t>(out_extent(w), 1);
  DType source = image.buffer->type, target = to.buffer->type;
  ArenaScope scope(arena_);
  auto *in = arena_.allocate(8), *out = arena_.allocate(8);
  int64_t corner_to = corner(to), row_stride = to.strides[to.strides.size() - 2], column_stride = to.strides.back();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      int64_t m = row0 + r, k = column0 + c;
      int64_t y = m / ow % oh * p.stride + k / channels / p.kernel * p.dilation - p.pad;
      int64_t x = m % ow * p.stride + k / channels % p.kernel * p.dilation - p.pad;
      int64_t n = m / ow / oh;
      const bool is_patch = m >= 0 && n < image.shape[0] && k >= 0 && k < p.kernel * p.kernel * channels;
      const bool inside = is_patch && y >= 0 && y < h && x >= 0 && x < w;
      std::memset(in, 0, 8);
      int64_t offset = image.base + n * image.strides[0] + y * image.strides[1] + x * image.strides[2] +
                       k % channels * image.strides[3];
      if (inside) load_row(image, offset, 1, 1, in, lane);
      convert(source, target, Rounding::Nearest, in, nullptr, out, 1);
      store_row(to, corner_to + r * row_stride + c * column_stride, 1, 1, out);
    }
}

template <>
void Strand::execute(const ir::Fill&, const Step& s, Mask mask) {
  collective(s, mask, [&](int64_t lane) {
    Box to = box(s.regions[0], mask, lane, false);
    ArenaScope scope(arena_);
    Value value =
        lane >= 0 ? pick(eval(*s.nodes[0], mask), lane, frame_.shape.columns) : eval_uniform(*s.nodes[0], mask);
    if (program_.program->buffers[to.buffer->root].reducer) block_.memory(to.buffer->root).finalized = false;
    if (to.count() == 0) return;
    std::vector<int64_t> first(to.min.size()), last(to.min.size());
    for (size_t d = 0; d < to.min.size(); ++d) {
      int64_t begin, end;
      in_bounds(to.min[d], to.extent[d], to.shape[d], begin, end);
      if (begin == end) return;
      to.min[d] += begin, to.extent[d] = end - begin;
    }
    LaneKind kind = lane_kind(to.buffer->type);
    int64_t n = to.count();
    void* values = arena_.allocate(n * lane_bytes(kind));
    spread(value, LaneShape{n, n}, values);
    write_box(to, to.buffer->type, values);
  });
}

// Calls row(offset of its first element, which of the rows) for every row along the last dimension.
namespace {
template <class F>
void for_each_row(const Box& box, F row) {
  size_t rank = box.extent.size();
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < rank; ++d) rows *= box.extent[d];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t offset = corner(box), rest = r;
    for (size_t d = rank - 1; d-- > 0; rest /= box.extent[d]) offset += rest % box.extent[d] * box.strides[d];
    row(offset, r);
  }
}
}  // namespace

void* Strand::read_box(const Box& b, DType type, int64_t lane) {
  LaneKind own = lane_kind(b.buffer->type), kind = lane_kind(type);
  int64_t n = b.count();
  auto* out = static_cast<std::byte*>(arena_.allocate(n * lane_bytes(kind)));
  ArenaScope scope(arena_);
  bool same = b.buffer->type == type;
  auto* raw = same ? out : static_cast<std::byte*>(arena_.allocate(n * lane_bytes(own)));
  if (b.extent.empty()) {
    load_row(b, b.base, 1, 1, raw, lane);
  } else {
    int64_t columns = b.extent.back(), stride = b.strides.back();
    for_each_row(b, [&](int64_t offset, int64_t r) {
      load_row(b, offset, stride, columns, raw + r * columns * lane_bytes(own), lane);
    });
  }
  if (!same) convert(b.buffer->type, type, Rounding::Nearest, raw, nullptr, out, n);
  return out;
}

// The values have the given type, one an element.
void Strand::write_box(const Box& b, DType type, const void* values) {
  LaneKind own = lane_kind(b.buffer->type);
  ArenaScope scope(arena_);
  int64_t n = b.count();
  if (b.buffer->type != type) {
    void* converted = arena_.allocate(n * lane_bytes(own));
    convert(type, b.buffer->type, Rounding::Nearest, values, nullptr, converted, n);
    values = converted;
  }
  const auto* from = static_cast<const std::byte*>(values);
  if (b.extent.empty()) return store_row(b, b.base, 1, 1, from);
  int64_t columns = b.extent.back(), stride = b.strides.back();
  for_each_row(b, [&](int64_t offset, int64_t r) {
    store_row(b, offset, stride, columns, from + r * columns * lane_bytes(own));
  });
}

}  // namespace tilewright::interpreter
