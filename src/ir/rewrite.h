// Generic walks. Compiled once in rewrite.cpp; unchanged subtrees stay the same pointer.
#pragma once
#include <map>

#include "ir/program.h"
#include "support/function_ref.h"

namespace tilewright::ir {

// Every direct expression operand of a node.
void for_each_operand(const Expr& e, function_ref<void(const Expr&)> f);
// Every expression held directly by a statement (indices, extents, values), not those of nested bodies.
void for_each_expr(const Stmt& s, function_ref<void(const Expr&)> f);
// Every body held directly by a statement.
void for_each_body(const Stmt& s, function_ref<void(const Body&)> f);
// Every region that a statement names, whatever it does with it, in the order of its fields; not those of nested
// bodies.
void for_each_region(const Stmt& s, function_ref<void(const Region&)> f);

// The statement with other expressions, or other bodies, in its fields; with its number.
Stmt with_exprs(const Stmt& s, function_ref<Expr(const Expr&)> other);
// The same but for the indices of elements and regions.
Stmt with_values(const Stmt& s, function_ref<Expr(const Expr&)> other);
Stmt with_bodies(const Stmt& s, function_ref<Body(const Body&)> other);

// Preorder over an expression / all statements of a body and, with walk_exprs, every expression in them.
void walk(const Expr& e, function_ref<void(const Expr&)> before);
void walk(const Body& body, function_ref<void(const Stmt&)> before);
void walk_exprs(const Body& body, function_ref<void(const Expr&)> before);

// Bottom-up. `replace` sees each node after its operands were rewritten and may give another.
Expr rewrite(const Expr& e, function_ref<std::optional<Expr>(const Expr&)> replace);
// Rewrites every expression in a body.
Body rewrite_exprs(const Body& body, function_ref<std::optional<Expr>(const Expr&)> replace);
// Bottom-up over statements: each may become any number of statements.
Body rewrite(const Body& body, function_ref<std::optional<Body>(const Stmt&)> replace);

// Every use of a variable replaced by an expression of its type.
using Substitution = std::unordered_map<VarId, Expr>;
Expr substitute(const Expr& e, const Substitution& map);
Body substitute(const Body& body, const Substitution& map);

// Variables and buffers that an expression or body mentions (views as themselves).
std::set<VarId> used_vars(const Expr& e);
std::set<VarId> used_vars(const Body& body);
std::set<BufferId> used_buffers(const Body& body);
// Every mention of a buffer as one of another that is declared alike.
Body with_buffers(const Body& body, const std::map<BufferId, BufferId>& others);
// Variables a body binds (Let, For, Map, Shuffle, ...).
std::set<VarId> bound_vars(const Body& body);

}  // namespace tilewright::ir
