// Statements of .tile text. All but the common ones are read through the field list of their struct.
#include "ir/operators.h"
#include "ir/parse_text.h"

namespace tilewright::ir {
namespace {

constexpr std::string_view kSpaces[] = {"global", "shared", "fragment", "local", "barrier"};

template <class T>
constexpr bool has_result() {
  bool found = false;
  T standard{};
  T::fields(standard, [&](const char*, auto& value) {
    if (std::is_same_v<std::decay_t<decltype(value)>, VarId>) found = true;
  });
  return found;
}

// Ops with a grammar of their own; their fields are not spelled.
template <class T>
constexpr bool is_written_by_grammar() {
  return std::is_same_v<T, Let> || std::is_same_v<T, Store> || std::is_same_v<T, For> || std::is_same_v<T, While> ||
         std::is_same_v<T, If> || std::is_same_v<T, Map> || std::is_same_v<T, Role> || std::is_same_v<T, Elect>;
}

}  // namespace

Body Parser::block() {
  const size_t depth = scope_.size();
  expect("{", "before the statements");
  const Nesting nesting(*this);
  Body body;
  while (!peek().is("}")) {
    const Token& at = peek();
    if (at.kind == TokenKind::End) fail_expected("a statement or }", at);
    const bool declares = std::find(std::begin(kSpaces), std::end(kSpaces), at.text) != std::end(kSpaces);
    if (declares && at.kind == TokenKind::Name && peek(1).is_name()) {
      const auto space = word<Space>("memory space");
      buffer(space, false);
    } else {
      body.push_back(statement());
    }
  }
  take();
  leave_scope(depth);
  return body;
}

Stmt Parser::statement() {
  const Token& at = peek();
  const Token& after = peek(1);
  if (!at.is_name()) fail_expected("a statement", at);
  if (after.is(":")) return binding();
  if (after.is("[") || after.is("=") || at.kind == TokenKind::QuotedName) return store(at, Queue::None);
  if (at.is(name_of(Queue::CpAsync))) return store(take(), Queue::CpAsync);
  if (at.is("for")) return for_loop(take());
  if (at.is("map")) return map(take());
  if (at.is("role")) return role(take());
  if (at.is("elect")) return elect(take());
  if (at.is("if")) return if_else(take());
  if (at.is("while")) {
    take();
    While loop;
    loop.condition = condition();
    const LocationId location = location_after(at);
    loop.body = block();
    return make_stmt(std::move(loop), location);
  }
  return operation(nullptr);
}

// name: type = value, or name: type = operation with a result.
Stmt Parser::binding() {
  const Token& at = peek();
  const std::string bound = name("a name");
  check_free(bound, at);
  take();  // the colon
  const DType bound_type = type();
  expect("=", "after the type of the name");
  if (starts_operation(peek(), peek(1))) {
    const Result result{bound, bound_type, &at};
    return operation(&result);
  }
  Let let;
  let.value = expression(bound_type);
  let.var = define_var(bound, bound_type, at);
  return make_stmt(std::move(let), location_after(at));
}

Stmt Parser::store(const Token& at, Queue queue) {
  Store store;
  store.queue = queue;
  store.to = element();
  expect("=", "after the element that is stored to");
  store.value = expression(program_.buffer(store.to.buffer).type);
  return make_stmt(std::move(store), location_after(at));
}

Stmt Parser::for_loop(const Token& at) {
  const size_t depth = scope_.size();
  const Token& var_at = peek();
  For loop;
  const std::string var = name("the loop variable");
  check_free(var, var_at);
  const DType var_type = take_if(":") ? type() : i32;
  expect("in", "after the loop variable");
  loop.begin = expression(var_type);
  if (!take_if("..")) {
    expect(":", "between begin and extent of the loop");
  } else if (constant_int(loop.begin) != 0) {
    fail(Code::TextExpected, place(at), "a range with .. begins at 0", "write begin : extent for other ranges");
  }
  loop.extent = expression(var_type);
  loop.var = define_var(var, var_type, var_at);
  if (!peek().is("{") && !peek().is("@")) {
    loop.kind = word<LoopKind>("kind of loop");
    if (take_if("(")) {
      do {
        const Token& field_at = peek();
        const std::string key = name("a detail of the loop");
        expect("=", "after the name of the field");
        if (key == "stages")
          field(loop.stages, {});
        else if (key == "factor")
          field(loop.factor, {});
        else if (key == "lanes")
          field(loop.lanes, {});
        else if (key == "order")
          field(loop.order, {});
        else if (key == "stage")
          field(loop.stage, {});
        else
          fail(Code::TextUnknownField, place(field_at), fmt::format("a loop has no field '{}'", key),
               "it has stages, factor, lanes, order, stage");
      } while (take_if(","));
      expect(")", "after the details of the loop");
    }
  }
  const LocationId location = location_after(at);
  loop.body = block();
  leave_scope(depth);
  return make_stmt(std::move(loop), location);
}

Stmt Parser::map(const Token& at) {
  const size_t depth = scope_.size();
  struct Index {
    std::string name;
    DType type;
    const Token* at;
  };
  std::vector<Index> vars;
  Map map;
  do {
    const Token& var_at = peek();
    const std::string var = name("the variable of the map");
    check_free(var, var_at);
    const DType var_type = take_if(":") ? type() : i32;
    expect("in", "after the variable of the map");
    map.extents.push_back(expression(var_type));
    vars.push_back({var, var_type, &var_at});
  } while (take_if(","));
  for (const Index& var : vars) {
    check_free(var.name, *var.at);
    map.vars.push_back(define_var(var.name, var.type, *var.at));
  }
  const LocationId location = location_after(at);
  map.body = block();
  leave_scope(depth);
  return make_stmt(std::move(map), location);
}

Stmt Parser::role(const Token& at) {
  Role role;
  role.begin = integer("the first thread of the role");
  expect("..", "between the first thread and the end");
  role.end = integer("the end of the role's threads");
  const LocationId location = location_after(at);
  role.body = block();
  return make_stmt(std::move(role), location);
}

Stmt Parser::elect(const Token& at) {
  const LocationId location = location_after(at);
  return make_stmt(Elect{block()}, location);
}

Stmt Parser::if_else(const Token& at) {
  const Nesting nesting(*this);
  If node;
  node.condition = condition();
  const LocationId location = location_after(at);
  node.then_body = block();
  if (take_if("else")) {
    if (peek().is("if"))
      node.else_body = {if_else(take())};
    else
      node.else_body = block();
  }
  return make_stmt(std::move(node), location);
}

// ---- operations through their fields --------------------------------------------------------------------------------

// A variable may be called like an operation: an operation is followed by a field or a word on its line. The word of an
// atomic may be that of an operator: then a field follows.
bool Parser::starts_operation(const Token& at, const Token& after) const {
  if (at.kind != TokenKind::Name || after.kind != TokenKind::Name || after.first_on_line) return false;
  const bool joins = after.is("and") || after.is("or");
  return !at.is("not") && (!joins || (peek(2).is_name() && peek(3).is("=")));
}

Stmt Parser::operation(const Result* result) {
  const Token& at = take();
  return operation_named(at, result);
}

template <size_t I>
Stmt Parser::operation_named(const Token& at, const Result* result) {
  if constexpr (I < std::variant_size_v<StmtOp>) {
    using T = std::variant_alternative_t<I, StmtOp>;
    if constexpr (!is_written_by_grammar<T>()) {
      if (at.is(T::name)) return generic<T>(at, result);
    }
    return operation_named<I + 1>(at, result);
  } else {
    fail(Code::TextUnknownStatement, place(at), fmt::format("no statement is called '{}'", at.text));
  }
}

template <class T>
Stmt Parser::generic(const Token& at, const Result* result) {
  T node{};
  std::set<std::string> seen;
  std::optional<DType> known;  // of `value` and `compare`: the type of the buffer that `to` names
  bool leading = true;
  T::fields(node, [&](std::string_view field_name, auto& value) {
    using Field = std::decay_t<decltype(value)>;
    if (!std::exchange(leading, false)) return;
    if constexpr (std::is_enum_v<Field>) {
      value = word<Field>(fmt::format("kind of {}", T::name).c_str());
      seen.emplace(field_name);
    } else if constexpr (std::is_same_v<Field, Expr>) {
      if (field_name != "condition") return;
      value = condition();
      seen.emplace(field_name);
    }
  });
  while (peek().is_name() && !peek().first_on_line) {
    const Token& field_at = peek();
    const std::string key = name("a field");
    expect("=", "after the name of the field");
    if (!seen.insert(key).second)
      fail(Code::TextRepeatedField, place(field_at), fmt::format("'{}' is given twice", key));
    if (!field_named(node, key, key == "value" || key == "compare" ? known : std::nullopt)) {
      std::string all;
      T::fields(node, [&](const char* name, const auto&) { all += (all.empty() ? "" : ", ") + std::string(name); });
      fail(Code::TextUnknownField, place(field_at), fmt::format("{} has no field '{}'", T::name, key),
           "it has: " + all);
    }
    T::fields(node, [&](std::string_view field_name, const auto& value) {
      using Field = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Field, Region> || std::is_same_v<Field, Element>) {
        if (field_name == "to" && value.valid()) known = program_.buffer(value.buffer).type;
      }
    });
  }
  if (result && !has_result<T>())
    fail(Code::TextResult, place(*result->at), fmt::format("{} has no result to bind to '{}'", T::name, result->name));
  const LocationId location = location_after(result ? *result->at : at);
  T::fields(node, [&](const char*, auto& value) {
    using Field = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Field, VarId>) {
      if (result) value = define_var(result->name, result->type, *result->at);
    } else if constexpr (std::is_same_v<Field, Body>) {
      value = block();
    }
  });
  return make_stmt(std::move(node), location);
}

template <class T>
bool Parser::field_named(T& node, const std::string& key, std::optional<DType> known) {
  bool found = false;
  T::fields(node, [&](std::string_view field_name, auto& value) {
    using Field = std::decay_t<decltype(value)>;
    if constexpr (!std::is_same_v<Field, VarId> && !std::is_same_v<Field, Body>) {
      if (found || field_name != key) return;
      field(value, known);
      found = true;
    }
  });
  return found;
}

template <class T>
void Parser::fields_in_parentheses(T& node) {
  const Nesting nesting(*this);
  std::set<std::string> seen;
  expect("(", "before the fields");
  do {
    const Token& at = peek();
    const std::string key = name("a field");
    expect("=", "after the name of the field");
    if (!seen.insert(key).second) fail(Code::TextRepeatedField, place(at), fmt::format("'{}' is given twice", key));
    if (!field_named(node, key, {}))
      fail(Code::TextUnknownField, place(at), fmt::format("there is no field '{}' here", key));
  } while (take_if(","));
  expect(")", "after the fields");
}

template <class T>
void Parser::field(T& value, std::optional<DType> known) {
  if constexpr (std::is_same_v<T, Expr>) {
    value = expression(known);
  } else if constexpr (std::is_same_v<T, Region>) {
    value = region();
  } else if constexpr (std::is_same_v<T, Element>) {
    value = element();
  } else if constexpr (std::is_same_v<T, BufferId>) {
    value = buffer_named("a buffer");
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = string();
  } else if constexpr (std::is_same_v<T, bool>) {
    const Token& at = take();
    if (!at.is("true") && !at.is("false")) fail_expected("true or false", at);
    value = at.is("true");
  } else if constexpr (std::is_integral_v<T>) {
    value = integer("an integer");
  } else if constexpr (std::is_enum_v<T>) {
    value = word<T>("value of the field");
  } else if constexpr (IsVector<T>::value) {
    const Nesting nesting(*this);
    expect("[", "before the list");
    if (take_if("]")) return;
    do field(value.emplace_back(), {});
    while (take_if(","));
    expect("]", "after the list");
  } else {
    fields_in_parentheses(value);
  }
}

template void Parser::field(bool&, std::optional<DType>);
template void Parser::field(std::vector<int64_t>&, std::optional<DType>);
template void Parser::field(std::vector<Expr>&, std::optional<DType>);

Element Parser::element() {
  const Token& at = peek();
  Element element;
  element.buffer = buffer_named("a buffer");
  element.indices = indices(element.buffer, at);
  return element;
}

Region Parser::region() {
  const Token& at = peek();
  Region region;
  region.buffer = buffer_named("a buffer");
  const std::vector<Expr> shape = program_.buffer(region.buffer).shape;
  const Expr one = constant(i32, int64_t{1});
  if (!take_if("[")) {
    for (const Expr& e : shape) region.min.push_back(constant(e->type, int64_t{0}));
    region.extent = shape;
    return region;
  }
  const Nesting nesting(*this);
  do {
    region.min.push_back(integer_expression("the begin of a region"));
    region.extent.push_back(take_if(":") ? integer_expression("the extent of a region") : one);
  } while (take_if(","));
  expect("]", "after the region");
  // A loop program's gemms speak of tiles that lie in memory otherwise; its verifier knows them.
  if (region.min.size() != shape.size() && !is_loop_program_)
    fail(Code::TextIndexCount, place(at),
         fmt::format("'{}' has {} dimensions, but the region has {}", program_.buffer(region.buffer).name, shape.size(),
                     region.min.size()));
  return region;
}

}  // namespace tilewright::ir
