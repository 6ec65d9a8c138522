// Parameters, allocations, views, and what is said about buffers.
#include "capi/operations.h"
#include "support/diagnostic.h"

namespace tilewright::capi {
namespace {

Result allocate(const Operation& op, const Operands& o) {
  return o.builder().alloc(static_cast<ir::Space>(op.variant), "", o.exprs(0), o.dtype(1));
}

// Memory of a thread starts undefined; a variable does not: it is zero unless said otherwise.
Result alloc_var(const Operation&, const Operands& o) {
  const DType type = o.dtype(0);
  ir::Builder& b = o.builder();
  ir::Expr init = o.given(1) ? o.expr(1) : ir::constant(type, int64_t{0});
  if (const auto number = o.number(1); number && type.is_float()) {
    init = ir::constant(type, *number);
    if (std::isfinite(*number) && !std::isfinite(*ir::constant_float(init)))
      fail(Code::BadOption, o.place(), fmt::format("alloc_var: {} exceeds maximum of {}", *number, type.name()),
           "give a value that the dtype can hold, or T.infinity(dtype)");
  }
  const ir::BufferId id = b.alloc(ir::Space::Local, "var", {}, type);
  b.store({id, {}, true}, init);
  return id;
}

Result annotate_layout(const Operation&, const Operands& o) {
  ir::LayoutAnnotation layout;
  layout.kind = static_cast<ir::LayoutHint>(1 + o.word(1, {"linear", "swizzled", "function"}));
  for (const ir::Expr& e : o.exprs(2)) {
    const auto* v = e.as<ir::Var>();
    if (!v) fail(Code::LayoutFunction, o.place(), "annotate_layout: an index of the layout is no variable");
    layout.vars.push_back(v->id);
  }
  layout.image = o.exprs(3);
  layout.replicate = o.integer(4, 1);
  o.builder().annotate_layout(o.buffer(0), std::move(layout));
  return {};
}

Result tensor(const Operation&, const Operands& o) {
  return o.builder().tensor(o.text(0), o.exprs(1), o.dtype(2), {o.exprs(3), {}});
}

Result scalar_parameter(const Operation&, const Operands& o) {
  const auto* v = o.expr(0).as<ir::Var>();
  if (!v || !ir::is_free_var(v->id))
    fail(Code::NotAParameter, o.place(), "a scalar parameter that is not made by dynamic_symbol");
  o.builder().scalar(v->id);
  return {};
}

Result view(const Operation&, const Operands& o) {
  const ir::BufferId source = o.buffer(0);
  const ir::Buffer& from = o.builder().buffer(source);
  return o.builder().view("", source, o.given(1) ? o.exprs(1) : from.shape, o.given(2) ? o.dtype(2) : from.type,
                          o.exprs(3));
}

Result make_tensor(const Operation&, const Operands& o) {
  return o.builder().tensor_at("", o.expr(0), o.exprs(1), o.dtype(2), o.exprs(3));
}

}  // namespace

void add_buffer_operations(std::vector<Operation>& table) {
  const std::vector<Operation> rows = {
      {"tensor", "scope", "name: text, shape: exprs, dtype: dtype, strides: exprs = None", "A tensor parameter.",
       tensor},
      {"scalar_parameter", "scope", "symbol: expr", "A scalar parameter.", scalar_parameter},
      {"rename", "scope", "buffer: buffer, name: text", "Gives a buffer the name of the variable that holds it.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().rename(o.buffer(0), o.text(1));
         return {};
       }},
      {"shape_of", "scope", "buffer: buffer", "The extents of a buffer.",
       [](const Operation&, const Operands& o) -> Result { return Exprs(o.builder().buffer(o.buffer(0)).shape); }},
      {"strides_of", "scope", "buffer: buffer", "The strides of a buffer; none if it is row-major and compact.",
       [](const Operation&, const Operands& o) -> Result { return Exprs(o.builder().buffer(o.buffer(0)).strides); }},
      {"dtype_of", "scope", "buffer: buffer", "The dtype of a buffer.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().buffer(o.buffer(0)).type.name(); }},
      {"space_of", "scope", "buffer: buffer", "Where a buffer lives: global, shared, fragment, local, barrier.",
       [](const Operation&, const Operands& o) -> Result {
         return std::string(ir::name_of(o.builder().buffer(o.buffer(0)).space));
       }},
      {"name_of", "scope", "buffer: buffer", "The name of a buffer.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().buffer(o.buffer(0)).name; }},
      {"alloc_shared", "buffer", "shape: exprs, dtype: dtype, scope: ignored = 'shared.dyn'",
       "A tile in the shared memory of the block.", allocate, static_cast<int>(ir::Space::Shared)},
      {"alloc_fragment", "buffer", "shape: exprs, dtype: dtype, scope: ignored = 'local.fragment'",
       "A tile of the block, spread over the registers of its threads.", allocate,
       static_cast<int>(ir::Space::Fragment)},
      {"alloc_local", "buffer", "shape: exprs, dtype: dtype, scope: ignored = 'local'", "An array of each thread.",
       allocate, static_cast<int>(ir::Space::Local)},
      {"alloc_global", "buffer", "shape: exprs, dtype: dtype, scope: ignored = 'global'",
       "Global scratch that only this program sees.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().workspace("", o.exprs(0), o.dtype(1)); }},
      {"alloc_scalar", "scope", "dtype: dtype, init: expr = None", "A scalar variable of each thread.", alloc_var},
      {"alloc_barrier", "buffer", "arrive_count: list", "mbarriers, one for each count of arrivals.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().alloc_barrier("", o.integers(0)); }},
      {"alloc_reducer", "buffer", "shape: exprs, dtype: dtype, op: text = 'sum', replication: ignored = None",
       "A tile that points of Parallel add to; finalize_reducer makes it readable.",
       [](const Operation&, const Operands& o) -> Result {
         constexpr ir::ReduceOp kOps[] = {ir::ReduceOp::Sum, ir::ReduceOp::Max, ir::ReduceOp::Min};
         return o.builder().alloc_reducer("", o.exprs(0), o.dtype(1), kOps[o.word(2, {"sum", "max", "min"})]);
       }},
      {"reshape", "buffer", "src: buffer, shape: exprs", "The same memory under another shape.", view},
      {"view", "buffer", "src: buffer, shape: exprs = None, dtype: dtype = None, strides: exprs = None",
       "The same memory under another shape and dtype of as many bits.", view},
      {"make_tensor", "buffer", "ptr: expr, shape: exprs, dtype: dtype = 'float32', strides: exprs = None",
       "A global tensor at an address.", make_tensor},
      {"layout_index", "scope", "name: text", "A variable of a layout function.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().layout_index(o.text(0), i32); }},
      {"set_layout", "scope", "buffer: buffer, kind: text, vars: exprs = None, image: exprs = None, replicate: int = 1",
       "Where the elements of a tile lie: linear, swizzled, or a function of the index.", annotate_layout},
      {"set_safe_value", "scope", "buffer: buffer, value: expr", "What reads outside of a global tensor give.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().annotate_fill(o.buffer(0), o.expr(1));
         return {};
       }},
  };
  table.insert(table.end(), rows.begin(), rows.end());
}

}  // namespace tilewright::capi
