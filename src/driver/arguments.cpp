#include "driver/arguments.h"

#include "driver/build_plan.h"
#include "driver/fuzz/random.h"
#include "ir/effects.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "runtime/scalar_value.h"
#include "support/diagnostic.h"
#include "support/symbol_room.h"

namespace tilewright {
namespace {

std::set<ir::BufferId> parameters_with(const ir::TileProgram& program, bool writes) {
  std::set<ir::BufferId> out;
  for (const ir::Launch& launch : program.launches)
    ir::walk(launch.body, [&](const ir::Stmt& s) {
      for (const ir::Effect& e : ir::effects_of(s).list) {
        const bool wanted = writes ? e.access == ir::Access::Write || e.access == ir::Access::Accumulate
                                   : e.access == ir::Access::Read || e.access == ir::Access::Accumulate;
        if (wanted && e.region.valid()) out.insert(program.root(e.region.buffer));
      }
    });
  return out;
}

}  // namespace

NamedValues symbol_values(const ir::TileProgram& program, const std::vector<std::vector<int64_t>>& shapes) {
  NamedValues out;
  size_t next = 0;
  for (const ir::Param& p : program.params) {
    if (!p.is_tensor()) continue;
    const std::vector<int64_t>& shape = shapes.at(next++);
    const ir::Buffer& b = program.buffer(p.buffer);
    for (size_t d = 0; d < shape.size() && d < b.shape.size(); ++d)
      if (const auto* symbol = b.shape[d].as<ir::Var>()) out[program.var(symbol->id).name] = shape[d];
  }
  return out;
}

namespace {

// What the values mean to the program's own expressions.
class GivenValues {
 public:
  GivenValues(const ir::TileProgram& program, const NamedValues& values) : program_(program), values_(values) {
    for (ir::VarId id : program.symbols) take(id, symbols_);
    for (const ir::Param& p : program.params)
      if (!p.is_tensor()) take(p.var, scalars_);
  }

  void check() const {
    for (const auto& [name, value] : values_) check(name, value);
    for (const ir::Param& p : program_.params)
      if (p.is_tensor()) check_shape(program_.buffer(p.buffer));
    for (const ir::Assumption& a : program_.assumptions)
      if (is_given(a.condition) && computed(a.condition, a.location).value_or(1) == 0)
        fail(Code::AssumptionFailed, program_.location(a.location),
             fmt::format("{}: Assume: {} does not hold ({})", program_.name, ir::print(a.condition, program_),
                         inputs(a.condition)));
  }

 private:
  void take(ir::VarId id, std::vector<int64_t>& into) {
    const ir::VarInfo& v = program_.var(id);
    const auto at = values_.find(v.name);
    types_[v.name] = v.type;
    if (&into == &symbols_) named_symbols_.insert(v.name);
    if (at != values_.end() && v.type.is_integral()) given_.insert(id);
    into.push_back(at == values_.end() ? 0 : at->second);
  }

  void check(const std::string& name, int64_t value) const {
    const auto type = types_.find(name);
    if (type == types_.end()) {
      std::vector<std::string> known;
      for (const auto& [other, t] : types_) known.push_back(other);
      fail(Code::BadOption, {}, fmt::format("'{}' has no symbol or number '{}'", program_.name, name),
           known.empty() ? "it takes tensors of known shapes alone" : fmt::format("it has {}", fmt::join(known, ", ")));
    }
    const DType t = type->second;
    if (!t.is_integral()) return;
    const bool fits = t.is_bool() ? value == 0 || value == 1 : runtime::integer_fits(t, value);
    const bool symbol = named_symbols_.contains(name);
    const bool has_room = !symbol || value < 0 || runtime::integer_fits(t, value + kSymbolRoom);
    if (fits && has_room) return;
    fail(Code::ScalarRange, {},
         fmt::format("{}: {} = {} {}", program_.name, name, value,
                     fits ? fmt::format("leaves no room in {} to round it up", t.name())
                          : fmt::format("does not fit {}", t.name())),
         symbol && t.bits < 64 && value > 0
             ? fmt::format("give a smaller value, or declare it with 64 bits: T.dynamic(\"{}\", \"int64\") in Python",
                           name)
             : "");
  }

  void check_shape(const ir::Buffer& b) const {
    for (size_t d = 0; d < b.shape.size(); ++d) {
      if (!is_given(b.shape[d]) || ir::used_vars(b.shape[d]).empty()) continue;
      const std::optional<int64_t> extent = computed(b.shape[d], b.location);
      if (!extent)
        fail(Code::ExpressionOverflow, program_.location(b.location),
             fmt::format("{}: dimension {} of '{}' is {}, which does not fit its type ({})", program_.name, d, b.name,
                         ir::print(b.shape[d], program_), inputs(b.shape[d])));
      if (*extent < 0)
        fail(Code::ArrayInvalid, program_.location(b.location),
             fmt::format("{}: dimension {} of '{}' would be {} ({})", program_.name, d, b.name, *extent,
                         inputs(b.shape[d])),
             "give values that a call can have");
    }
  }

  bool is_given(const ir::Expr& e) const {
    return std::ranges::all_of(ir::used_vars(e), [&](ir::VarId id) { return given_.contains(id); });
  }
  std::optional<int64_t> computed(const ir::Expr& e, ir::LocationId at) const {
    int64_t out = 0;
    return runtime::evaluate(host_expression(e, at, program_), symbols_, scalars_, out) ? std::optional(out)
                                                                                        : std::nullopt;
  }
  std::string inputs(const ir::Expr& e) const {
    std::vector<std::string> out;
    for (ir::VarId id : ir::used_vars(e))
      out.push_back(fmt::format("{} = {}", program_.var(id).name, values_.at(program_.var(id).name)));
    return fmt::format("{}", fmt::join(out, ", "));
  }

  const ir::TileProgram& program_;
  const NamedValues& values_;
  std::map<std::string, DType> types_;
  std::set<std::string> named_symbols_;
  std::set<ir::VarId> given_;
  std::vector<int64_t> symbols_, scalars_;
};

}  // namespace

void check_values(const ir::TileProgram& program, const NamedValues& values) { GivenValues(program, values).check(); }

ir::Substitution known_values(const ir::TileProgram& program, const NamedValues& values) {
  ir::Substitution out;
  const auto note = [&](ir::VarId id) {
    const ir::VarInfo& var = program.var(id);
    if (const auto at = values.find(var.name); at != values.end() && var.type.is_int())
      out[id] = ir::constant(var.type, at->second);
  };
  for (ir::VarId id : program.symbols) note(id);
  for (const ir::Param& p : program.params)
    if (!p.is_tensor()) note(p.var);
  return out;
}

std::optional<int64_t> value_of(const ir::Expr& e, const ir::TileProgram& program, const NamedValues& values) {
  ir::Substitution map;
  for (ir::VarId id : ir::used_vars(e)) {
    const auto at = values.find(program.var(id).name);
    if (at == values.end()) return std::nullopt;
    map[id] = ir::constant(program.var(id).type, at->second);
  }
  return ir::constant_int(map.empty() ? e : ir::substitute(e, map));
}

std::set<ir::BufferId> read_parameters(const ir::TileProgram& program) { return parameters_with(program, false); }
std::set<ir::BufferId> written_parameters(const ir::TileProgram& program) { return parameters_with(program, true); }

std::set<ir::BufferId> added_to_parameters(const ir::TileProgram& program) {
  std::set<ir::BufferId> changed, begun;
  for (const ir::Launch& launch : program.launches)
    ir::walk(launch.body, [&](const ir::Stmt& s) {
      std::set<ir::BufferId> reads, writes;
      for (const ir::Effect& e : ir::effects_of(s).list) {
        if (!e.region.valid()) continue;
        const ir::BufferId buffer = program.root(e.region.buffer);
        const bool anew = e.update && *e.update > ir::AtomicOp::Xor;  // an exchange
        if (e.access == ir::Access::Read) reads.insert(buffer);
        if (e.access == ir::Access::Accumulate) (anew ? writes : changed).insert(buffer);
        if (e.access == ir::Access::Write) writes.insert(buffer);
      }
      for (ir::BufferId buffer : writes) (reads.contains(buffer) ? changed : begun).insert(buffer);
    });
  std::erase_if(changed, [&](ir::BufferId buffer) { return begun.contains(buffer); });
  return changed;
}

void fill_random(const NDArray& array, uint64_t seed) {
  fuzz::Random random(seed);
  const auto n = static_cast<size_t>(array.size());
  const DType type = array.dtype();
  if (type.is_float()) {
    std::vector<double> values(n);
    for (double& v : values)
      v = type.kind == Kind::Float8E8M0 ? std::ldexp(1.0, static_cast<int>(random.between(-4, 4)))
                                        : static_cast<double>(random.next() >> 11) * 0x1p-52 - 1;
    return array.assign_floats(values);
  }
  std::vector<int64_t> values(n);
  for (int64_t& v : values)
    v = type.is_bool() ? random.below(2) : type.is_signed() ? random.between(-8, 7) : random.below(8);
  array.assign_ints(values);
}

std::vector<NDArray> random_arguments(const ir::TileProgram& program, const NamedValues& values, uint64_t seed) {
  const std::set<ir::BufferId> read = read_parameters(program);
  std::vector<NDArray> arrays;
  for (const ir::Param& p : program.params) {
    if (!p.is_tensor()) continue;
    const ir::Buffer& b = program.buffer(p.buffer);
    std::vector<int64_t> shape;
    for (const ir::Expr& e : b.shape) {
      const std::optional<int64_t> extent = value_of(e, program, values);
      check_internal(extent, "the shape of '{}' is not known", b.name);
      shape.push_back(*extent);
    }
    NDArray array = NDArray::zeros(shape, b.type);
    if (read.contains(p.buffer)) fill_random(array, seed * 1000003 + arrays.size());
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace tilewright
