#include "driver/shared_lives.h"

#include "ir/effects.h"
#include "ir/rewrite.h"

namespace tilewright {
namespace {

// Counts the statements of a list, and between which of them each root is used.
class Count {
 public:
  Count(const ir::ThreadProgram& program, bool of_role) : program_(program), of_role_(of_role) {}

  void body(const ir::Body& b) {
    for (const ir::Stmt& s : b) {
      if (s.as<ir::Role>() && !of_role_) continue;  // a list of its own
      const int64_t before = now_;
      bool nested = false;
      ir::for_each_body(s, [&](const ir::Body& inner) { nested = true, body(inner); });
      if (!nested) ++now_;
      if (!nested || s.as<ir::For>() || s.as<ir::While>()) use(s, before);
    }
  }
  void add_to(std::map<ir::BufferId, std::vector<SharedLife>>& out, int64_t first, int64_t end) const {
    for (const auto& [root, life] : lives_) out[root].push_back({first, end, life.first, life.second, now_});
  }

 private:
  void use(const ir::Stmt& s, int64_t before) {
    for (const ir::BufferId root : ir::used_roots({s}, program_)) {
      if (program_.buffer(root).space != ir::Space::Shared) continue;
      auto& life = lives_.emplace(root, std::pair(before, now_)).first->second;
      life = {std::min(life.first, before), std::max(life.second, now_)};
    }
  }

  const ir::ThreadProgram& program_;
  const bool of_role_;
  int64_t now_ = 0;
  std::map<ir::BufferId, std::pair<int64_t, int64_t>> lives_;
};

}  // namespace

std::map<ir::BufferId, std::vector<SharedLife>> shared_lives(const ir::ThreadProgram& program,
                                                             const ir::Launch& launch) {
  std::map<ir::BufferId, std::vector<SharedLife>> out;
  Count all(program, false);
  all.body(launch.body);
  all.add_to(out, 0, launch.thread_count());
  for (const ir::Stmt& s : launch.body) {
    const auto* role = s.as<ir::Role>();
    if (!role) continue;
    Count own(program, true);
    own.body(role->body);
    own.add_to(out, role->begin, role->end);
  }
  return out;
}

}  // namespace tilewright
