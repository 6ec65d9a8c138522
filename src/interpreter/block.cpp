// Blocks and strands: memory on chip, the threads' places, and how errors are located.
#include "interpreter/strand.h"

namespace tilewright::interpreter {

namespace {
constexpr int64_t kAlignment = 128;
int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
}  // namespace

Block::Block(Grid& owner) : grid(owner) {
  const LaunchCode& code = grid.code;
  memory_.resize(code.buffers.size());
  // Thread programs say where in the block's shared memory a buffer lies; the rest follows behind.
  int64_t total = 0, placed = 0;
  std::map<uint32_t, int64_t> start;
  for (uint32_t id : code.on_chip) {
    const BufferCode& buffer = code.buffers[id];
    if (buffer.space == ir::Space::Barrier) {
      barriers_[id].resize(static_cast<size_t>(buffer.elements));
      continue;
    }
    Memory& m = memory_[id];
    m.bytes = bytes_of(buffer.type, buffer.elements);
    if (buffer.source->place >= 0) {
      start[id] = buffer.source->place;
      placed = std::max(placed, aligned(buffer.source->place + m.bytes));
      continue;
    }
    if (buffer.is_local()) {
      m.thread_bytes = (m.bytes + 7) / 8 * 8;  // so that any view of it starts at an element
      m.bytes = m.thread_bytes * code.thread_count;
    }
    start[id] = total;
    total += aligned(m.bytes);
  }
  total += placed;
  for (auto& [id, at] : start)
    if (code.buffers[id].source->place < 0) at += placed;
  storage_.resize(static_cast<size_t>(total + kAlignment));
  written_.resize(static_cast<size_t>(total));
  auto address = reinterpret_cast<uintptr_t>(storage_.data());
  base_ = storage_.data() + (kAlignment - static_cast<int64_t>(address % kAlignment)) % kAlignment;
  for (auto [id, at] : start) memory_[id].data = base_ + at, memory_[id].written = written_.data() + at;
}

void Block::reset(std::array<int64_t, 3> at) {
  index = at;
  std::fill(written_.begin(), written_.end(), uint8_t{0});
  for (Memory& m : memory_) m.finalized = false;
  for (auto& [id, list] : barriers_) {
    const auto& counts = grid.code.buffers[id].source->arrive_counts;
    for (size_t i = 0; i < list.size(); ++i) {
      int64_t count = i < counts.size() ? counts[i] : counts.empty() ? 1 : counts.back();
      list[i] = Barrier{count, count, 0, 0};
    }
  }
  meetings.clear();
  named.clear();
}

Strand::Strand(Block& block, const analysis::ThreadSet& set)
    : program_(block.grid.program), code_(block.grid.code), block_(block), set_(set) {
  lanes_ = set.count();
  int64_t nx = code_.threads[0], ny = code_.threads[1];
  for (int64_t z = set.begin[2]; z < set.end[2]; ++z)
    for (int64_t y = set.begin[1]; y < set.end[1]; ++y)
      for (int64_t x = set.begin[0]; x < set.end[0]; ++x) threads_.push_back(x + nx * (y + ny * z));
  int64_t columns = set.end[0] - set.begin[0], rows = set.end[1] - set.begin[1];
  bool flat = set.end[2] - set.begin[2] == 1;
  frame_.shape = {lanes_, columns};
  frame_.threads = threads_.data();
  slots_.resize(program_.program->vars.size());
  frame_.thread = flat ? affine_value(threads_[0], rows > 1 ? nx : 0, columns > 1 ? 1 : 0)
                       : array_value(LaneKind::Int64, threads_.data());
  const ir::Launch& launch = *code_.launch;
  for (size_t d = 0; d < launch.thread.size(); ++d) {
    Value v = affine_value(set.begin[d], d == 1 && rows > 1, d == 0 && columns > 1);
    if (!flat) {
      auto* values = arena_.array<int64_t>(lanes_);
      for (int64_t l = 0; l < lanes_; ++l) {
        int64_t t = threads_[static_cast<size_t>(l)];
        values[l] = d == 0 ? t % nx : d == 1 ? t / nx % ny : t / nx / ny;
      }
      v = array_value(LaneKind::Int64, values);
    }
    bind(launch.thread[d], v);
  }
}

Strand::Strand(Block& block, int64_t first, int64_t count)
    : program_(block.grid.program), code_(block.grid.code), block_(block), set_(code_.strands[0]), lanes_(count) {
  for (int64_t t = first; t < first + count; ++t) threads_.push_back(t);
  frame_.shape = {count, count};
  frame_.threads = threads_.data();
  frame_.thread = affine_value(first, 0, count > 1 ? 1 : 0);
  slots_.resize(program_.program->vars.size());
  const int64_t nx = code_.threads[0], ny = code_.threads[1];
  for (size_t d = 0; d < code_.launch->thread.size(); ++d) {
    auto* values = arena_.array<int64_t>(count);
    for (int64_t l = 0; l < count; ++l) {
      int64_t t = first + l;
      values[l] = d == 0 ? t % nx : d == 1 ? t / nx % ny : t / nx / ny;
    }
    int64_t step = count > 1 ? values[1] - values[0] : 0;
    bool affine = true;
    for (int64_t l = 1; l < count; ++l) affine = affine && values[l] == values[0] + l * step;
    bind(code_.launch->thread[d], affine ? affine_value(values[0], 0, step) : array_value(LaneKind::Int64, values));
  }
}

void Strand::run() {
  const ir::Launch& launch = *code_.launch;
  for (size_t d = 0; d < launch.block.size(); ++d) bind(launch.block[d], uniform_int(block_.index[d]));
  ArenaScope scope(arena_);
  frame_.returned = arena_.array<uint8_t>(lanes_);
  std::memset(frame_.returned, 0, static_cast<size_t>(lanes_));
  frame_.left = frame_.skipped = nullptr;
  run(code_.body, Mask{nullptr, lanes_});
}

SourceLocation Strand::location() const {
  return current_ ? program_.program->location(current_->node().location) : SourceLocation{};
}

namespace {
std::string coordinates(std::span<const int64_t> values, size_t rank) {
  return fmt::format("({})", fmt::join(values.first(std::max<size_t>(rank, 1)), ", "));
}
}  // namespace

std::string Strand::describe() const {
  std::string block = "block " + coordinates(block_.index, code_.launch->grid.size());
  if (threads_.size() == 1) return fmt::format("{}, thread {}", block, threads_[0]);
  return fmt::format("{}, threads {} to {}", block, threads_.front(), threads_.back());
}

std::string Strand::thread_name(int64_t thread) const {
  int64_t nx = code_.threads[0], ny = code_.threads[1];
  int64_t xyz[] = {thread % nx, thread / nx % ny, thread / nx / ny};
  return coordinates(xyz, code_.launch->threads.size());
}

std::string Strand::where(int64_t lane) const {
  std::string text = "in block " + coordinates(block_.index, code_.launch->grid.size());
  if (lane < 0) return text;  // a tile op is the whole set's
  if (frame_.threads && lane < frame_.shape.lanes) {
    text += ", thread " + thread_name(frame_.threads[lane]);
  }
  if (frame_.map) {
    int64_t p = frame_.points ? frame_.points[lane] : frame_.first_point + lane;
    std::vector<int64_t> point(frame_.extents.size());
    for (size_t d = point.size(); d-- > 0; p /= frame_.extents[d]) point[d] = p % frame_.extents[d];
    text += ", point " + coordinates(point, point.size());
  }
  return text;
}

void Strand::fail_at(Code code, int64_t lane, std::string message, std::string help) {
  fail(code, location(), message + ", " + where(lane), std::move(help));
}

}  // namespace tilewright::interpreter
