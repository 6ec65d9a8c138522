// A Map: its points in chunks as lanes, or dealt to the threads of the executing set where the body uses what is
// theirs.
#include "interpreter/strand.h"

namespace tilewright::interpreter {

namespace {
constexpr int64_t kChunk = 1024;  // lanes at a time: temporaries of an expression stay in the second-level cache
constexpr int64_t kFew = 128;     // less lanes than this in two dimensions are not worth keeping affine
}  // namespace

template <>
void Strand::execute(const ir::Map&, const Step& s, Mask mask) {
  check_converged(s, mask, "a map");
  std::array<int64_t, 8> extents{};
  size_t rank = s.nodes.size();
  check_internal(rank <= extents.size(), "a map of {} dimensions", rank);
  for (size_t d = 0; d < rank; ++d) extents[d] = std::max<int64_t>(eval_int(*s.nodes[d], mask), 0);
  std::span<const int64_t> box(extents.data(), rank);
  if (s.dealt) return map_dealt(s, box, mask);
  meet(s, mask, [&] {
    map_points(s, box, mask);
    return Value();
  });
}

// The variables of one chunk: points [first, first + lanes) of the box, row-major. Whole rows, or a part of one, keep
// the last two variables affine.
void Strand::bind_points(const Step& s, std::span<const int64_t> extents, int64_t first, bool affine) {
  const auto& vars = s.stmt.as<ir::Map>()->vars;
  int64_t lanes = frame_.shape.lanes;
  if (affine) {
    int64_t rest = first;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      Value v = uniform_int(rest % extents[d]);
      if (d + 1 == extents.size()) v = affine_value(v.base, 0, frame_.shape.columns > 1 ? 1 : 0);
      if (d + 2 == extents.size()) v = affine_value(v.base, frame_.shape.rows() > 1 ? 1 : 0, 0);
      bind(vars[d], v);
    }
    return;
  }
  int64_t inner = 1;
  for (size_t d = extents.size(); d-- > 0; inner *= extents[d]) {
    auto* values = arena_.array<int64_t>(lanes);
    for (int64_t l = 0; l < lanes; ++l) values[l] = (first + l) / inner % extents[d];
    bind(vars[d], array_value(LaneKind::Int64, values));
  }
}

void Strand::map_points(const Step& s, std::span<const int64_t> extents, Mask mask) {
  int64_t points = 1;
  for (int64_t e : extents) points *= e;
  if (points == 0) return;
  ArenaScope scope(arena_);
  std::vector<std::pair<uint32_t, Value>> saved;  // variables of the threads, which agree: one value for all points
  for (uint32_t slot : s.outer) {
    saved.emplace_back(slot, slots_[slot]);
    slots_[slot] = pick(slots_[slot], first_lane(mask), frame_.shape.columns);
  }
  std::unordered_map<uint64_t, int64_t> writes;
  PointAccesses accesses{&s.watched, {}, {}};
  Frame outer = frame_;
  frame_.threads = nullptr, frame_.points = nullptr;
  frame_.thread = pick(outer.thread, first_lane(mask), outer.shape.columns);
  frame_.returned = nullptr;
  frame_.map = &s, frame_.extents = extents, frame_.writes = s.distinct ? nullptr : &writes;
  frame_.accesses = s.watched.empty() ? nullptr : &accesses;

  int64_t last = extents.empty() ? 1 : extents.back(), before = extents.size() > 1 ? extents[extents.size() - 2] : 1;
  int64_t rows = last >= kChunk ? 1 : std::clamp<int64_t>(kChunk / last, 1, before);
  bool affine = std::min(last, kChunk) * rows >= kFew || last * before >= points;
  for (int64_t first = 0; first < points;) {
    int64_t lanes = std::min(kChunk, points - first), columns = lanes;
    if (affine) {
      int64_t column = first % last, row = first / last % before;
      columns = std::min(last - column, kChunk);
      lanes = last > kChunk ? columns : last * std::min(rows, before - row);
    }
    frame_.shape = {lanes, columns}, frame_.first_point = first;
    ArenaScope chunk(arena_);
    bind_points(s, extents, first, affine);
    LoopScope loop(*this, s.jumps_inside);
    run(s.bodies[0], Mask{nullptr, lanes});
    first += lanes;
  }
  frame_ = outer;
  for (const auto& [slot, value] : saved) slots_[slot] = value;
}

// Point p runs on thread p mod T of the set, as its p / T-th. Every strand runs the points of its own threads.
void Strand::map_dealt(const Step& s, std::span<const int64_t> extents, Mask mask) {
  auto nothing = [] { return Value(); };
  meet(s, mask, nothing);
  int64_t points = 1, threads = s.set.count(), lanes = frame_.shape.lanes;
  for (int64_t e : extents) points *= e;
  ArenaScope scope(arena_);
  auto* rank = arena_.array<int64_t>(lanes);  // of each thread in the executing set
  for (int64_t l = 0; l < lanes; ++l) rank[l] = rank_in(s.set, frame_.threads[l]);
  std::unordered_map<uint64_t, int64_t> writes;
  PointAccesses accesses{&s.watched, {}, {}};
  Frame outer = frame_;
  frame_.map = &s, frame_.extents = extents, frame_.writes = s.distinct ? nullptr : &writes;
  frame_.accesses = s.watched.empty() ? nullptr : &accesses;
  frame_.returned = nullptr;
  for (int64_t round = 0; round * threads < points; ++round) {
    ArenaScope chunk(arena_);
    auto* bits = arena_.array<uint8_t>(lanes);
    auto* point = arena_.array<int64_t>(lanes);
    int64_t count = 0;
    for (int64_t l = 0; l < lanes; ++l) {
      point[l] = round * threads + rank[l];
      bits[l] = point[l] < points;
      count += bits[l];
    }
    frame_.points = point;
    int64_t inner = 1;
    const auto& vars = s.stmt.as<ir::Map>()->vars;
    for (size_t d = extents.size(); d-- > 0; inner *= extents[d]) {
      auto* values = arena_.array<int64_t>(lanes);
      for (int64_t l = 0; l < lanes; ++l) values[l] = point[l] / inner % extents[d];
      bind(vars[d], array_value(LaneKind::Int64, values));
    }
    LoopScope loop(*this, s.jumps_inside);
    if (count > 0) run(s.bodies[0], count == lanes ? Mask{nullptr, lanes} : Mask{bits, count});
  }
  frame_ = outer;
  meet(s, mask, nothing);
}

int64_t Strand::rank_in(const analysis::ThreadSet& set, int64_t thread) const {
  int64_t x = thread % code_.threads[0], y = thread / code_.threads[0] % code_.threads[1];
  int64_t z = thread / code_.threads[0] / code_.threads[1];
  int64_t nx = set.end[0] - set.begin[0], ny = set.end[1] - set.begin[1];
  return x - set.begin[0] + nx * (y - set.begin[1] + ny * (z - set.begin[2]));
}

}  // namespace tilewright::interpreter
