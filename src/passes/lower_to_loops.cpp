#include "passes/lower_to_loops.h"

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/number_statements.h"
#include "passes/launch_order.h"
#include "passes/long_steps.h"
#include "passes/lower/block_index.h"
#include "passes/lower/layouts.h"
#include "passes/lower/pack_once.h"
#include "passes/lower/strands.h"
#include "passes/lower/threads.h"
#include "passes/sparse_gemm.h"
#include "passes/warp_arrivals.h"
#include "passes/warp_matrices.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

LoopProgram tables_of(const TileProgram& p) {
  LoopProgram out;
  out.name = p.name, out.params = p.params, out.symbols = p.symbols, out.assumptions = p.assumptions;
  out.vars = p.vars, out.buffers = p.buffers, out.locations = p.locations, out.options = p.options;
  for (Buffer& b : out.buffers) b.layout = {};  // a processor's tiles lie, and are shaped, as these passes choose
  return out;
}

// Local buffers whose values all threads agree on: one scalar of the strand will do.
std::set<BufferId> uniform_locals(const ProgramTables& p, const Launch& launch, const analysis::Uniformity& u,
                                  int32_t number) {
  std::set<BufferId> out;
  for (uint32_t i = 0; i < p.buffers.size(); ++i) {
    const Buffer& b = p.buffers[i];
    if (b.space != Space::Local || b.is_view() || b.launch != number || launch.body.empty()) continue;
    const std::vector<Expr> zero(b.rank(), constant(0));
    if (u.is_uniform(load({i}, zero, b.type), launch.body.front())) out.insert({i});
  }
  return out;
}

// What one strand does. `block` has what is known of the indices of blocks.
Body lower_strand(Strand& strand, int32_t number, const Lowering& block, LoopProgram& out,
                  std::set<BufferId>& uniform) {
  number_statements(strand.launch);
  const analysis::Uniformity uniformity(out, strand.launch);
  Lowering l{out, strand.launch, block.target};
  l.number = number;
  l.intervals = block.intervals, l.boxes = block.boxes;
  l.at = strand.launch.location, l.first_thread = strand.first, l.user_buffers = block.user_buffers;
  const std::set<BufferId> mine = uniform_locals(out, strand.launch, uniformity, number);
  Body body = place_tiles(privatize(lower_block(uniformity, l), mine, l), l);
  uniform.insert(mine.begin(), mine.end());
  return body;
}

// Tiles that copies from tensors write, each all of it, and nothing else.
std::set<BufferId> copied_tiles(const ProgramTables& p, const Launch& launch) {
  std::set<BufferId> copied, others;
  walk(launch.body, [&](const Stmt& s) {
    const auto* c = s.as<Copy>();
    const bool whole = c && c->combine == Combine::None && !c->im2col.present() &&
                       p.buffer(p.root(c->from.buffer)).space == Space::Global &&
                       is_whole(c->to, p.buffer(c->to.buffer));
    if (whole)
      copied.insert(c->to.buffer);
    else if (!s.as<For>() && !s.as<While>() && !s.as<If>() && !s.as<Role>())
      for (BufferId id : changed_roots({s}, p)) others.insert(id);
  });
  for (BufferId id : others) copied.erase(id);
  return copied;
}

std::vector<Launch> lower_launch(const TileProgram& p, const Launch& of_tiles, int32_t number, LoopProgram& out,
                                 const target::CpuTarget& target) {
  const Launch launch = numbered(of_tiles);
  std::vector<Strand> strands = strands_of(launch, analysis::Uniformity(p, launch), number, out);
  Lowering l{out, launch, target};
  l.number = number;
  l.at = launch.location, l.user_buffers = out.buffers.size();
  Expr blocks = wide(1);
  for (const Expr& e : launch.grid) blocks = mul(blocks, widen(e));
  const Expr block = l.index("block", blocks);
  // No block reaches another here: those of a cluster that is not whole come all the same.
  Launch alone = launch;
  if (!has_whole_clusters(launch)) alone.cluster.clear();
  Body body = bind_block(alone, block, l);
  const std::set<BufferId> copied = copied_tiles(out, launch);
  choose_tiles(l);
  std::set<BufferId> uniform;
  for (Strand& strand : strands) {
    Body part = lower_strand(strand, number, l, out, uniform);
    if (strands.size() == 1)
      body.insert(body.end(), part.begin(), part.end());
    else
      body.push_back(l.make(Role{strand.first, strand.first + strand.launch.threads[0], std::move(part)}));
  }
  for (size_t i = 0; i < out.buffers.size(); ++i) {
    Buffer& b = out.buffers[i];
    if (b.launch != number) continue;
    if (b.space == Space::Fragment && (i < l.user_buffers || b.is_view())) b.space = Space::Shared;
    b.reducer.reset();  // its atomics are plain updates of the block's memory
    if (uniform.contains(out.root({static_cast<uint32_t>(i)})))
      b.space = b.rank() == 0 ? Space::Fragment : Space::Shared;
  }
  Launch result = launch;
  result.body = {loop(l, block, wide(0), blocks, std::move(body), LoopKind::Grid)};
  if (auto launches = strands.size() == 1 ? pack_once(out, result, copied) : std::nullopt) return *launches;
  return {result};
}

}  // namespace

LoopProgram lower_to_loops(const TileProgram& given, const target::CpuTarget& target) {
  const TileProgram program =
      spell_matrices(spell_warp_arrivals(unpack_sparse_gemms(long_steps(drop_launch_order(given)))));
  LoopProgram out = tables_of(program);
  std::vector<int32_t> places;  // of the program's launches among those that they become
  for (size_t i = 0; i < program.launches.size(); ++i) {
    for (Launch& launch : lower_launch(program, program.launches[i], static_cast<int32_t>(i), out, target))
      out.launches.push_back(std::move(launch));
    places.push_back(static_cast<int32_t>(out.launches.size()) - 1);
  }
  for (Buffer& b : out.buffers)
    if (b.launch >= 0) b.launch = places[static_cast<size_t>(b.launch)];
  return out;
}

}  // namespace tilewright::passes
