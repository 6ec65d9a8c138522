#include "analysis/async_copies.h"

#include <algorithm>
#include <set>

#include "analysis/accessed.h"
#include "analysis/divisibility.h"
#include "analysis/panels.h"
#include "analysis/tma.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kCopyBits = 128;  // of one cp.async: with fewer the hardware is no faster than loads and stores
// Bytes of tiles that threads do not ask for themselves where TMA brings them: they would for 256 clocks (128 bytes in
// each), and their reads of shared memory wait behind that.
constexpr int64_t kMuchToAskFor = 32768;
constexpr int64_t kMostBoxes = 16;  // of a tile, by TMA

// Of a fragment they see the registers.
bool has_views_in_memory(const ProgramTables& p, BufferId id) {
  return p.buffer(id).space == Space::Shared &&
         std::any_of(p.buffers.begin(), p.buffers.end(), [&](const Buffer& b) { return b.root == id; });
}

std::string why_not_wide(const Copy& c, const Buffer& from, const Buffer& to, const ProgramTables& p) {
  const int64_t elements = kCopyBits / to.type.bits;
  const Buffer& memory = p.buffer(p.root(c.from.buffer));
  if (begins_anywhere(memory)) return fmt::format("'{}' may begin at any of its elements", memory.name);
  if (to.rank() == 0 || constant_int(to.shape.back()).value_or(1) % elements != 0)
    return fmt::format("rows of '{}' are no multiples of 16 bytes", to.name);
  if (constant_int(c.from.extent.back()) == 1)
    return fmt::format("rows of '{}' are not along its last dimension", from.name);
  if (!from.strides.empty() && constant_int(from.strides.back()) != 1)
    return fmt::format("'{}' is not contiguous", from.name);
  auto divides = [&](const Expr& e) { return power_of_two_divisor(e, p) % elements == 0; };
  if (!divides(c.from.min.back()) || (from.offset && !divides(from.offset)))
    return fmt::format("it may begin between pieces of 16 bytes of rows of '{}'", from.name);
  bool whole = divides(from.shape.back());
  for (size_t d = 0; d + 1 < from.strides.size(); ++d) whole = whole && divides(from.strides[d]);
  return whole ? "" : fmt::format("rows of '{}' are not known to be multiples of 16 bytes", from.name);
}

}  // namespace

std::string async_misfit(const Copy& c, const Buffer& to, const ProgramTables& p) {
  const Buffer& from = p.buffer(c.from.buffer);
  if (!c.completion.immediate()) return "the program waits for it itself";
  if (c.combine != Combine::None) return "it combines on chip";
  if (c.im2col.present()) return "it takes patches of an image";
  if (p.buffer(p.root(c.from.buffer)).space != Space::Global || to.space != Space::Shared)
    return "it is not from global to shared memory";
  if (from.type != to.type) return "it converts";
  if (to.type.bits < 8) return "its elements share bytes";
  if (from.fill) return fmt::format("'{}' has a fill value", from.name);
  if (to.is_view() || has_views_in_memory(p, c.to.buffer)) return fmt::format("'{}' is seen through views", to.name);
  if (!is_whole(c.to, to)) return fmt::format("it fills part of '{}'", to.name);
  return why_not_wide(c, from, to, p);
}

bool comes_by_async_copies(const Copy& c, const Buffer& to, const ProgramTables& p) {
  return async_misfit(c, to, p).empty();
}

namespace {

// Whether the copy fills the tile from global memory, before anything else in the body is done with it, in a way that
// may run ahead: all such copies go in front of the rest, and what cannot run ahead there would only stand too early.
bool begins(const ProgramTables& p, const Copy& c, const Body& before) {
  const Buffer& to = p.buffer(c.to.buffer);
  if (to.space == Space::Shared)
    return comes_by_async_copies(c, to, p) && !accessed_by(before, p).contains(c.to.buffer);
  return to.space == Space::Fragment && comes_by_async_copies(c, arrival_of(c, p), p);
}

// Whether the names in the copy's place are those of the launch, or of values: results of atomics, say, come with what
// stands before it.
bool is_known_ahead(const Copy& c, const Body& before) {
  std::set<VarId> told;
  const auto uses_told = [&](const Expr& e) {
    const std::set<VarId> used = used_vars(e);
    return std::any_of(used.begin(), used.end(), [&](VarId v) { return told.contains(v); });
  };
  for (const Stmt& s : before) {
    const auto* let = s.as<Let>();
    if (!let || uses_told(let->value)) told.merge(bound_vars({s}));
  }
  return std::none_of(c.from.min.begin(), c.from.min.end(), uses_told);
}

}  // namespace

bool may_run_ahead(const Copy& c, const Body& before, const ProgramTables& p) {
  return begins(p, c, before) && is_known_ahead(c, before);
}

Buffer arrival_of(const Copy& c, const ProgramTables& p) {
  const Buffer& to = p.buffer(c.to.buffer);
  if (to.space == Space::Shared) return to;
  Buffer b;
  b.name = to.name + "_next", b.type = p.buffer(c.from.buffer).type, b.shape = to.shape, b.space = Space::Shared;
  b.launch = to.launch;
  return b;
}

bool come_in_bulk(const std::vector<Copy>& copies, const ProgramTables& p) {
  int64_t bytes = 0;
  for (const Copy& c : copies) bytes += bytes_on_chip(p.buffer(c.to.buffer));
  return bytes >= kMuchToAskFor && std::ranges::all_of(copies, [&](const Copy& c) {
           if (!tma_misfit(c, p).empty()) return false;
           if (is_one_run(c, p.buffer(c.to.buffer), p)) return true;
           const int64_t columns = *constant_int(c.to.extent.back()), box = box_columns(p, c.to.buffer);
           return (columns + box - 1) / box <= kMostBoxes;
         });
}

bool arrive_in_bulk(std::vector<Copy> copies, ProgramTables p) {
  for (Copy& c : copies) {
    Buffer tile = arrival_of(c, p);
    c.to.buffer = BufferId{static_cast<uint32_t>(p.buffers.size())};
    p.buffers.push_back(std::move(tile));
  }
  return come_in_bulk(copies, p);
}

}  // namespace tilewright::analysis
