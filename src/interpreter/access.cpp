// Element accesses of lanes: addresses, bounds, shadow bits.
#include "interpreter/arithmetic.h"
#include "interpreter/shadow.h"
#include "interpreter/strand.h"

namespace tilewright::interpreter {

Extents Strand::extents_of(const BufferCode& buffer, Mask mask) {
  if (!buffer.is_dynamic()) return {buffer.shape, buffer.strides};
  size_t rank = buffer.rank();
  auto* shape = arena_.array<int64_t>(static_cast<int64_t>(rank));
  auto* strides = arena_.array<int64_t>(static_cast<int64_t>(rank));
  for (size_t d = 0; d < rank; ++d) {
    shape[d] = buffer.shape_nodes[d] ? eval_int(*buffer.shape_nodes[d], mask) : buffer.shape[d];
  }
  int64_t compact = 1;
  for (size_t d = rank; d-- > 0; compact *= shape[d]) {
    bool given = d < buffer.stride_nodes.size() && buffer.stride_nodes[d];
    strides[d] = given                            ? eval_int(*buffer.stride_nodes[d], mask)
                 : buffer.source->strides.empty() ? compact
                                                  : buffer.strides[d];
  }
  return {{shape, rank}, {strides, rank}};
}

namespace {

// offset += factor * index
Value add_scaled(const Value& offset, const Value& index, int64_t factor, LaneShape shape, Arena& arena) {
  if (offset.form != Value::Form::Array && index.form != Value::Form::Array)
    return affine_value(offset.base + factor * index.base, offset.outer + factor * index.outer,
                        offset.inner + factor * index.inner);
  const auto* i = static_cast<const int64_t*>(lanes_of(index, shape, arena));
  auto* to = arena.array<int64_t>(shape.lanes);
  spread(offset, shape, to);
#pragma omp simd
  for (int64_t l = 0; l < shape.lanes; ++l) to[l] += factor * i[l];
  return array_value(LaneKind::Int64, to);
}

bool has_no_elements(std::span<const int64_t> shape) {
  return std::ranges::any_of(shape, [](int64_t extent) { return extent == 0; });
}

std::string list_of(std::span<const int64_t> values) { return fmt::format("({})", fmt::join(values, ", ")); }

}  // namespace

// The memory behind a buffer: sets data and written, and adds to the offset where a view or a thread's copy begins.
Block* Strand::attach(const BufferCode& buffer, Mask mask, std::byte*& data, uint8_t*& written, Value& offset) {
  Block* owner = nullptr;
  if (buffer.offset) offset = add_scaled(offset, eval(*buffer.offset, mask), 1, frame_.shape, arena_);
  if (buffer.address) {
    Value address = eval(*buffer.address, mask);
    if (address.uniform()) {
      data = reinterpret_cast<std::byte*>(address.base);
    } else {  // one address a lane: offsets count from the first
      int64_t first = address.int_at(first_lane(mask), frame_.shape.columns);
      auto* shift = arena_.array<int64_t>(frame_.shape.lanes);
      for (int64_t l = 0; l < frame_.shape.lanes; ++l)
        shift[l] = (address.int_at(l, frame_.shape.columns) - first) * 8 / buffer.type.storage_bits();
      data = reinterpret_cast<std::byte*>(first);
      offset = add_scaled(offset, array_value(LaneKind::Int64, shift), 1, frame_.shape, arena_);
    }
    written = nullptr;
  } else if (!buffer.on_chip()) {
    data = static_cast<std::byte*>(program_.data[buffer.root]);
    written = nullptr;
    // A tensor of no elements needs no memory: whatever is asked of it lies outside.
    static std::byte nothing{};
    if (!data && has_no_elements(extents_of(code_.buffers[buffer.root], mask).shape)) data = &nothing;
  } else {
    owner = buffer.cta ? &block_at(eval_int(*buffer.cta, mask), first_lane(mask)) : &block_;
    Memory& memory = owner->memory(buffer.root);
    data = memory.data, written = memory.written;
    if (buffer.is_local()) {
      int64_t per_thread = memory.thread_bytes * 8 / buffer.type.storage_bits();
      offset = add_scaled(offset, frame_.thread, per_thread, frame_.shape, arena_);
    }
  }
  if (!data)
    fail_at(Code::NullBuffer, first_lane(mask), fmt::format("'{}' is accessed but has no memory", buffer.source->name),
            "pass an array for it");
  return owner;
}

Block& Strand::block_at(int64_t rank, int64_t lane) {
  const int64_t blocks = block_.cluster ? static_cast<int64_t>(block_.cluster->blocks.size()) : 1;
  if (rank < 0 || rank >= blocks)
    fail_at(Code::OutOfBounds, lane, fmt::format("block {} of a cluster of {}", rank, blocks));
  return block_.cluster ? *block_.cluster->blocks[static_cast<size_t>(rank)] : block_;
}

Place Strand::locate(const BufferCode& buffer, const std::vector<const Node*>& indices, Mask mask) {
  Place place;
  place.buffer = &buffer;
  Extents extents = extents_of(buffer, mask);
  Value index[8];
  check_internal(indices.size() <= 8 && indices.size() == buffer.rank(), "'{}' is accessed with {} indices",
                 buffer.source->name, indices.size());
  for (size_t d = 0; d < indices.size(); ++d) index[d] = eval_whole(*indices[d], mask);
  std::span<const Value> all(index, indices.size());
  place.inside = check_bounds(buffer, all, extents, mask);
  const MemoryLayout* memory = buffer.memory();
  place.offset = memory ? offset_in_layout(*memory, all) : uniform_int(0);
  for (size_t d = 0; d < indices.size() && !memory; ++d)
    place.offset = add_scaled(place.offset, index[d], extents.strides[d], frame_.shape, arena_);
  place.block = attach(buffer, mask, place.data, place.written, place.offset);
  if (memory) place.offset = swizzled(*memory, place.offset);
  if (buffer.source->is_view() && may_leave_its_root(buffer)) check_inside(place, mask);
  return place;
}

Value Strand::offset_in_layout(const MemoryLayout& memory, std::span<const Value> index) {
  const LaneShape shape = frame_.shape;
  Value offset = uniform_int(0);
  for (size_t d = 0; d < index.size(); ++d) {
    const std::vector<Mode>& modes = memory.dim(static_cast<int>(d));
    if (modes.size() == 1) {
      offset = add_scaled(offset, index[d], modes[0].stride, shape, arena_);
      continue;
    }
    const auto steps = [&](int64_t i) {
      int64_t sum = 0;
      for (size_t m = modes.size(); m-- > 0; i /= modes[m].extent) sum += i % modes[m].extent * modes[m].stride;
      return sum;
    };
    if (index[d].uniform()) {
      offset = add_scaled(offset, uniform_int(steps(index[d].base)), 1, shape, arena_);
      continue;
    }
    auto* sums = arena_.array<int64_t>(shape.lanes);
    spread(index[d], shape, sums);
    for (int64_t l = 0; l < shape.lanes; ++l) sums[l] = steps(sums[l]);
    offset = add_scaled(offset, array_value(LaneKind::Int64, sums), 1, shape, arena_);
  }
  return offset;
}

Value Strand::swizzled(const MemoryLayout& memory, const Value& offset) {
  const Swizzle swizzle = memory.swizzle();
  if (swizzle.bits == 0) return offset;
  const int64_t bits = memory.element_bits();
  const auto moved = [&](int64_t o) { return (swizzle.apply(o * bits / 8) * 8 + o * bits % 8) / bits; };
  if (offset.uniform()) return uniform_int(moved(offset.base));
  auto* to = arena_.array<int64_t>(frame_.shape.lanes);
  spread(offset, frame_.shape, to);
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) to[l] = moved(to[l]);
  return array_value(LaneKind::Int64, to);
}

namespace {

struct Bits {
  int64_t first, behind;
};

Bits bits_of(std::span<const int64_t> shape, std::span<const int64_t> strides, int64_t base, int64_t element_bits) {
  int64_t low = base, high = base;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] <= 0) return {0, 0};
    const int64_t reach = (shape[d] - 1) * strides[d];
    (reach < 0 ? low : high) += reach;
  }
  return {low * element_bits, (high + 1) * element_bits};
}

}  // namespace

// Whether a view may leave the memory it looks into. On chip those that are known have been looked at; a view of a
// tensor may reach past its end, where nobody goes.
bool Strand::may_leave_its_root(const BufferCode& view) const {
  if (view.address) return false;
  const bool moves = view.offset && view.offset->op != Node::Op::Const;
  if (moves || view.on_chip()) return moves;
  const BufferCode& root = code_.buffers[view.root];
  if (view.is_dynamic() || root.is_dynamic()) return true;
  const Bits whole = bits_of(root.shape, root.strides, 0, root.type.storage_bits());
  const Bits part =
      bits_of(view.shape, view.strides, view.offset ? view.offset->value.base : 0, view.type.storage_bits());
  return part.first < whole.first || part.behind > whole.behind;
}

std::pair<int64_t, int64_t> Strand::bits_of_root(const BufferCode& root, Mask mask) {
  if (root.on_chip()) return {0, block_.memory(root.id.index).bytes * 8};
  const Extents extents = extents_of(root, mask);
  const auto [first, behind] = bits_of(extents.shape, extents.strides, 0, root.type.storage_bits());
  return {first, behind};
}

void Strand::check_inside(const Place& place, Mask mask) {
  const BufferCode& root = code_.buffers[place.buffer->root];
  if (root.address) return;  // of a size that nobody knows
  const auto [first, behind] = bits_of_root(root, mask);
  const int64_t bits = place.buffer->type.storage_bits();
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
    if (!mask.at(l) || (place.inside && !place.inside[l])) continue;
    const int64_t begin = place.offset.int_at(l, frame_.shape.columns) * bits;
    if (begin < first || begin + bits > behind) leaves_its_root(*place.buffer, l);
  }
}

void Strand::check_inside(const Box& box, Mask mask, int64_t lane) {
  const BufferCode& root = code_.buffers[box.buffer->root];
  if (root.address) return;
  int64_t low = box.base, high = box.base;
  for (size_t d = 0; d < box.shape.size(); ++d) {
    const int64_t from = std::max<int64_t>(box.min[d], 0), to = std::min(box.min[d] + box.extent[d], box.shape[d]);
    if (from >= to) return;
    const int64_t near = from * box.strides[d], far = (to - 1) * box.strides[d];
    low += std::min(near, far), high += std::max(near, far);
  }
  const auto [first, behind] = bits_of_root(root, mask);
  const int64_t bits = box.buffer->type.storage_bits();
  if (low * bits < first || (high + 1) * bits > behind) leaves_its_root(*box.buffer, lane);
}

void Strand::leaves_its_root(const BufferCode& view, int64_t lane) {
  fail_at(Code::OutOfBounds, lane,
          fmt::format("the view '{}' is accessed past the memory of '{}'", view.source->name,
                      code_.buffers[view.root].source->name));
}

// Null if every executing lane is in bounds. Outside on chip is an error.
const uint8_t* Strand::check_bounds(const BufferCode& buffer, std::span<const Value> index, Extents extents,
                                    Mask mask) {
  bool sure = true;
  for (size_t d = 0; d < index.size() && sure; ++d) {
    if (index[d].form == Value::Form::Array) {
      const int64_t* values = index[d].ints();
      auto limit = static_cast<uint64_t>(extents.shape[d]);
      int64_t outside = 0;
#pragma omp simd reduction(+ : outside)
      for (int64_t l = 0; l < frame_.shape.lanes; ++l) outside += static_cast<uint64_t>(values[l]) >= limit;
      sure = outside == 0;
    } else {
      Interval range = extremes(index[d], frame_.shape);
      sure = range.low >= 0 && range.high < extents.shape[d];
    }
  }
  if (sure) return nullptr;
  auto* inside = arena_.array<uint8_t>(frame_.shape.lanes);
  int64_t missing = 0;
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
    bool in = true;
    for (size_t d = 0; d < index.size(); ++d) {
      int64_t i = index[d].int_at(l, frame_.shape.columns);
      in = in && i >= 0 && i < extents.shape[d];
    }
    inside[l] = in;
    if (in || !mask.at(l)) continue;
    if (buffer.on_chip()) fail_bounds(buffer, index, extents, l);
    ++missing;
  }
  // Lanes that do not execute may be outside too: their offsets must not be used.
  return missing == 0 && mask.all() ? nullptr : inside;
}

void Strand::fail_bounds(const BufferCode& buffer, std::span<const Value> index, Extents extents, int64_t lane) {
  std::vector<int64_t> at;
  for (const Value& i : index) at.push_back(i.int_at(lane, frame_.shape.columns));
  fail_at(
      Code::OutOfBounds, lane,
      fmt::format("index {} is outside '{}' of shape {}", list_of(at), buffer.source->name, list_of(extents.shape)));
}

namespace {

// The element that lies at an offset; of a message, so that searching is good enough.
std::vector<int64_t> index_at(const MemoryLayout& layout, int64_t element) {
  std::vector<int64_t> index(static_cast<size_t>(layout.rank()), 0);
  for (int64_t i = 0; i < layout.elements(); ++i) {
    if (layout.bit_offset(index) == element * layout.element_bits()) break;
    for (size_t d = index.size(); d-- > 0; index[d] = 0)
      if (++index[d] < layout.shape()[d]) break;
  }
  return index;
}

}  // namespace

void Strand::fail_unwritten(const BufferCode& buffer, int64_t element, int64_t lane) {
  const Memory& memory = block_.memory(buffer.root);
  if (buffer.is_local()) element %= std::max<int64_t>(memory.thread_bytes * 8 / buffer.type.storage_bits(), 1);
  std::vector<int64_t> at(buffer.rank());
  if (const MemoryLayout* layout = buffer.memory()) {
    at = index_at(*layout, element);
  } else if (!buffer.source->is_view()) {
    for (size_t d = buffer.rank(); d-- > 0; element /= std::max<int64_t>(buffer.shape[d], 1))
      at[d] = element % std::max<int64_t>(buffer.shape[d], 1);
  }
  std::string what = buffer.source->is_view()
                         ? fmt::format("element {} of the memory of '{}'", element, buffer.source->name)
                     : buffer.rank() == 0 ? fmt::format("'{}'", buffer.source->name)
                                          : fmt::format("'{}' at {}", buffer.source->name, list_of(at));
  fail_at(Code::Uninitialized, lane, what + " is read before it is written");
}

void Strand::check_readable(const BufferCode& buffer, int64_t lane) {
  if (!program_.program->buffers[buffer.root].reducer || block_.memory(buffer.root).finalized) return;
  fail_at(Code::ReducerNotFinal, lane,
          fmt::format("the reducer '{}' is read before it is finalized", buffer.source->name),
          "finalize it after its last contribution");
}

// Whether the executing lanes are all inside, or all outside: indices may differ where the offsets that they give do
// not.
bool Strand::lie_alike(const Place& place, Mask mask) const {
  if (!place.inside) return true;
  const uint8_t first = place.inside[first_lane(mask)];
  for (int64_t l = 0; l < frame_.shape.lanes; ++l)
    if (mask.at(l) && place.inside[l] != first) return false;
  return true;
}

// Offsets as an array; -1 for lanes that do not take part. May rebase the place, so that offsets count from its data.
int64_t* Strand::lane_offsets(const Place& place, Mask mask) {
  auto* offsets = arena_.array<int64_t>(frame_.shape.lanes);
  spread(place.offset, frame_.shape, offsets);
  if (!mask.all() || place.inside)
    for (int64_t l = 0; l < frame_.shape.lanes; ++l)
      if (!mask.at(l) || (place.inside && !place.inside[l])) offsets[l] = INT64_MIN;
  return offsets;
}

namespace {

// Negative strides: what load_lanes skips are lanes that take no part, so the base moves to the least offset.
std::byte* rebase(DType type, std::byte* data, int64_t* offsets, int64_t n) {
  int64_t least = 0;
  for (int64_t l = 0; l < n; ++l)
    if (offsets[l] != INT64_MIN) least = std::min(least, offsets[l]);
  if (least % 2 != 0) --least;  // whole bytes
  for (int64_t l = 0; l < n; ++l) offsets[l] = offsets[l] == INT64_MIN ? -1 : offsets[l] - least;
  return data + least * type.storage_bits() / 8;
}

bool is_packed_offset(DType type, int64_t offset) { return type.is_packed() && offset % 2 != 0; }

}  // namespace

void Strand::check_written(const Place& place, const int64_t* offsets, Mask mask) {
  if (!place.written) return;
  DType type = place.buffer->type;
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
    if (!mask.at(l) || offsets[l] < 0) continue;
    if (first_unwritten(place.written, type, offsets[l], 1) >= 0) note_hole(*place.buffer, offsets[l], l);
  }
}

Value Strand::load(const Place& place, Mask mask, void* out) {
  const BufferCode& buffer = *place.buffer;
  DType type = buffer.type;
  LaneKind kind = lane_kind(type);
  check_readable(buffer, first_lane(mask));
  on_load(place, mask);
  if (is_watched(place)) note_reads(place, mask);
  LaneShape shape = frame_.shape;
  Value fill = place.inside && buffer.fill ? eval(*buffer.fill, mask)
               : kind == LaneKind::Int64   ? uniform_int(0)
                                           : uniform_float(kind, 0);
  if (place.offset.uniform() && lie_alike(place, mask)) {
    int64_t lane = first_lane(mask);
    if (place.inside && !place.inside[lane]) return pick(fill, lane, shape.columns);
    int64_t offset = place.offset.base;
    if (place.written && first_unwritten(place.written, type, offset, 1) >= 0) note_holes(buffer, offset, mask);
    load_lanes(type, place.data, Elements{nullptr, offset}, 1, out);
    return pick(array_value(kind, out), 0, 1);
  }
  bool rows = place.offset.form == Value::Form::Affine && place.offset.inner == 1 && !place.inside &&
              (mask.all() || !place.written);
  if (rows) {
    bool whole = shape.rows() == 1 || place.offset.outer == shape.columns;
    int64_t columns = whole ? shape.lanes : shape.columns, bytes = columns * lane_bytes(kind);
    if (whole || columns >= 8) {
      for (int64_t row = 0; row * columns < shape.lanes; ++row) {
        int64_t first = place.offset.base + row * place.offset.outer;
        if (place.written)
          if (int64_t bad = first_unwritten(place.written, type, first, columns); bad >= 0)
            for (int64_t i = bad - first; i < columns; ++i)
              if (first_unwritten(place.written, type, first + i, 1) >= 0)
                note_hole(buffer, first + i, row * columns + i);
        load_lanes(type, place.data, Elements{nullptr, first}, columns, static_cast<std::byte*>(out) + row * bytes);
      }
      return array_value(kind, out);
    }
  }
  ArenaScope scope(arena_);
  int64_t* offsets = lane_offsets(place, mask);
  spread(fill, shape, out);
  std::byte* data = rebase(type, place.data, offsets, shape.lanes);
  if (place.written) check_written(place, offsets, mask);
  load_lanes(type, data, Elements{offsets, 0}, shape.lanes, out);
  return array_value(kind, out);
}

// Outside of loops that may wait, and after a change, a look at the memory would tell nothing new.
void Strand::note_store(const Place& place, const Value& value, Mask mask) {
  uint64_t& changes = block_.grid.changes;
  if (changes != loop_saw_) {
    ++changes;
    return;
  }
  ArenaScope scope(arena_);
  const DType type = place.buffer->type;
  const LaneShape shape = frame_.shape;
  const int64_t size = lane_bytes(value.kind);
  const auto* values = static_cast<const std::byte*>(lanes_of(value, shape, arena_));
  const int64_t* offsets = lane_offsets(place, Mask{});
  for (int64_t l = 0; l < std::min(mask.all() ? mask.count : shape.lanes, shape.lanes); ++l) {
    if (!mask.at(l) || (place.inside && !place.inside[l])) continue;
    alignas(8) std::byte there[8] = {};
    const bool fresh = (place.written && first_unwritten(place.written, type, offsets[l], 1) >= 0) ||
                       (type.is_packed() && offsets[l] < 0);  // which half of a byte counts from its start
    if (!fresh) load_lanes(type, place.data, Elements{nullptr, offsets[l]}, 1, there);
    if (!fresh && std::memcmp(there, values + l * size, static_cast<size_t>(size)) == 0) continue;
    ++changes;
    return;
  }
}

void Strand::store_one(const Place& place, const Value& value) {
  if (place.inside && !place.inside[0]) return;
  std::byte memory[8];
  Value one = pick(value, 0, 1);
  spread(one, LaneShape{1, 1}, memory);
  int64_t offset = pick(place.offset, 0, frame_.shape.columns).base;
  store_lanes(place.buffer->type, place.data, Elements{nullptr, offset}, 1, memory);
  if (place.written) mark_written(place.written, place.buffer->type, offset, 1);
}

void Strand::store(const Place& place, const Value& value, Mask mask) {
  ArenaScope scope(arena_);
  on_store(place, value, mask);
  DType type = place.buffer->type;
  LaneShape shape = frame_.shape;
  const auto* values = static_cast<const std::byte*>(lanes_of(value, shape, arena_));
  bool rows = place.offset.form == Value::Form::Affine && place.offset.inner == 1 && !place.inside && mask.all() &&
              !frame_.writes && (shape.rows() == 1 || place.offset.outer >= shape.columns);
  if (rows) {
    bool whole = shape.rows() == 1 || place.offset.outer == shape.columns;
    int64_t columns = whole ? shape.lanes : shape.columns, bytes = columns * lane_bytes(value.kind);
    for (int64_t row = 0; row * columns < shape.lanes; ++row) {
      int64_t first = place.offset.base + row * place.offset.outer;
      store_lanes(type, place.data, Elements{nullptr, first}, columns, values + row * bytes);
      if (place.written) mark_written(place.written, type, first, columns);
    }
    return;
  }
  int64_t* offsets = lane_offsets(place, mask);
  Place moved = place;
  moved.data = rebase(type, place.data, offsets, shape.lanes);
  if (frame_.writes && !place.buffer->is_local()) check_collisions(moved, offsets, values);
  store_lanes(type, moved.data, Elements{offsets, 0}, shape.lanes, values);
  if (place.written)
    for (int64_t l = 0; l < shape.lanes; ++l)
      if (offsets[l] >= 0) mark_written(place.written, type, offsets[l], 1);
}

namespace {

// An element of memory, whatever buffer names it.
uint64_t element_at(DType type, const std::byte* data, int64_t offset) {
  const auto address = reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(offset * type.storage_bits() / 8);
  return address * 2 + (is_packed_offset(type, offset) ? 1 : 0);
}

}  // namespace

void Strand::note_reads(const Place& place, Mask mask) {
  ArenaScope scope(arena_);
  const int64_t* offsets = lane_offsets(place, mask);
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
    if (offsets[l] == INT64_MIN) continue;
    const uint64_t element = element_at(place.buffer->type, place.data, offsets[l]);
    const int64_t point = point_of(l);
    const auto changed = frame_.accesses->changed.find(element);
    if (changed != frame_.accesses->changed.end() && changed->second != point)
      fail_at(Code::ReadAcrossPoints, l,
              fmt::format("point {} of the map reads an element of '{}' that point {} writes", point,
                          place.buffer->source->name, changed->second),
              "the points of a map have no order: loop serially, or write to a second tile");
    const auto [reader, fresh] = frame_.accesses->read.try_emplace(element, point);
    if (!fresh && reader->second != point) reader->second = PointAccesses::kSeveral;
  }
}

// The lane's store gives an element another value than it had.
void Strand::note_change(const Place& place, uint64_t element, int64_t lane) {
  const int64_t point = point_of(lane);
  const auto reader = frame_.accesses->read.find(element);
  if (reader != frame_.accesses->read.end() && reader->second != point)
    fail_at(Code::ReadAcrossPoints, lane,
            fmt::format("{} of the map reads an element of '{}' that point {} writes",
                        reader->second == PointAccesses::kSeveral ? std::string("another point")
                                                                  : fmt::format("point {}", reader->second),
                        place.buffer->source->name, point),
            "the points of a map have no order: loop serially, or write to a second tile");
  frame_.accesses->changed[element] = point;
}

// Two points of the running Map that store different values to one element, or of which one reads what the other
// changes.
void Strand::check_collisions(const Place& place, const int64_t* offsets, const void* values) {
  DType type = place.buffer->type;
  int64_t size = lane_bytes(lane_kind(type));
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
    if (offsets[l] < 0) continue;
    const uint64_t key = element_at(type, place.data, offsets[l]);
    const int64_t point = point_of(l);
    auto [at, fresh] = frame_.writes->try_emplace(key, point);
    const auto* value = static_cast<const std::byte*>(values) + l * size;
    const bool other = !fresh && at->second != point, watched = is_watched(place);
    if (other || watched) {
      std::byte before[8] = {}, bits[8] = {};
      load_lanes(type, place.data, Elements{nullptr, offsets[l]}, 1, before);
      store_lanes(type, bits, Elements{}, 1, value);
      std::byte after[8] = {};
      load_lanes(type, bits, Elements{}, 1, after);
      const bool changes = std::memcmp(before, after, static_cast<size_t>(size)) != 0;
      if (watched && changes) note_change(place, key, l);
      if (other && changes)
        fail_at(Code::DoubleWrite, l,
                fmt::format("points {} and {} of the map write different values to one element of '{}'", at->second,
                            point, place.buffer->source->name),
                "give every point its own element, or use an atomic or a reducer");
      at->second = point;
    }
    // Later lanes of the same statement compare with what this one stores.
    store_lanes(type, place.data, Elements{nullptr, offsets[l]}, 1, value);
  }
}

}  // namespace tilewright::interpreter
