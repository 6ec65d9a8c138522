#include "ir/extent.h"

#include "ir/widen.h"

namespace tilewright::ir {

int64_t elements_on_chip(const Buffer& b) {
  int64_t count = 1;
  for (size_t d = 0; d < b.rank(); ++d) {
    const int64_t extent = constant_int(b.shape[d]).value_or(0);
    if (b.strides.empty())
      count *= extent;
    else
      count += std::max<int64_t>(extent - 1, 0) * constant_int(b.strides[d]).value_or(0);
  }
  return count;
}

int64_t bytes_on_chip(const Buffer& b) { return bytes_of(b.type, elements_on_chip(b)); }

int64_t bytes_in(const Region& region, const ProgramTables& program) {
  int64_t count = 1;
  for (const Expr& e : region.extent) count *= constant_int(e).value_or(1);
  return bytes_of(program.buffer(region.buffer).type, count);
}

Region whole(BufferId id, const ProgramTables& program) {
  const Buffer& b = program.buffer(id);
  return {id, std::vector<Expr>(b.rank(), constant(i32, int64_t{0})), b.shape};
}

bool is_whole(const Region& region, const Buffer& b) {
  for (size_t d = 0; d < b.rank(); ++d)
    if (constant_int(region.min[d]) != 0 || !equal(cast(region.extent[d], i64), cast(b.shape[d], i64))) return false;
  return true;
}

std::vector<int> kept_dims(const Reduce& reduce) {
  const std::vector<Expr>&from = reduce.from.extent, &to = reduce.to.extent;
  const auto is = [](const std::optional<int64_t>& has, int64_t extent) { return has.value_or(extent) == extent; };
  // Of dimensions of `from` those that `to` has, if they agree; `more`: it may have others in front.
  const auto matched = [&](std::vector<int> dims, bool more) -> std::optional<std::vector<int>> {
    while (dims.size() > to.size()) {
      if (dims[0] >= 0 && constant_int(from[static_cast<size_t>(dims[0])]) != 1) return std::nullopt;
      dims.erase(dims.begin());
    }
    if (dims.size() < to.size() && !more) return std::nullopt;
    dims.insert(dims.begin(), to.size() - dims.size(), -1);
    for (size_t t = 0; t < to.size(); ++t) {
      const auto wants = constant_int(to[t]);
      if (dims[t] < 0 ? !is(wants, 1) : wants && !is(constant_int(from[static_cast<size_t>(dims[t])]), *wants))
        return std::nullopt;
    }
    return dims;
  };
  std::vector<int> dropped, kept;
  for (int d = 0; d < static_cast<int>(from.size()); ++d) {
    if (d != reduce.dim) dropped.push_back(d);
    kept.push_back(d == reduce.dim ? -1 : d);
  }
  for (const bool more : {false, true})
    for (const auto& dims : {dropped, kept})
      if (auto found = matched(dims, more)) return *found;
  return std::vector<int>(to.size(), -1);
}

std::vector<size_t> moving_dims(const Region& region) {
  std::vector<size_t> out;
  for (size_t d = 0; d < region.extent.size(); ++d)
    if (constant_int(region.extent[d]) != 1) out.push_back(d);
  return out;
}

Gemm transpose_of(const Gemm& n) {
  Gemm out = n;
  std::swap(out.a, out.b);
  out.transpose_a = !n.transpose_b, out.transpose_b = !n.transpose_a;
  const size_t rank = n.c.extent.size();
  std::swap(out.c.min[rank - 2], out.c.min[rank - 1]), std::swap(out.c.extent[rank - 2], out.c.extent[rank - 1]);
  if (n.policy != GemmPolicy::Square)
    out.policy = n.policy == GemmPolicy::FullRow ? GemmPolicy::FullCol : GemmPolicy::FullRow;
  return out;
}

Expr blocks_of(const Launch& launch) {
  Expr blocks = wide(1);
  for (const Expr& e : launch.grid) blocks = mul(blocks, widen(e));
  return blocks;
}

}  // namespace tilewright::ir
