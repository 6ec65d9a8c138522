// Lines of Print, in the form that TileLang prints them.
#include <utility>

#include "interpreter/arithmetic.h"
#include "interpreter/shadow.h"
#include "interpreter/strand.h"
#include "scalar/value_text.h"

namespace tilewright::interpreter {

namespace {

std::string text_of(DType type, const Value& uniform) {
  if (uniform.kind == LaneKind::Int64) return value_text(type, static_cast<uint64_t>(uniform.base));
  if (uniform.kind == LaneKind::Float64) return value_text(type, std::bit_cast<uint64_t>(uniform.number));
  return value_text(type, std::bit_cast<uint32_t>(static_cast<float>(uniform.number)));
}

// Of element i in row-major order.
int64_t element_offset(const Box& b, int64_t i) {
  int64_t offset = b.base;
  for (size_t d = b.extent.size(); d-- > 0; i /= b.extent[d]) offset += i % b.extent[d] * b.strides[d];
  return offset;
}

}  // namespace

std::string Strand::print_head(const ir::Print& op, int64_t lane) const {
  int64_t t = frame_.threads ? frame_.threads[lane] : 0, nx = code_.threads[0], ny = code_.threads[1];
  return fmt::format("msg='{}' BlockIdx=({}, {}, {}), ThreadIdx=({}, {}, {})", op.message, block_.index[0],
                     block_.index[1], block_.index[2], t % nx, t / nx % ny, t / nx / ny);
}

void Strand::execute(const ir::Print& op, const Step& s, Mask mask) {
  const auto& sink = program_.binding->print;
  if (!sink) return;
  ArenaScope scope(arena_);
  if (!s.elements.empty()) {
    const BufferCode& buffer = *s.elements[0].buffer;
    bool of_block = buffer.space == ir::Space::Shared || buffer.space == ir::Space::Fragment;
    if (of_block) return leads(s) ? print_buffer(op, buffer, first_lane(mask), mask) : void();
    for (int64_t l = 0; l < frame_.shape.lanes; ++l)
      if (mask.at(l)) print_buffer(op, buffer, l, mask);
    return;
  }
  std::vector<Value> values;
  for (const Node* node : s.nodes) values.push_back(eval(*node, mask));
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
    if (!mask.at(l)) continue;
    if (values.empty()) sink(print_head(op, l) + "\n");
    for (size_t i = 0; i < values.size(); ++i) {
      DType type = s.nodes[i]->type;
      sink(fmt::format("{}: dtype={} value={}\n", print_head(op, l), type.name(),
                       text_of(type, pick(values[i], l, frame_.shape.columns))));
    }
  }
}

void Strand::print_buffer(const ir::Print& op, const BufferCode& buffer, int64_t lane, Mask mask) {
  ArenaScope scope(arena_);
  Box b;
  b.buffer = &buffer;
  Extents extents = extents_of(buffer, mask);
  b.shape.assign(extents.shape.begin(), extents.shape.end());
  b.strides.assign(extents.strides.begin(), extents.strides.end());
  b.extent = b.shape, b.min.assign(b.shape.size(), 0);
  Value offset = uniform_int(0);
  attach(buffer, mask, b.data, b.written, offset);
  b.base = offset.int_at(lane, frame_.shape.columns);
  if (buffer.on_chip()) check_readable(buffer, lane);
  // Printing is no use of a value: what was not written is shown as that.
  const uint8_t* written = std::exchange(b.written, nullptr);
  Value values = array_value(lane_kind(buffer.type), read_box(b, buffer.type, lane));
  std::string head = print_head(op, lane);
  for (int64_t i = 0, n = b.count(); i < n; ++i) {
    const bool known = !written || first_unwritten(written, buffer.type, element_offset(b, i), 1) < 0;
    program_.binding->print(fmt::format("{}: buffer={}, index={}, dtype={} value={}\n", head, buffer.source->name, i,
                                        buffer.type.name(),
                                        known ? text_of(buffer.type, pick(values, i, n)) : "unwritten"));
  }
}

}  // namespace tilewright::interpreter
