#include "analysis/live_registers.h"

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Fragments of a body and of the loops in it: from where to where, in the order of statements, each is alive.
class Lives {
 public:
  Lives(const ProgramTables& p, const Launch& launch, const HalfSteps* halves) : p_(p), halves_(halves) {
    body(launch.body);
  }

  int64_t most(int64_t threads) const {
    int64_t out = 0;
    for (int at = 0; at < now_; ++at) {
      int64_t bits = 0;
      for (const auto& [id, life] : lives_)
        if (life.first <= at && at <= life.last) bits += life.bits;
      out = std::max(out, bits);
    }
    return out / 32 / threads;
  }

 private:
  struct Life {
    int first, last;
    int64_t bits;
  };
  void body(const Body& in) {
    for (const Stmt& s : in) {
      const int begin = now_;
      const auto before = lives_;
      for (const Effect& e : effects_of(s).list)
        if (e.region.valid()) touch(p_.root(e.region.buffer));
      if (s.as<Map>()) {
        for (BufferId id : used_buffers({s})) touch(p_.root(id));
      } else {
        for_each_body(s, [&](const Body& inner) { body(inner); });
      }
      ++now_;
      // What was there before a loop and is used in it is alive in all of it.
      if (s.as<For>() || s.as<While>())
        for (auto& [id, life] : lives_)
          if (life.last >= begin && before.contains(id)) life.last = now_ - 1;
    }
  }
  void touch(BufferId id) {
    const Buffer& b = p_.buffer(id);
    if (b.space != Space::Fragment || b.rank() < 2) return;
    const auto [at, is_new] = lives_.try_emplace(id, Life{now_, now_, 0});
    at->second.last = now_;
    if (is_new) at->second.bits = elements_on_chip(b) * b.type.bits / (halves_ && halves_->cut.contains(id) ? 2 : 1);
  }

  const ProgramTables& p_;
  const HalfSteps* halves_;  // null: steps are whole
  std::map<BufferId, Life> lives_;
  int now_ = 0;
};

}  // namespace

int64_t live_registers(const ProgramTables& program, const Launch& launch, int64_t threads, const HalfSteps* halves) {
  return Lives(program, launch, halves).most(threads);
}

int64_t bits_of_fragments(const std::set<BufferId>& buffers, const ProgramTables& p) {
  int64_t bits = 0;
  for (BufferId id : buffers)
    if (const Buffer& b = p.buffer(id); b.space == Space::Fragment) bits += elements_on_chip(b) * b.type.bits;
  return bits;
}

}  // namespace tilewright::analysis
