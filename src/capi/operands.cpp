// From the values of a frontend to what the builder takes.
#include "capi/operations.h"
#include "support/diagnostic.h"

namespace tilewright::capi {
namespace {

const char* kind_name(int32_t kind) {
  switch (kind) {
    case TW_NONE: return "nothing";
    case TW_BOOL: return "a bool";
    case TW_INT:
    case TW_UINT: return "an integer";
    case TW_FLOAT: return "a float";
    case TW_TEXT: return "a text";
    case TW_EXPR: return "an expression";
    case TW_BUFFER: return "a buffer";
    case TW_TILE: return "an element or a tile of a buffer";
    case TW_SLICE: return "a slice";
    case TW_LIST: return "a list";
    default: return "something else";
  }
}

// The parameters that mean something here, of "A: tile, policy: int = 0, k_pack: ignored = 1".
std::string meaningful(const std::string& signature) {
  std::string out;
  for (size_t begin = 0, depth = 0, i = 0; i <= signature.size(); ++i) {
    const char c = i < signature.size() ? signature[i] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || depth > 0) continue;
    const std::string one = signature.substr(begin, i - begin);
    begin = i + 1;
    if (one.find(": ignored") == std::string::npos && one.find(": absent") == std::string::npos)
      out += (out.empty() ? "" : ",") + one;
  }
  return out.ends_with(", *") ? out.substr(0, out.size() - 3) : out;
}

// The name of operand i in "A: tile, B: tile, *, policy: int = 0". Frontends keep what is ignored to themselves.
std::string parameter_name(const std::string& signature, size_t wanted) {
  size_t begin = 0, depth = 0, number = 0;
  for (size_t i = 0; i <= signature.size(); ++i) {
    const char c = i < signature.size() ? signature[i] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || depth > 0) continue;
    while (begin < i && signature[begin] == ' ') ++begin;
    const std::string one = signature.substr(begin, i - begin);
    begin = i + 1;
    if (one == "*" || one.find(": ignored") != std::string::npos || one.find(": absent") != std::string::npos) continue;
    if (number++ == wanted) return one.substr(0, one.find(':'));
  }
  return fmt::format("operand {}", wanted);
}

}  // namespace

ir::Builder& Operands::builder() const {
  if (!builder_)
    fail(Code::OutsideProgram, place_, fmt::format("{} outside of prim_func", operation_.name),
         "write it in a function that is traced: under @T.prim_func, @T.macro or @jit");
  return *builder_;
}

void Operands::wrong(size_t i, const char* wanted) const { wrong(i, wanted, at(i)); }

void Operands::wrong(size_t i, const char* wanted, const tw_value& given) const {
  const bool is_part = &given != &at(i);  // of a list, or an index of a tile
  const std::string name = parameter_name(operation_.signature, i);
  const std::string what = !is_part                ? fmt::format("'{}' is {}", name, wanted)
                           : at(i).kind == TW_TILE ? fmt::format("an index of '{}' is {}", name, wanted)
                                                   : fmt::format("each of '{}' is {}", name, wanted);
  fail(Code::OperandKind, place_, fmt::format("{}: {}, but {} is given", operation_.name, what, kind_name(given.kind)),
       is_part && at(i).kind == TW_TILE && given.kind == TW_LIST
           ? "several indices have several names: for i, j in T.Parallel(M, N), with T.Kernel(M, N) as (bx, by)"
           : fmt::format("its parameters: {}({})", operation_.name, meaningful(operation_.signature)));
}

const tw_value& Operands::at(size_t i) const {
  static const tw_value none{};
  return i < values_.size() ? values_[i] : none;
}

bool Operands::is_scalar(size_t i) const {
  switch (at(i).kind) {
    case TW_BOOL:
    case TW_INT:
    case TW_UINT:
    case TW_FLOAT:
    case TW_EXPR: return true;
    case TW_BUFFER: return builder().buffer(ir::BufferId{at(i).buffer}).rank() == 0;
    case TW_TILE: return tile(i).is_element();
    default: return false;
  }
}

// A number of the frontend has no type of its own: beside a float64 it keeps all of its bits.
bool Operands::any_float64(std::span<const tw_value> values) const {
  for (const tw_value& v : values) {
    bool found = false;
    switch (v.kind) {
      case TW_TEXT: found = parse_dtype(v.as.text) == f64; break;
      case TW_EXPR: found = v.as.expr->value->type == f64; break;
      case TW_BUFFER:
      case TW_TILE: found = builder_ && builder().buffer(ir::BufferId{v.buffer}).type == f64; break;
      case TW_LIST: found = any_float64(std::span(v.as.items, static_cast<size_t>(v.count))); break;
      default: break;
    }
    if (found) return true;
  }
  return false;
}

ir::Expr Operands::expr_of(const tw_value& v, size_t i) const {
  switch (v.kind) {
    case TW_BOOL: return ir::constant(boolean, int64_t{v.as.integer != 0});
    case TW_INT: return ir::constant(v.as.integer == static_cast<int32_t>(v.as.integer) ? i32 : i64, v.as.integer);
    case TW_UINT: return ir::constant(u64, v.as.integer);
    case TW_FLOAT: return ir::constant(any_float64(values_) ? f64 : f32, v.as.number);
    case TW_EXPR: return v.as.expr->value;
    case TW_BUFFER:
      if (builder().buffer(ir::BufferId{v.buffer}).rank() != 0) {
        fail(Code::NeedsElement, place_,
             fmt::format("{}: '{}' is a value, but the whole buffer '{}' is given", operation_.name,
                         parameter_name(operation_.signature, i), builder().buffer(ir::BufferId{v.buffer}).name),
             "give an index in every dimension");
      }
      [[fallthrough]];
    case TW_TILE: return builder().load(tile_of(v, i));
    default: wrong(i, "a value", v);
  }
}

ir::TileRef Operands::tile_of(const tw_value& v, size_t i) const {
  ir::TileRef ref;
  ref.buffer = ir::BufferId{v.buffer};
  if (v.kind == TW_BUFFER) return ref;
  if (v.kind != TW_TILE) wrong(i, "a buffer, an element or a tile");
  ref.whole = false;
  for (const tw_value& index : std::span(v.as.items, static_cast<size_t>(v.count))) {
    if (index.kind != TW_SLICE) {
      ref.indices.push_back({expr_of(index, i), {}, false});
      continue;
    }
    const auto bound = [&](const tw_value& b) { return b.kind == TW_NONE ? ir::Expr{} : expr_of(b, i); };
    ref.indices.push_back({bound(index.as.items[0]), bound(index.as.items[1]), true});
  }
  return ref;
}

ir::Expr Operands::expr(size_t i) const { return expr_of(at(i), i); }
ir::TileRef Operands::tile(size_t i) const {
  builder();
  return tile_of(at(i), i);
}

std::vector<ir::TileRef> Operands::run(size_t i, int64_t count) const {
  ir::TileRef t = tile(i);
  if (t.whole) {
    for (size_t d = 0; d < builder().buffer(t.buffer).rank(); ++d)
      t.indices.push_back({ir::constant(i32, int64_t{0}), {}, false});
    t.whole = false;
  }
  size_t along = t.indices.size() - 1, slices = 0;
  for (size_t d = 0; d < t.indices.size(); ++d)
    if (t.indices[d].is_slice) along = d, ++slices;
  const ir::IndexSpec box = t.indices.empty() ? ir::IndexSpec{} : t.indices[along];
  const ir::Expr begin = box.begin ? box.begin : ir::constant(i32, int64_t{0});
  const ir::Expr end = box.end || t.indices.empty() ? box.end : builder().buffer(t.buffer).shape[along];
  const auto extent = slices == 1 ? ir::constant_int(ir::apply(ir::Operator::Sub, end, begin, place_)) : std::nullopt;
  if (slices > 1 || (slices == 1 && extent != count) || (t.indices.empty() && count != 1))
    fail(Code::BadOption, place_,
         fmt::format("{}: '{}' is no run of {} elements", operation_.name, parameter_name(operation_.signature, i),
                     count),
         "give the first of the elements, or a slice of that many");
  std::vector<ir::TileRef> elements;
  for (int64_t k = 0; k < count; ++k) {
    if (!t.indices.empty())
      t.indices[along] = {ir::apply(ir::Operator::Add, begin, ir::constant(i32, k), place_), {}, false};
    elements.push_back(t);
  }
  return elements;
}

ir::BufferId Operands::buffer(size_t i) const {
  builder();
  if (at(i).kind != TW_BUFFER) wrong(i, "a buffer");
  return ir::BufferId{at(i).buffer};
}

Exprs Operands::exprs(size_t i) const {
  const tw_value& v = at(i);
  Exprs out;
  if (v.kind == TW_NONE) return out;
  if (v.kind != TW_LIST) return {expr_of(v, i)};
  for (const tw_value& item : std::span(v.as.items, static_cast<size_t>(v.count))) out.push_back(expr_of(item, i));
  return out;
}

std::optional<double> Operands::number(size_t i) const {
  return given(i) && at(i).kind == TW_FLOAT ? std::optional(at(i).as.number) : std::nullopt;
}

int64_t Operands::integer(size_t i) const {
  const tw_value& v = at(i);
  if (v.kind == TW_BOOL || v.kind == TW_INT || v.kind == TW_UINT) return v.as.integer;
  if (v.kind == TW_EXPR)
    if (auto c = ir::constant_int(v.as.expr->value)) return *c;
  wrong(i, "an integer that is known now");
}

std::vector<int64_t> Operands::integers(size_t i) const {
  const tw_value& v = at(i);
  if (v.kind == TW_NONE) return {};
  if (v.kind != TW_LIST) return {integer(i)};
  std::vector<int64_t> out;
  for (const tw_value& item : std::span(v.as.items, static_cast<size_t>(v.count))) {
    const auto known = item.kind == TW_EXPR ? ir::constant_int(item.as.expr->value) : std::nullopt;
    if (item.kind != TW_INT && item.kind != TW_BOOL && !known) wrong(i, "an integer that is known now", item);
    out.push_back(known ? *known : item.as.integer);
  }
  return out;
}

std::string Operands::text(size_t i, const char* otherwise) const {
  if (!given(i)) return otherwise;
  if (at(i).kind != TW_TEXT) wrong(i, "a text");
  return at(i).as.text;
}

std::vector<std::string> Operands::texts(size_t i) const {
  const tw_value& v = at(i);
  std::vector<std::string> out;
  if (v.kind == TW_NONE) return out;
  if (v.kind != TW_LIST) return {text(i)};
  for (const tw_value& item : std::span(v.as.items, static_cast<size_t>(v.count))) {
    if (item.kind != TW_TEXT) wrong(i, "a text", item);
    out.emplace_back(item.as.text);
  }
  return out;
}

size_t Operands::word(size_t i, std::initializer_list<std::string_view> words) const {
  const std::string chosen = given(i) ? text(i) : std::string(*words.begin());
  const auto found = std::find(words.begin(), words.end(), chosen);
  if (found == words.end())
    fail(Code::BadOption, place_,
         fmt::format("{}: '{}' is '{}'", operation_.name, parameter_name(operation_.signature, i), chosen),
         fmt::format("it is one of: {}", fmt::join(words, ", ")));
  return static_cast<size_t>(found - words.begin());
}

DType Operands::dtype(size_t i) const {
  const std::string name = text(i);
  const auto type = parse_dtype(name);
  if (!type)
    fail(Code::UnknownDtype, place_, fmt::format("{}: there is no dtype '{}'", operation_.name, name),
         "for example float32, float16, bfloat16, int32, uint8, bool, float8_e4m3fn");
  return *type;
}

}  // namespace tilewright::capi
