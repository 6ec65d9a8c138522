// Delta debugging: in the text, drop declarations and launches that nothing needs; on the tree, drop a statement,
// replace a scope by its body, replace an expression by one of its operands or by a constant, as long as the finding
// stays.
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

// Where the declaration that begins here ends: a line, or a whole launch. 0: none begins here.
size_t declaration_end(std::string_view text, size_t begin) {
  const size_t word = text.find_first_not_of(' ', begin), line = text.find('\n', begin);
  if (word == std::string_view::npos || line == std::string_view::npos) return 0;
  if (text.substr(word).starts_with("launch ")) {
    constexpr std::string_view kClose = "\n  }\n";
    const size_t close = text.find(kClose, begin);
    return close == std::string_view::npos ? 0 : close + kClose.size();
  }
  for (const char* keyword :
       {"symbol ", "param ", "assume ", "option ", "global ", "shared ", "fragment ", "local ", "barrier "})
    if (text.substr(word).starts_with(keyword)) return line + 1;
  return 0;
}

std::optional<ir::TileProgram> read(const std::string& text, function_ref<bool(const ir::TileProgram&)> shows) {
  try {
    ir::TileProgram program = ir::parse(text, "minimize.tile");
    if (holds(program, shows)) return program;
  } catch (const CompileError&) {
    // What was dropped is used.
  }
  return std::nullopt;
}

// In the text, because ids of later rows of a table change with a row that goes. Again while anything goes: what a
// declaration used may be free then.
ir::TileProgram without_unused(const ir::TileProgram& program, function_ref<bool(const ir::TileProgram&)> shows) {
  ir::TileProgram best = program;
  for (bool smaller = true; std::exchange(smaller, false);) {
    std::string text = ir::print(best);
    for (size_t at = 0; at < text.size();) {
      const size_t end = declaration_end(text, at);
      std::optional<ir::TileProgram> next;
      if (end != 0) next = read(text.substr(0, at) + text.substr(end), shows);
      if (next) {
        best = std::move(*next);
        text = ir::print(best);
        smaller = true;
      } else {
        at = text.find('\n', at) + 1;
      }
    }
  }
  return best;
}

}  // namespace

ir::TileProgram minimize(const ir::TileProgram& program, function_ref<bool(const ir::TileProgram&)> shows) {
  ir::TileProgram best = without_unused(program, shows);
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
