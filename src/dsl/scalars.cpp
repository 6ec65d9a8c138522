// Values, references and the operators between them.
#include "dsl/recording.h"
#include "scalar/functions.h"
#include "support/diagnostic.h"

namespace tilewright {

// Results of operators live in a ring: long enough for any full expression, and nothing keeps one beyond it.
struct ExpressionStorage {
  static constexpr size_t kSlots = 4096;
  Expression slots[kSlots];
  size_t next = 0;
};
struct RefStorage {
  static constexpr size_t kSlots = 1024;
  Ref slots[kSlots];
  size_t next = 0;
};

Expression&& Expression::make(ExprPointer node) {
  static thread_local std::unique_ptr<ExpressionStorage> storage = std::make_unique<ExpressionStorage>();
  Expression& slot = storage->slots[storage->next++ % ExpressionStorage::kSlots];
  slot.node_ = std::move(node), slot.is_no_condition_ = false;
  return std::move(slot);
}
Expression&& Expression::make_no_condition(ExprPointer operand) {
  Expression&& made = make(std::move(operand));
  made.is_no_condition_ = true;
  return std::move(made);
}

Ref&& Ref::make(uint32_t buffer, std::initializer_list<Index> indices, Location at) {
  static thread_local std::unique_ptr<RefStorage> storage(new RefStorage);
  Ref& slot = storage->slots[storage->next++ % RefStorage::kSlots];
  slot.buffer_ = buffer, slot.indices_.assign(indices), slot.at_ = at;
  if (ir::Builder* b = recording_or_null()) b->set_location(source_location_of(at));
  return std::move(slot);
}

namespace {

SourceLocation here() { return recording_or_null() ? recording_or_null()->location() : SourceLocation{}; }

// Where an operator stands: where its first operand does.
SourceLocation place_of(const Operand& operand) {
  return operand.at().line() > 0 ? source_location_of(operand.at()) : here();
}

}  // namespace

ir::Expr expr_of(const Operand& operand, const char* what) {
  if (!operand.node())
    fail(Code::BadOption, place_of(operand), fmt::format("{}: an operand without a value", what),
         "initialize the Value before it is used");
  if (operand.is_no_condition()) ir::as_condition(ir::Expr(operand.node()), place_of(operand));
  return ir::Expr(operand.node());
}
std::vector<ir::Expr> exprs_of(std::span<const Operand> operands, const char* what) {
  std::vector<ir::Expr> out;
  for (const Operand& o : operands) out.push_back(expr_of(o, what));
  return out;
}

namespace {

Expression&& result(const ir::Expr& e) { return Expression::make(e.pointer()); }

Expression&& apply(ir::Operator op, const Operand& a, const Operand& b) {
  return result(ir::apply(op, expr_of(a, "an operator"), expr_of(b, "an operator"), place_of(a)));
}

// Whether it is said of a logical operator's operand by who uses the result: here is no place to name.
bool is_refused_later(const Operand& operand) {
  if (operand.at().line() > 0) return false;
  return !operand.node() || operand.is_no_condition() ||
         !(operand.node()->type.is_bool() || operand.node()->type.is_int());
}
Expression&& apply_logical(ir::Operator op, const Operand& a, const Operand& b) {
  for (const Operand* operand : {&a, &b})
    if (is_refused_later(*operand)) return Expression::make_no_condition(operand->node());
  return apply(op, a, b);
}

ir::TileRef scalar_of(uint32_t buffer) { return {ir::BufferId{buffer}, {}, true}; }

}  // namespace

ir::TileRef TileAccess::make(uint32_t buffer, const std::vector<Index>& indices) {
  ir::TileRef out{ir::BufferId{buffer}, {}, false};
  for (const Index& i : indices)
    out.indices.push_back({i.begin_.node() ? ir::Expr(i.begin_.node()) : ir::Expr{},
                           i.end_.node() ? ir::Expr(i.end_.node()) : ir::Expr{}, i.is_slice_});
  return out;
}
ir::TileRef TileAccess::of(const Ref& ref) { return make(ref.buffer_, ref.indices_); }
ir::TileRef TileAccess::of(const Region& region) { return make(region.buffer_, region.indices_); }
ir::TileRef TileAccess::of(const Tile& tile) {
  return tile.region_ ? of(*tile.region_) : ir::TileRef{ir::BufferId{tile.buffer_}, {}, true};
}

// ---- operands and values

Operand::Operand(const Value& value, Location at) : node_(value.node()), at_(at) {}
Operand::Operand(const Ref& element, Location at)
    : node_(recording("a read", TileAccess::place(element)).load(TileAccess::of(element)).pointer()), at_(at) {}
Operand::Operand(const Var& var, Location at)
    : node_(recording("a read", at).load(scalar_of(var.id())).pointer()), at_(at) {}
Operand Operand::of_bool(bool value) { return Operand(ir::constant(boolean, int64_t{value}).pointer()); }
Operand Operand::of_int(int64_t value) {
  return Operand(ir::constant(value == static_cast<int32_t>(value) ? i32 : i64, value).pointer());
}
Operand Operand::of_float(double value) { return Operand(ir::constant(f32, value).pointer()); }

namespace {
size_t open_scopes() { return recording_or_null() ? recording_or_null()->depth() : 0; }

ExprPointer named(const Operand& value, const Location& at) {
  ir::Builder* b = recording_or_null();
  if (!b) return value.node();
  b->set_location(source_location_of(at));
  return b->let(declared_name(at), expr_of(value, "a value")).pointer();
}
}  // namespace

Value::Value() : Value(ExprPointer(), Location{}) {}
Value::Value(const Value& other) : Value(other.node_, other.at_) {}
Value::Value(ExprPointer node, Location at) : node_(std::move(node)), at_(at), depth_(open_scopes()) {}
Value::Value(const Expression& value, Location at) : Value(named(Operand(value, at), at), at) {}
Value::Value(const Ref& element, Location at) : Value(named(Operand(element, at), at), at) {}
Value::Value(const Var& var, Location at) : Value(named(Operand(var, at), at), at) {}
Value& Value::operator=(const Value& other) { return set(other, {}), *this; }
Value& Value::operator=(Value&& other) { return set(other, other.at_), *this; }
void Value::set(const Value& other, const Location& at) {
  if (open_scopes() > depth_)
    fail(
        Code::UnsupportedSyntax, at.line() > 0 ? source_location_of(at) : here(),
        "a Value that was declared outside of this loop or branch of the program is assigned in it",
        "C++ runs the body once, whatever run time does: keep it in 'auto v = alloc_var(f32, 0);', or declare it here");
  node_ = other.node_, at_ = other.at_;
}
DType Value::dtype() const { return ir::Expr(node_)->type; }

// ---- stores

namespace {
void update(const ir::TileRef& to, ir::Operator op, const Operand& value, const Location& at) {
  recording("a store", at).update(op, to, expr_of(value, "an update"));
}
}  // namespace

const Ref& Ref::operator=(const Operand& value) const {
  recording("a store", at_).store(TileAccess::of(*this), expr_of(value, "a store"));
  return *this;
}
const Ref& Ref::operator+=(const Operand& value) const {
  return update(TileAccess::of(*this), ir::Operator::Add, value, at_), *this;
}
const Ref& Ref::operator-=(const Operand& value) const {
  return update(TileAccess::of(*this), ir::Operator::Sub, value, at_), *this;
}
const Ref& Ref::operator*=(const Operand& value) const {
  return update(TileAccess::of(*this), ir::Operator::Mul, value, at_), *this;
}
const Ref& Ref::operator/=(const Operand& value) const {
  return update(TileAccess::of(*this), ir::Operator::Div, value, at_), *this;
}
const Ref& Ref::operator|=(const Operand& value) const {
  return update(TileAccess::of(*this), ir::Operator::BitOr, value, at_), *this;
}
const Ref& Ref::operator&=(const Operand& value) const {
  return update(TileAccess::of(*this), ir::Operator::BitAnd, value, at_), *this;
}
const Ref& Ref::operator^=(const Operand& value) const {
  return update(TileAccess::of(*this), ir::Operator::BitXor, value, at_), *this;
}

const Var& Var::store(const Operand& value) const {
  recording("a store", value.at()).store(scalar_of(buffer_), expr_of(value, "a store"));
  return *this;
}
const Var& Var::operator+=(const Operand& value) const {
  return update(scalar_of(buffer_), ir::Operator::Add, value, value.at()), *this;
}
const Var& Var::operator-=(const Operand& value) const {
  return update(scalar_of(buffer_), ir::Operator::Sub, value, value.at()), *this;
}
const Var& Var::operator*=(const Operand& value) const {
  return update(scalar_of(buffer_), ir::Operator::Mul, value, value.at()), *this;
}
const Var& Var::operator/=(const Operand& value) const {
  return update(scalar_of(buffer_), ir::Operator::Div, value, value.at()), *this;
}
const Var& Var::operator&=(const Operand& value) const {
  return update(scalar_of(buffer_), ir::Operator::BitAnd, value, value.at()), *this;
}
const Var& Var::operator^=(const Operand& value) const {
  return update(scalar_of(buffer_), ir::Operator::BitXor, value, value.at()), *this;
}
const Var& Var::operator|=(const Operand& value) const {
  return update(scalar_of(buffer_), ir::Operator::BitOr, value, value.at()), *this;
}

// ---- operators

Expression&& operator+(const Operand& a, const Operand& b) { return apply(ir::Operator::Add, a, b); }
Expression&& operator-(const Operand& a, const Operand& b) { return apply(ir::Operator::Sub, a, b); }
Expression&& operator*(const Operand& a, const Operand& b) { return apply(ir::Operator::Mul, a, b); }
Expression&& operator/(const Operand& a, const Operand& b) { return apply(ir::Operator::Div, a, b); }
Expression&& operator%(const Operand& a, const Operand& b) { return apply(ir::Operator::FloorMod, a, b); }
Expression&& operator&(const Operand& a, const Operand& b) { return apply(ir::Operator::BitAnd, a, b); }
Expression&& operator|(const Operand& a, const Operand& b) { return apply(ir::Operator::BitOr, a, b); }
Expression&& operator^(const Operand& a, const Operand& b) { return apply(ir::Operator::BitXor, a, b); }
Expression&& operator<<(const Operand& a, const Operand& b) { return apply(ir::Operator::Shl, a, b); }
Expression&& operator>>(const Operand& a, const Operand& b) { return apply(ir::Operator::Shr, a, b); }
Expression&& operator==(const Operand& a, const Operand& b) { return apply(ir::Operator::Eq, a, b); }
Expression&& operator!=(const Operand& a, const Operand& b) { return apply(ir::Operator::Ne, a, b); }
Expression&& operator<(const Operand& a, const Operand& b) { return apply(ir::Operator::Lt, a, b); }
Expression&& operator<=(const Operand& a, const Operand& b) { return apply(ir::Operator::Le, a, b); }
Expression&& operator>(const Operand& a, const Operand& b) { return apply(ir::Operator::Gt, a, b); }
Expression&& operator>=(const Operand& a, const Operand& b) { return apply(ir::Operator::Ge, a, b); }
Expression&& operator&&(const Operand& a, const Operand& b) { return apply_logical(ir::Operator::And, a, b); }
Expression&& operator||(const Operand& a, const Operand& b) { return apply_logical(ir::Operator::Or, a, b); }
Expression&& operator!(const Operand& a) {
  if (is_refused_later(a)) return Expression::make_no_condition(a.node());
  return result(ir::apply_not(expr_of(a, "!"), place_of(a)));
}
Expression&& operator~(const Operand& a) { return result(ir::apply_bit_not(expr_of(a, "~"), place_of(a))); }
Expression&& operator-(const Operand& a) { return result(ir::apply_neg(expr_of(a, "-"), place_of(a))); }

Expression&& floordiv(const Operand& a, const Operand& b) { return apply(ir::Operator::FloorDiv, a, b); }
Expression&& floormod(const Operand& a, const Operand& b) { return apply(ir::Operator::FloorMod, a, b); }
Expression&& truncdiv(const Operand& a, const Operand& b) { return apply(ir::Operator::TruncDiv, a, b); }
Expression&& truncmod(const Operand& a, const Operand& b) { return apply(ir::Operator::TruncMod, a, b); }
Expression&& ceildiv(const Operand& a, const Operand& b) {
  return result(ir::apply_ceildiv(expr_of(a, "ceildiv"), expr_of(b, "ceildiv"), place_of(a)));
}
Expression&& max(const Operand& a, const Operand& b) { return apply(ir::Operator::Max, a, b); }
Expression&& min(const Operand& a, const Operand& b) { return apply(ir::Operator::Min, a, b); }

Expression&& clamp(const Operand& x, const Operand& low, const Operand& high) {
  return scalar_function("clamp", {x, low, high});
}
Expression&& fma(const Operand& a, const Operand& b, const Operand& c) { return scalar_function("fma", {a, b, c}); }
Expression&& if_then_else(const Operand& condition, const Operand& a, const Operand& b) {
  return result(ir::apply_select(expr_of(condition, "if_then_else"), expr_of(a, "if_then_else"),
                                 expr_of(b, "if_then_else"), place_of(condition)));
}
Expression&& cast(const Operand& value, DType dtype) {
  return result(ir::apply_cast(expr_of(value, "cast"), dtype, place_of(value)));
}
Expression&& reinterpret(const Operand& value, DType dtype) {
  return result(ir::apply_bitcast(expr_of(value, "reinterpret"), dtype, place_of(value)));
}
Expression&& address_of(const Ref& element) {
  return result(recording("address_of", TileAccess::place(element)).address(TileAccess::of(element)));
}

Expression&& infinity(DType dtype, Location at) { return result(ir::infinity(dtype, source_location_of(at))); }
Expression&& max_value(DType dtype) { return result(ir::max_value(dtype)); }
Expression&& min_value(DType dtype) { return result(ir::min_value(dtype)); }

Expression&& scalar_function(const std::string& name, std::initializer_list<Operand> args, Location at) {
  std::optional<Function> function = function_named(name);
  if (!function)
    fail(Code::UnknownFunction, source_location_of(at), fmt::format("there is no scalar function '{}'", name),
         "the names are those of C++ where it has the function: exp2, sqrt, fmod, ...");
  const SourceLocation place = args.size() > 0 ? place_of(*args.begin()) : source_location_of(at);
  return result(ir::apply_function(*function, exprs_of(std::vector<Operand>(args), name.c_str()), place));
}

}  // namespace tilewright
