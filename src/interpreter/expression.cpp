// Evaluates expressions over the lanes of a frame.
#include "interpreter/arithmetic.h"
#include "interpreter/strand.h"

namespace tilewright::interpreter {

// An array result stands in memory taken before the operands' temporaries, which go back at the end.
Value Strand::eval(const Node& node, Mask mask) {
  if (node.op == Node::Op::Const) return node.value;
  if (node.op == Node::Op::Slot) return unwritten_.empty() ? slots_[node.slot] : eval_name(node.slot, mask);
  Arena::Mark before = arena_.mark();
  void* out = arena_.allocate(frame_.shape.lanes * 8);
  Arena::Mark after = arena_.mark();
  Value result;
  switch (node.op) {
    case Node::Op::Load: result = load(locate(*node.buffer, node.args, mask), mask, out); break;
    case Node::Op::Logical: result = eval_logical(node, mask, out); break;
    case Node::Op::Select: result = eval_select(node, mask, out); break;
    case Node::Op::Address: {
      Place place = locate(*node.buffer, node.args, mask);
      auto base = reinterpret_cast<int64_t>(place.data);
      auto* to = static_cast<int64_t*>(out);
      for (int64_t l = 0; l < frame_.shape.lanes; ++l) {
        int64_t offset = place.offset.int_at(l, frame_.shape.columns);
        to[l] = base + offset * node.buffer->type.storage_bits() / 8;
      }
      result = place.offset.uniform() ? uniform_int(to[0]) : array_value(LaneKind::Int64, to);
      break;
    }
    default: {
      Value few[4];
      std::vector<Value> many;
      std::span<Value> args(few, std::min<size_t>(node.args.size(), 4));
      if (node.args.size() > 4) many.resize(node.args.size()), args = many;
      const bool divides = node.op == Node::Op::Divide;
      for (size_t i = 0; i < args.size(); ++i)
        args[i] = divides ? eval_whole(*node.args[i], mask) : eval(*node.args[i], mask);
      result = divides ? eval_divide(node, args, mask, out) : combine(node, args, frame_.shape, arena_, out);
    }
  }
  arena_.release(result.form == Value::Form::Array ? after : before);
  return result;
}

Value Strand::eval_divide(const Node& node, std::span<const Value> args, Mask mask, void* out) {
  int64_t lane = bad_divisor(node, args[0], args[1], frame_.shape, mask);
  if (lane < 0) return combine(node, args, frame_.shape, arena_, out);
  int64_t a = args[0].int_at(lane, frame_.shape.columns), b = args[1].int_at(lane, frame_.shape.columns);
  const char* what = b == 0 ? "division by zero" : "the quotient does not fit";
  fail_at(Code::BadDivision, lane, fmt::format("{}: {} by {} ({})", what, a, b, node.type.name()));
}

Value Strand::eval_logical(const Node& node, Mask mask, void* out) {
  Value a = eval_whole(*node.args[0], mask);
  bool is_and = node.binary == ir::BinaryOp::And;
  if (a.uniform() && (a.base != 0) != is_and) return a;
  Mask right = node.args[1]->faults ? narrow(mask, a, is_and) : mask;
  Value b = right.none() ? uniform_int(is_and ? 0 : 1) : eval(*node.args[1], right);
  if (a.uniform()) {
    if (b.form != Value::Form::Array) return b;
    std::memcpy(out, b.data, static_cast<size_t>(frame_.shape.lanes * 8));
    return array_value(LaneKind::Int64, out);
  }
  const auto* x = static_cast<const int64_t*>(lanes_of(a, frame_.shape, arena_));
  const auto* y = static_cast<const int64_t*>(lanes_of(b, frame_.shape, arena_));
  auto* to = static_cast<int64_t*>(out);
  for (int64_t l = 0; l < frame_.shape.lanes; ++l) to[l] = is_and ? (x[l] && y[l]) : (x[l] || y[l]);
  return array_value(LaneKind::Int64, out);
}

Value Strand::eval_select(const Node& node, Mask mask, void* out) {
  Value condition = eval_whole(*node.args[0], mask);
  const Node *a = node.args[1], *b = node.args[2];
  if (condition.uniform()) {
    Value chosen = eval(condition.base ? *a : *b, mask);
    return blend(condition, chosen, chosen, frame_.shape, arena_, out);
  }
  Mask yes = a->faults ? narrow(mask, condition, true) : mask, no = b->faults ? narrow(mask, condition, false) : mask;
  Value nothing = node.kind() == LaneKind::Int64 ? uniform_int(0) : uniform_float(node.kind(), 0);
  Value x = yes.none() ? nothing : eval(*a, yes), y = no.none() ? nothing : eval(*b, no);
  return blend(condition, x, y, frame_.shape, arena_, out);
}

Value Strand::eval_uniform(const Node& node, Mask mask) {
  Value v = eval(node, mask);
  if (v.uniform()) return v;
  int64_t first = first_lane(mask);
  for (int64_t l = first; l < frame_.shape.lanes; ++l) {
    if (!mask.at(l)) continue;
    bool same = v.form == Value::Form::Array
                    ? same_lanes(v, first, l)
                    : v.int_at(first, frame_.shape.columns) == v.int_at(l, frame_.shape.columns);
    if (!same)
      fail_at(Code::OperandsDisagree, l, "an operand differs between the threads that execute this together",
              "make it the same for all threads, or move the statement under a role");
  }
  return pick(v, first, frame_.shape.columns);
}

Mask Strand::narrow(Mask mask, const Value& condition, bool truth) {
  if (condition.uniform()) return (condition.base != 0) == truth ? mask : Mask{mask.bits, 0};
  int64_t n = frame_.shape.lanes;
  auto* bits = arena_.array<uint8_t>(n);
  const auto* c = static_cast<const int64_t*>(lanes_of(condition, frame_.shape, arena_));
  int64_t count = 0;
  for (int64_t l = 0; l < n; ++l) {
    bits[l] = static_cast<uint8_t>(((c[l] != 0) == truth) & mask.at(l));
    count += bits[l];
  }
  return count == mask.count ? mask : Mask{bits, count};
}

int64_t Strand::first_lane(Mask mask) const {
  int64_t lane = 0;
  while (lane < frame_.shape.lanes && !mask.at(lane)) ++lane;
  return lane;
}

}  // namespace tilewright::interpreter
