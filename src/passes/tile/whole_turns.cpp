#include "passes/tile/whole_turns.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Whether a `continue` of the loop around stands in it.
bool goes_on(const Stmt& s) {
  if (s.as<Continue>()) return true;
  const auto* branch = s.as<If>();
  return branch && (std::any_of(branch->then_body.begin(), branch->then_body.end(), goes_on) ||
                    std::any_of(branch->else_body.begin(), branch->else_body.end(), goes_on));
}

// With `gone` set where a turn is over.
Body turn(const Body& in, BufferId gone) {
  Body out;
  for (size_t i = 0; i < in.size(); ++i) {
    const Stmt& s = in[i];
    if (s.as<Continue>()) {
      out.push_back(make_stmt(Store{{gone, {}}, constant(boolean, int64_t{1})}, s->location));
      return out;
    }
    if (!goes_on(s)) {
      out.push_back(s);
      continue;
    }
    const If& branch = *s.as<If>();
    out.push_back(
        make_stmt(If{branch.condition, turn(branch.then_body, gone), turn(branch.else_body, gone)}, s->location));
    Body rest = turn(Body(in.begin() + static_cast<std::ptrdiff_t>(i) + 1, in.end()), gone);
    if (!rest.empty())
      out.push_back(make_stmt(If{logical_not(load(gone, {}, boolean)), std::move(rest), {}}, s->location));
    return out;
  }
  return out;
}

}  // namespace

void end_turns_together(TileProgram& program, Launch& launch) {
  launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* loop = s.as<While>();
    if (!loop || std::none_of(loop->body.begin(), loop->body.end(), goes_on)) return std::nullopt;
    bool shares = false;
    walk(loop->condition, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      shares = shares || (n && program.buffer(program.root(n->buffer)).space != Space::Local);
    });
    if (!shares) return std::nullopt;
    Buffer b;
    b.name = "gone", b.type = boolean, b.space = Space::Local, b.location = s->location;
    b.launch = static_cast<int32_t>(&launch - program.launches.data());
    const BufferId gone = program.new_buffer(std::move(b));
    Body body{make_stmt(Store{{gone, {}}, constant(boolean, int64_t{0})}, s->location)};
    for (Stmt& inner : turn(loop->body, gone)) body.push_back(std::move(inner));
    return Body{make_stmt(While{loop->condition, std::move(body)}, s->location)};
  });
}

}  // namespace tilewright::passes
