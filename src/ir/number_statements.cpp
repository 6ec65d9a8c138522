#include "ir/number_statements.h"

#include "ir/rewrite.h"
#include "support/diagnostic.h"

namespace tilewright::ir {

namespace {

class Numbering {
 public:
  explicit Numbering(Launch& launch) : launch_(launch) {
    walk(launch.body, [&](const Stmt& s) { launch_.numbers = std::max(launch_.numbers, s->id.index); });
    seen_.resize(launch.numbers + 1);
  }

  void body(Body& b) {
    for (Stmt& s : b) s = numbered(s);
  }

 private:
  Stmt numbered(const Stmt& s) {
    const uint32_t number = s->id.index;
    const bool keeps = number != 0 && !seen_[number];
    if (keeps) seen_[number] = true;
    const StmtId id = keeps ? s->id : StmtId{++launch_.numbers};
    const Stmt inside = with_bodies(s, [&](Body b) {
      body(b);
      return b;
    });
    return keeps ? inside : Stmt(StmtNode{inside->op, s->location, id});
  }

  Launch& launch_;
  std::vector<bool> seen_;  // by number, of those that there were before
};

}  // namespace

void number_statements(Launch& launch) { Numbering(launch).body(launch.body); }

Launch numbered(Launch launch) {
  number_statements(launch);
  return launch;
}

void check_numbered(const Launch& launch) {
  std::vector<bool> seen(launch.numbers + 1);
  walk(launch.body, [&](const Stmt& s) {
    const uint32_t number = s->id.index;
    check_internal(number != 0 && number <= launch.numbers, "a statement '{}' without a number", name_of(s));
    check_internal(!seen[number], "two statements have the number {}", number);
    seen[number] = true;
  });
}

}  // namespace tilewright::ir
