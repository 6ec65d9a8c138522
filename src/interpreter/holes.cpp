// Reads of what is not written: refused, or noted until somebody uses what they give.
#include "interpreter/shadow.h"
#include "interpreter/strand.h"

namespace tilewright::interpreter {

namespace {

class Noting {
 public:
  Noting(Holes*& now, Holes* then) : now_(now), before_(now) { now_ = then; }
  ~Noting() { now_ = before_; }
  Noting(const Noting&) = delete;
  Noting& operator=(const Noting&) = delete;

 private:
  Holes*& now_;
  Holes* before_;
};

}  // namespace

Value Strand::eval_with_holes(const Node& node, Mask mask, Holes& holes) {
  const Noting noting(holes_, &holes);
  return eval(node, mask);
}

Value Strand::eval_whole(const Node& node, Mask mask) {
  const Noting noting(holes_, nullptr);
  return eval(node, mask);
}

// Lanes of another frame are others: there the name is of nobody.
Value Strand::eval_name(uint32_t slot, Mask mask) {
  const auto found = unwritten_.find(slot);
  if (found == unwritten_.end()) return slots_[slot];
  const Holes& holes = found->second;
  if (holes.lanes.size() != static_cast<size_t>(frame_.shape.lanes)) std::rethrow_exception(holes.first);
  note_holes(holes, mask);
  return slots_[slot];
}

void Strand::note_hole(const BufferCode& buffer, int64_t element, int64_t lane) {
  if (!holes_) fail_unwritten(buffer, element, lane);
  holes_->lanes.resize(static_cast<size_t>(frame_.shape.lanes));
  holes_->lanes[static_cast<size_t>(lane)] = 1;
  if (holes_->first) return;
  try {
    fail_unwritten(buffer, element, lane);
  } catch (const Error&) {
    holes_->first = std::current_exception();
  }
}

void Strand::note_holes(const BufferCode& buffer, int64_t element, Mask mask) {
  for (int64_t l = 0; l < frame_.shape.lanes; ++l)
    if (mask.at(l)) note_hole(buffer, element, l);
}

void Strand::note_holes(const Holes& holes, Mask mask) {
  for (size_t l = 0; l < holes.lanes.size(); ++l) {
    if (!holes.lanes[l] || !mask.at(static_cast<int64_t>(l))) continue;
    if (!holes_) std::rethrow_exception(holes.first);
    holes_->lanes.resize(holes.lanes.size());
    holes_->lanes[l] = 1;
    if (!holes_->first) holes_->first = holes.first;
  }
}

Mask Strand::without(const Holes& holes, Mask mask) {
  if (!holes.first) return mask;
  const int64_t lanes = frame_.shape.lanes;
  auto* bits = arena_.array<uint8_t>(lanes);
  int64_t count = 0;
  for (int64_t l = 0; l < lanes; ++l)
    count += bits[l] = static_cast<uint8_t>(mask.at(l) && !holes.lanes[static_cast<size_t>(l)]);
  return {bits, count};
}

Mask Strand::without_dropped(const Place& place, Mask mask) {
  if (!place.inside) return mask;
  const int64_t lanes = frame_.shape.lanes;
  auto* bits = arena_.array<uint8_t>(lanes);
  int64_t count = 0;
  for (int64_t l = 0; l < lanes; ++l) count += bits[l] = static_cast<uint8_t>(mask.at(l) && place.inside[l]);
  return count == mask.count ? mask : Mask{bits, count};
}

void Strand::store_holes(const Place& place, const Holes& holes, Mask mask) {
  for (int64_t l = 0; l < frame_.shape.lanes; ++l)
    if (mask.at(l) && holes.lanes[static_cast<size_t>(l)])
      forget_written(place.written, place.buffer->type, place.offset.int_at(l, frame_.shape.columns));
}

}  // namespace tilewright::interpreter
