#include "passes/threads/stage_results.h"

#include "ir/extent.h"
#include "ir/operators.h"
#include "passes/threads/collectives.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMaxStaging = 65536;  // bytes: more would cost the rings a slot

class Stager {
 public:
  Stager(TileProgram& p, std::vector<std::string>& staged) : p_(p), staged_(staged) {}

  Body run(Body in) {
    Body out;
    for (Stmt& s : in) {
      if (const auto* loop = s.as<For>()) {
        For f = *loop;
        f.body = run(f.body);
        out.push_back(make_stmt(std::move(f), s->location));
        continue;
      }
      const auto* copy = s.as<Copy>();
      const BufferId staging = copy ? staging_of(*copy) : BufferId{};
      if (!staging.valid()) {
        out.push_back(std::move(s));
        continue;
      }
      staged_.push_back(p_.buffer(copy->from.buffer).name);
      Copy down, away;
      down.from = copy->from, down.to = whole(staging);
      away.from = whole(staging), away.to = copy->to, away.completion.queue = Queue::BulkStore;
      out.push_back(make_stmt(Drain{Queue::BulkStore, 0, {}}, s->location));
      out.push_back(make_stmt(std::move(down), s->location));
      out.push_back(make_stmt(std::move(away), s->location));
      out.push_back(make_stmt(Commit{Queue::BulkStore}, s->location));
    }
    return out;
  }
  Region whole(BufferId id) const {
    const Buffer& b = p_.buffer(id);
    return {id, std::vector<Expr>(b.rank(), constant(i32, int64_t{0})), b.shape};
  }
  // A buffer for it, if TMA can take it from there.
  BufferId staging_of(const Copy& c) {
    const Buffer &from = p_.buffer(c.from.buffer), &to = p_.buffer(c.to.buffer);
    if (from.space != Space::Fragment || from.is_view() || to.space != Space::Global || from.rank() != 2) return {};
    if (!c.completion.immediate() || c.combine != ir::Combine::None || c.im2col.present()) return {};
    if (!is_whole(c.from, from) || elements_on_chip(from) * to.type.bits / 8 > kMaxStaging) return {};
    Buffer b;
    b.name = from.name + "_staged", b.type = to.type, b.space = Space::Shared, b.shape = from.shape;
    b.launch = from.launch, b.location = from.location;
    const BufferId id = p_.new_buffer(std::move(b));
    Copy away;
    away.from = whole(id), away.to = c.to, away.completion.queue = Queue::BulkStore;
    if (tma_misfit(away, p_).empty()) return id;
    p_.buffers.pop_back();
    return {};
  }

  TileProgram& p_;
  std::vector<std::string>& staged_;
};

}  // namespace

Body stage_results(TileProgram& program, Body body, std::vector<std::string>& staged) {
  return Stager(program, staged).run(std::move(body));
}

}  // namespace tilewright::passes
