#include "passes/fill_unwritten.h"

#include <set>

#include "analysis/first_reads.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright::passes {

using namespace ir;

namespace {

std::set<BufferId> read_in(const Body& body, const ProgramTables& program) {
  std::set<BufferId> out;
  walk(body, [&](const Stmt& s) {
    if (s.as<Print>() || s.as<Assume>() || s.as<Assert>()) return;  // of what is there, whatever it is
    for (const Effect& e : effects_of(s).list)
      if (e.region.valid() && e.access == Access::Read) out.insert(program.root(e.region.buffer));
  });
  return out;
}

}  // namespace

TileProgram fill_unwritten(TileProgram program) {
  if (!program.options.zero_unwritten || program.options.strict) return program;
  for (Launch& launch : program.launches) {
    const analysis::Writes written = analysis::writes_in(launch.body, program);
    Body fills;
    for (const BufferId id : read_in(launch.body, program)) {
      const Buffer& b = program.buffer(id);
      const bool tile = b.space == Space::Shared || b.space == Space::Fragment || b.space == Space::Local;
      if (!tile || b.reducer || b.type.is_pointer() || written.contains(id)) continue;
      warn(make_diagnostic(Code::ReadBeforeWrite, program.location(b.location),
                           fmt::format("nothing writes '{}', which is read: it holds zeros", b.name),
                           "fill it, or copy something to it"));
      fills.push_back(make_stmt(Fill{whole(id, program), constant(b.type, int64_t{0})}, b.location));
    }
    launch.body.insert(launch.body.begin(), fills.begin(), fills.end());
  }
  return program;
}

}  // namespace tilewright::passes
