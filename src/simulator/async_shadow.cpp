#include "simulator/async_shadow.h"

#include <algorithm>

namespace tilewright::simulator {

void AsyncShadow::reset() {
  if (active_)
    for (Cell& c : cells_) c.writer = {}, c.readers.clear();
  std::fill(plain_.begin(), plain_.end(), uint8_t{0});
  active_ = false;
}

bool AsyncShadow::is_done(const AsyncAccess& access, const Witness& who, const Clocks& clocks,
                          const Queues& queues) const {
  using Kind = AsyncAccess::Kind;
  if (access.kind == Kind::None) return true;
  if (access.kind != Kind::Store) return clocks.knows_agent(who, access.agent, access.clock);
  const std::optional<Clock> drained = queues.stores_drained_at(access.thread, access.clock);
  return drained && clocks.knows(who, access.thread, *drained);
}

std::optional<AsyncConflict> AsyncShadow::touch(uint64_t first, uint64_t last, bool writes, const Witness& who,
                                                const Clocks& clocks, const Queues& queues) {
  for (uint64_t c = first / kCellBits; c <= last / kCellBits; ++c) {
    plain_[c] = 1;
    if (!active_) continue;
    const Cell& cell = cells_[c];
    if (!is_done(cell.writer, who, clocks, queues)) return AsyncConflict{AsyncConflict::Kind::Async, cell.writer, {}};
    if (!writes) continue;
    for (const AsyncAccess& reader : cell.readers)
      if (!is_done(reader, who, clocks, queues)) return AsyncConflict{AsyncConflict::Kind::Async, reader, {}};
  }
  return std::nullopt;
}

std::optional<AsyncConflict> AsyncShadow::issue(uint64_t number, const AsyncAccess& me, std::span<const Witness> who,
                                                Shadow& plain, const Clocks& clocks, const Queues& queues) {
  active_ = true;
  Cell& cell = cells_[number];
  const bool writes = me.kind == AsyncAccess::Kind::Load;
  for (const Witness& w : who) {
    if (!is_done(cell.writer, w, clocks, queues)) return AsyncConflict{AsyncConflict::Kind::Async, cell.writer, {}};
    for (const AsyncAccess& reader : cell.readers)
      if (writes && !is_done(reader, w, clocks, queues)) return AsyncConflict{AsyncConflict::Kind::Async, reader, {}};
  }
  if (plain_[number]) {
    const auto bits = static_cast<uint64_t>(plain.cell_bits());
    for (uint64_t c = number * kCellBits / bits; c < (number + 1) * kCellBits / bits; ++c) {
      for (const Witness& w : who)
        if (const auto conflict = plain.conflict_with_agent(plain.cell(c), w, writes, clocks))
          return AsyncConflict{
              conflict->unfenced ? AsyncConflict::Kind::Unfenced : AsyncConflict::Kind::Thread, {}, conflict->with};
      // What comes later is ordered behind this one, and with it behind what was here before.
      if (writes) plain.cell(c) = {};
    }
  }
  if (writes) {
    cell.writer = me, cell.readers.clear(), plain_[number] = 0;
    return std::nullopt;
  }
  // The groups of an agent retire in order: the last stands for all.
  const auto same = [&](const AsyncAccess& r) {
    return r.kind == me.kind && (me.kind == AsyncAccess::Kind::Store ? r.thread == me.thread : r.agent == me.agent);
  };
  const auto mine = std::find_if(cell.readers.begin(), cell.readers.end(), same);
  if (mine == cell.readers.end())
    cell.readers.push_back(me);
  else
    *mine = me;
  return std::nullopt;
}

}  // namespace tilewright::simulator
