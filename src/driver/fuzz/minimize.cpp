// Delta debugging on the tree: drop a statement, replace a scope by its body, replace an expression by one of its
// operands or by a constant, as long as the finding stays.
#include "driver/fuzz/check.h"
#include "ir/operators.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "tilewright/diagnostic.h"

namespace tilewright::fuzz {
namespace {

constexpr int kMaxAttempts = 800;

// Edit number `target` of all edits there are, in the order of a walk. Counts down; applies when it reaches zero.
struct Edit {
  int target;
  bool applied = false;
  bool here() { return !applied && target-- == 0 && (applied = true); }
};

ir::Expr edit_expr(const ir::Expr& e, Edit& edit) {
  return ir::rewrite(e, [&](const ir::Expr& x) -> std::optional<ir::Expr> {
    if (ir::is_constant(x) || edit.applied) return std::nullopt;
    if (!x->type.is_pointer() && edit.here()) return ir::constant(x->type, int64_t{1});
    std::optional<ir::Expr> out;
    ir::for_each_operand(x, [&](const ir::Expr& operand) {
      if (operand->type == x->type && edit.here()) out = operand;
    });
    return out;
  });
}

ir::Body edit_body(const ir::Body& body, Edit& edit) {
  ir::Body out;
  for (const ir::Stmt& s : body) {
    if (edit.here()) continue;  // dropped
    bool unwrapped = false;
    ir::for_each_body(s, [&](const ir::Body& inner) {
      const bool scope = s.as<ir::If>() || s.as<ir::Role>();
      if (scope && !inner.empty() && edit.here()) out.insert(out.end(), inner.begin(), inner.end()), unwrapped = true;
    });
    if (const auto* loop = s.as<ir::For>(); loop && edit.here()) {  // its first trip
      const ir::Body first = ir::substitute(loop->body, {{loop->var, loop->begin}});
      out.insert(out.end(), first.begin(), first.end()), unwrapped = true;
    }
    if (!unwrapped) out.push_back(s);
  }
  return out;
}

// nullopt when there are fewer edits.
std::optional<ir::TileProgram> edited(const ir::TileProgram& program, int target) {
  Edit edit{target};
  ir::TileProgram out = program;
  for (ir::Launch& launch : out.launches) {
    launch.body = edit_body(launch.body, edit);
    for (ir::Expr& extent : launch.grid)
      if (ir::constant_int(extent) != 1 && edit.here()) extent = ir::constant(extent->type, int64_t{1});
    if (!edit.applied) {
      launch.body = ir::rewrite(launch.body, [&](const ir::Stmt& s) -> std::optional<ir::Body> {
        if (edit.applied) return std::nullopt;
        std::optional<ir::Body> replaced;
        ir::StmtOp op = s->op;
        if (auto* loop = std::get_if<ir::For>(&op)) loop->body = edit_body(loop->body, edit);
        if (auto* loop = std::get_if<ir::While>(&op)) loop->body = edit_body(loop->body, edit);
        if (auto* branch = std::get_if<ir::If>(&op))
          branch->then_body = edit_body(branch->then_body, edit),
          branch->else_body = edit_body(branch->else_body, edit);
        if (auto* map = std::get_if<ir::Map>(&op)) map->body = edit_body(map->body, edit);
        if (auto* role = std::get_if<ir::Role>(&op)) role->body = edit_body(role->body, edit);
        if (edit.applied) replaced = ir::Body{ir::Stmt(ir::StmtNode{op, s->location})};
        return replaced;
      });
    }
    if (!edit.applied)
      launch.body = ir::rewrite_exprs(launch.body, [&](const ir::Expr& e) -> std::optional<ir::Expr> {
        if (edit.applied) return std::nullopt;
        const ir::Expr r = edit_expr(e, edit);
        return edit.applied ? std::optional(r) : std::nullopt;
      });
    if (edit.applied) return out;
  }
  return std::nullopt;
}

bool holds(const ir::TileProgram& program, function_ref<bool(const ir::TileProgram&)> shows) {
  try {
    return ir::verify(program).empty() && shows(program);
  } catch (const std::exception&) {
    return false;  // the edit broke a node's own rules
  }
}

bool is_declaration(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return false;
  for (const char* word : {"symbol ", "param ", "assume ", "global ", "shared ", "fragment ", "local ", "barrier "})
    if (line.substr(begin).starts_with(word)) return true;
  return false;
}

// Tables: a declaration that nothing uses is dropped in the text, because ids of later rows change with it.
ir::TileProgram without_unused(const ir::TileProgram& program, function_ref<bool(const ir::TileProgram&)> shows) {
  ir::TileProgram best = program;
  for (size_t at = 0;;) {
    const std::string text = ir::print(best);
    size_t begin = 0;
    for (size_t line = 0; line < at && begin != std::string::npos; ++line) {
      begin = text.find('\n', begin);
      if (begin != std::string::npos) ++begin;
    }
    if (begin == std::string::npos || begin >= text.size()) return best;
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    ++at;
    if (!is_declaration(std::string_view(text).substr(begin, end - begin))) continue;
    try {
      ir::TileProgram next = ir::parse(text.substr(0, begin) + text.substr(end), "minimize.tile");
      if (!holds(next, shows)) continue;
      best = std::move(next);
      --at;
    } catch (const CompileError&) {
      // It is used.
    }
  }
}

}  // namespace

ir::TileProgram minimize(const ir::TileProgram& program, function_ref<bool(const ir::TileProgram&)> shows) {
  ir::TileProgram best = program;
  int target = 0;
  bool smaller = false;
  for (int attempts = 0; attempts < kMaxAttempts; ++attempts) {
    std::optional<ir::TileProgram> next;
    try {
      next = edited(best, target);
    } catch (const std::exception&) {
      ++target;  // no such node can be built
      continue;
    }
    if (!next) {
      if (!smaller) break;
      target = 0, smaller = false;  // what is gone may have been in the way
    } else if (holds(*next, shows)) {
      best = std::move(*next);  // the same position now holds the next edit
      smaller = true;
    } else {
      ++target;
    }
  }
  return without_unused(best, shows);
}

}  // namespace tilewright::fuzz
