#include "ir/jumps.h"

#include "ir/rewrite.h"

namespace tilewright::ir {
namespace {

bool jumps(const Body& body, bool in_loop) {
  bool found = false;
  for (const Stmt& s : body) {
    found = found || s.as<Return>() || (in_loop && (s.as<Break>() || s.as<Continue>()));
    const bool own = s.as<For>() || s.as<While>() || s.as<Map>();  // has loops or points of its own to go on with
    for_each_body(s, [&](const Body& inner) { found = found || jumps(inner, in_loop && !own); });
  }
  return found;
}

}  // namespace

bool may_jump(const Body& loop_body) { return jumps(loop_body, true); }

}  // namespace tilewright::ir
