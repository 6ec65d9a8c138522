#include "simulator/shadow.h"

#include <algorithm>

#include "layout/fragment.h"

namespace tilewright::simulator {

namespace {

// Whether the earlier access is done before the later one starts.
bool is_ordered(const Access& earlier, const Access& later, const Clocks& clocks) {
  if (earlier.none()) return true;
  if (earlier.pending) return false;
  if (earlier.block != later.block)
    return clocks.knows_far(later.thread, earlier.block, earlier.era, {earlier.thread, earlier.clock});
  return earlier.era != later.era || clocks.knows(later.thread, earlier.thread, earlier.clock);
}

// Blocks, and exchanges, take the order that they get; arithmetic of two kinds in one block does not mean any order.
bool may_change_places(const Access& a, const Access& b) {
  if (!a.atomic || !b.atomic) return false;
  const bool arithmetic = ir::commute(a.atomic, a.atomic) && ir::commute(b.atomic, b.atomic);
  return a.block != b.block || !arithmetic || ir::commute(a.atomic, b.atomic);
}

}  // namespace

Cell& Shadow::cell(uint64_t number) {
  const uint64_t page = number / kPage;
  if (page != last_page_) {
    auto& slot = pages_[page];
    if (!slot) slot = std::make_unique<std::array<Cell, kPage>>();
    last_page_ = page, last_ = slot.get();
  }
  return (*last_)[number % kPage];
}

void Shadow::ReadersOfWarp::add(const Access& a) {
  const uint32_t lane = 1u << (a.thread % kWarpThreads);
  const auto is_together = [&](const Together& t) {
    const Access& b = t.access;
    return t.lanes && b.clock == a.clock && b.instruction == a.instruction && b.site == a.site && b.block == a.block &&
           b.atomic == a.atomic && b.pending == a.pending && b.told == a.told && b.by_tma == a.by_tma;
  };
  first.lanes &= ~lane;
  for (Together& t : more) t.lanes &= ~lane;
  std::erase_if(more, [](const Together& t) { return !t.lanes; });
  if (is_together(first) || !first.lanes) return void(first = {a, first.lanes | lane});
  if (const auto known = std::ranges::find_if(more, is_together); known != more.end())
    known->lanes |= lane;
  else
    more.push_back({a, lane});
}

std::optional<Access> Shadow::find_reader(const Cell& cell, uint32_t era,
                                          function_ref<bool(const Access&)> holds) const {
  if (!has_more(cell, era)) return std::nullopt;
  const auto in = [&](const Together& t) -> std::optional<Access> {
    Access one = t.access;
    const int first = one.thread - one.thread % kWarpThreads;
    for (int lane = 0; lane < kWarpThreads; ++lane) {
      one.thread = static_cast<int16_t>(first + lane);
      if (t.lanes >> lane & 1 && holds(one)) return one;
    }
    return std::nullopt;
  };
  for (const ReadersOfWarp& warp : sets_[cell.more]) {
    if (const auto found = in(warp.first)) return found;
    for (const Together& t : warp.more)
      if (const auto found = in(t)) return found;
  }
  return std::nullopt;
}

size_t Shadow::rows_of_readers(const Cell& cell, uint32_t era) const {
  size_t out = 0;
  if (has_more(cell, era))
    for (const ReadersOfWarp& warp : sets_[cell.more]) out += (warp.first.lanes != 0) + warp.more.size();
  return out;
}

std::vector<Shadow::ReadersOfWarp>& Shadow::readers(Cell& cell, uint32_t era) {
  // Sets of past eras are given up when there are many. Blocks of a cooperative grid take turns, so that an era may
  // come back: its readers are forgotten then.
  constexpr size_t kManySets = 4096;
  if (era > sets_era_) {
    sets_era_ = era;
    if (sets_.size() > kManySets) sets_.clear(), ++generation_;
  }
  if (!has_more(cell, era)) {
    cell.more_era = era, cell.more_generation = generation_, cell.more = static_cast<uint32_t>(sets_.size());
    sets_.emplace_back();
  }
  return sets_[cell.more];
}

void Shadow::add_reader(Cell& cell, const Access& me, const Clocks& clocks) {
  const Access& last = cell.reader;
  if (last.era == me.era && last.thread == me.thread && last.clock == me.clock) return;
  if (!last.none() && last.block != me.block && is_ordered(cell.far_reader, me, clocks)) cell.far_reader = last;
  const bool alone = last.block != me.block || is_ordered(last, me, clocks);
  if (!alone || has_more(cell, me.era)) {
    std::vector<ReadersOfWarp>& set = readers(cell, me.era);
    const auto warp = [](const Access& a) {
      return static_cast<size_t>(a.thread / kWarpThreads);
    };  // they are of the block
    set.resize(std::max({set.size(), warp(last) + 1, warp(me) + 1}));
    if (!alone) set[warp(last)].add(last);
    set[warp(me)].add(me);
  }
  cell.reader = me;
}

std::optional<Conflict> Shadow::read(Cell& cell, const Access& me, const Clocks& clocks) {
  for (const Access* writer : {&cell.writer, &cell.other_writer})
    if (!is_ordered(*writer, me, clocks) && !may_change_places(*writer, me)) return Conflict{*writer, true};
  add_reader(cell, me, clocks);
  return std::nullopt;
}

std::optional<Conflict> Shadow::write(Cell& cell, const Access& me, const Clocks& clocks,
                                      function_ref<bool(const Access& other)> same_bits) {
  for (const Access* writer : {&cell.writer, &cell.other_writer}) {
    if (is_ordered(*writer, me, clocks)) continue;
    const bool plain = !writer->pending && !me.pending && !writer->atomic && !me.atomic;
    const bool harmless = may_change_places(*writer, me) || (plain && same_bits(*writer));
    if (!harmless) return Conflict{*writer, true};
  }
  const auto is_open = [&](const Access& reader) {
    return !is_ordered(reader, me, clocks) && !may_change_places(reader, me);
  };
  for (const Access* reader : {&cell.reader, &cell.far_reader})
    if (is_open(*reader)) return Conflict{*reader, false};
  if (const auto reader = find_reader(cell, me.era, is_open)) return Conflict{*reader, false};
  if (!is_ordered(cell.writer, me, clocks)) cell.other_writer = cell.writer;
  cell.writer = me;
  return std::nullopt;
}

void Shadow::forget_done() {
  for (auto& [number, page] : pages_)
    for (Cell& cell : *page) {
      const Access writer = cell.writer;
      cell = {};
      if (writer.pending) cell.writer = writer;
    }
}

std::optional<Shadow::AgentConflict> Shadow::conflict_with_agent(const Cell& cell, const Witness& who, bool writes,
                                                                 const Clocks& clocks) const {
  const auto is_old = [&](const Access& a) { return a.none() || !clocks.is_of_block(a.era); };
  const auto is_done = [&](const Access& a) {
    return is_old(a) || (!a.pending && clocks.knows(who, a.thread, a.clock));
  };
  for (const Access* writer : {&cell.writer, &cell.other_writer}) {
    if (!is_done(*writer)) return AgentConflict{{*writer, true}, false};
    const bool fenced = writer->told ? clocks.is_fenced_by_any(who, writer->thread, writer->clock, writer->era)
                                     : clocks.is_fenced(who, writer->thread, writer->clock, false);
    if (!is_old(*writer) && !fenced) return AgentConflict{{*writer, true}, true};
  }
  if (!writes) return std::nullopt;
  // A read that a barrier orders may still wait in its queue: only the fence says that it has its value.
  const auto conflict = [&](const Access& reader) -> std::optional<AgentConflict> {
    if (!is_done(reader)) return AgentConflict{{reader, false}, false};
    if (is_old(reader) || clocks.is_fenced(who, reader.thread, reader.clock, false)) return std::nullopt;
    return AgentConflict{{reader, false}, true};
  };
  if (const auto found = conflict(cell.reader)) return found;
  if (const auto reader = find_reader(cell, clocks.era(), [&](const Access& a) { return conflict(a).has_value(); }))
    return conflict(*reader);
  return std::nullopt;
}

}  // namespace tilewright::simulator
