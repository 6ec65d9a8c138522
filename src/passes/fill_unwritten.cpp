#include "passes/fill_unwritten.h"

#include <set>

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Uses {
  std::set<BufferId> read, written;
};

Uses uses_of(const Body& body, const ProgramTables& program) {
  Uses out;
  walk(body, [&](const Stmt& s) {
    const bool shows = s.as<Print>() || s.as<Assume>() || s.as<Assert>();  // what is there, whatever it is
    for (const Effect& e : effects_of(s).list) {
      if (!e.region.valid()) continue;
      const BufferId root = program.root(e.region.buffer);
      if (e.access == Access::Read && !shows) out.read.insert(root);
      // Text of the user's may do more with what it is given than it says.
      if (e.access != Access::Read || s.as<Call>()) out.written.insert(root);
    }
  });
  return out;
}

}  // namespace

TileProgram fill_unwritten(TileProgram program) {
  if (!program.options.zero_unwritten || program.options.strict) return program;
  for (Launch& launch : program.launches) {
    const Uses uses = uses_of(launch.body, program);
    Body fills;
    for (const BufferId id : uses.read) {
      const Buffer& b = program.buffer(id);
      const bool tile = b.space == Space::Shared || b.space == Space::Fragment || b.space == Space::Local;
      if (!tile || b.reducer || b.type.is_pointer() || uses.written.contains(id)) continue;
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
