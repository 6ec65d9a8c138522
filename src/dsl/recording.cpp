#include "dsl/recording.h"

#include "support/diagnostic.h"

namespace tilewright {

thread_local ir::Builder* current_builder = nullptr;

ir::Builder* recording_or_null() { return current_builder; }

SourceLocation source_location_of(const Location& at) {
  return {at.file_name(), static_cast<int>(at.line()), static_cast<int>(at.column())};
}

ir::Builder& recording(const char* what, const Location& at) {
  if (!current_builder)
    fail(Code::OutsideProgram, source_location_of(at), fmt::format("{} outside of prim_func", what),
         "write it in the body that prim_func() is given");
  current_builder->set_location(source_location_of(at));
  return *current_builder;
}

// ---- parameters and programs

struct Buffer::Declaration {
  std::string name;
  std::vector<ir::Expr> shape, strides;
  DType dtype;
  Location at;
  const ir::Builder* owner = nullptr;  // the builder whose program takes it, while that is recorded
  uint32_t id = UINT32_MAX;
};

Tensor::Tensor(std::string name, std::vector<Operand> shape, std::vector<Operand> strides, DType dtype, Location at) {
  declaration_ = std::make_shared<Declaration>();
  declaration_->name = std::move(name), declaration_->dtype = dtype, declaration_->at = at;
  declaration_->shape = exprs_of(shape, "an extent"), declaration_->strides = exprs_of(strides, "a stride");
}
Tensor::Tensor(std::string name, std::initializer_list<Operand> shape, DType dtype, Location at)
    : Tensor(std::move(name), std::vector<Operand>(shape), {}, dtype, at) {}
StridedTensor::StridedTensor(std::string name, std::initializer_list<Operand> shape,
                             std::initializer_list<Operand> strides, DType dtype, Location at)
    : Tensor(std::move(name), std::vector<Operand>(shape), std::vector<Operand>(strides), dtype, at) {}

uint32_t Buffer::id(Location at) const {
  if (!declaration_) {
    if (id_ == UINT32_MAX)
      fail(Code::NotAParameter, source_location_of(at), "this buffer was never allocated",
           "initialize it by one of the alloc functions before it is used");
    return id_;
  }
  if (!current_builder || declaration_->owner != current_builder)
    fail(Code::NotAParameter, source_location_of(at),
         fmt::format("tensor '{}' is not a parameter of the program that uses it", declaration_->name),
         "list it in the parameters of prim_func()",
         {{fmt::format("'{}' is declared here", declaration_->name), source_location_of(declaration_->at)}});
  return declaration_->id;
}

Value Buffer::shape(int dim, Location at) const {
  const std::vector<ir::Expr>& shape =
      declaration_ ? declaration_->shape : recording("shape()", at).buffer(ir::BufferId{id(at)}).shape;
  if (dim < 0 || dim >= static_cast<int>(shape.size()))
    fail(Code::ReduceDim, source_location_of(at),
         fmt::format("shape({}) of a buffer of {} dimensions", dim, shape.size()), "dimensions count from 0");
  return Value(shape[static_cast<size_t>(dim)].pointer());
}
DType Buffer::dtype(Location at) const {
  return declaration_ ? declaration_->dtype : recording("dtype()", at).buffer(ir::BufferId{id(at)}).type;
}

Value dynamic(std::string name, DType dtype) { return Value(ir::var(ir::new_free_var(name, dtype), dtype).pointer()); }
Value Scalar(std::string name, DType dtype) { return dynamic(std::move(name), dtype); }

namespace {
// Sets the builder of this thread for the duration of a prim_func; programs may be built while another is.
class Recording {
 public:
  explicit Recording(ir::Builder& builder) : outer_(std::exchange(current_builder, &builder)) {}
  Recording(const Recording&) = delete;
  ~Recording() { current_builder = outer_; }

 private:
  ir::Builder* outer_;
};
}  // namespace

Program prim_func(std::string name, std::initializer_list<Parameter> parameters, const std::function<void()>& body,
                  Location at) {
  ir::Builder builder(std::move(name));
  Recording guard(builder);
  for (const Parameter& p : parameters) {
    builder.set_location(source_location_of(at));
    if (p.scalar_) {
      const auto* v = ir::Expr(p.scalar_).as<ir::Var>();
      if (!v || !ir::is_free_var(v->id))
        fail(Code::NotAParameter, source_location_of(at), "a parameter that is neither a Tensor nor a Scalar",
             "make scalar parameters by Scalar(name, dtype)");
      builder.scalar(v->id);
      continue;
    }
    Buffer::Declaration& d = *p.tensor_;
    builder.set_location(source_location_of(d.at));
    d.id = builder.tensor(d.name, d.shape, d.dtype, {d.strides, {}}).index;
    d.owner = &builder;
  }
  builder.set_location(source_location_of(at));
  body();
  builder.set_location(source_location_of(at));
  return Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{builder.finish()}));
}

void set_contract(bool contract, Location at) { recording("set_contract", at).options().contract = contract; }
void set_fast_math(bool fast, Location at) { recording("set_fast_math", at).options().fast_math = fast; }
void set_tf32(bool tf32, Location at) { recording("set_tf32", at).options().tf32 = tf32; }

// ---- scopes

ScopeGuard::ScopeGuard(int closes, Location at) : closes_(closes), at_(at), exceptions_(std::uncaught_exceptions()) {}

void ScopeGuard::close() {
  open_ = false;
  if (closes_ < 0) {
    recording("the end of a Kernel", at_).close_launch();
    return;
  }
  for (int i = 0; i < closes_; ++i) recording("the end of a loop", at_).close();
}

ScopeGuard::~ScopeGuard() {
  // Left by break, return or goto: an exception may not leave a destructor, so the next statement reports it.
  if (open_ && std::uncaught_exceptions() == exceptions_ && current_builder)
    current_builder->abandon(source_location_of(at_));
}

namespace {
std::vector<ExprPointer> pointers(const std::vector<ir::Expr>& list) {
  std::vector<ExprPointer> out;
  for (const ir::Expr& e : list) out.push_back(e.pointer());
  return out;
}

ScopeRange<1> open_loop(const char* what, const Operand& begin, const Operand& end, ir::LoopOptions options,
                        const Location& at) {
  ir::Builder& b = recording(what, at);
  const std::vector<std::string> names = declared_loop_names(at);
  ir::Expr index =
      b.open_for(names.empty() ? "i" : names[0], expr_of(begin, what), expr_of(end, what), std::move(options));
  return {{index.pointer()}, 1, at};
}

ir::LoopOptions of_kind(ir::LoopKind kind) {
  ir::LoopOptions options;
  options.kind = kind;
  return options;
}
}  // namespace

std::vector<ExprPointer> open_kernel(std::vector<Operand> grid, const KernelOptions& options, Location at) {
  ir::Builder& b = recording("Kernel", at);
  ir::LaunchOptions launch;
  launch.threads = options.threads.extents;
  launch.cluster = options.cluster_dims;
  const std::vector<std::string> names = declared_loop_names(at);
  for (size_t d = 0; d < names.size() && d < launch.block_names.size(); ++d) launch.block_names[d] = names[d];
  return pointers(b.open_launch(exprs_of(grid, "Kernel"), launch));
}

std::vector<ExprPointer> open_parallel(std::vector<Operand> extents, Location at) {
  return pointers(recording("Parallel", at).open_map(declared_loop_names(at), exprs_of(extents, "Parallel")));
}

std::vector<ExprPointer> open_persistent(std::vector<Operand> domain, const Operand& wave_size, const Operand& index,
                                         int64_t group, Location at) {
  return pointers(recording("Persistent", at)
                      .open_persistent(declared_loop_names(at), exprs_of(domain, "Persistent"),
                                       expr_of(wave_size, "Persistent"), expr_of(index, "Persistent"), group));
}

ScopeRange<1> Pipelined(const Operand& extent, PipelineOptions options, Location at) {
  return Pipelined(0, extent, std::move(options), at);
}
ScopeRange<1> Pipelined(const Operand& start, const Operand& stop, PipelineOptions options, Location at) {
  ir::LoopOptions loop = of_kind(ir::LoopKind::Pipelined);
  loop.stages = options.num_stages, loop.order = std::move(options.order), loop.stage = std::move(options.stage);
  return open_loop("Pipelined", start, stop, std::move(loop), at);
}
ScopeRange<1> serial(const Operand& stop, Location at) { return open_loop("serial", 0, stop, {}, at); }
ScopeRange<1> serial(const Operand& start, const Operand& stop, Location at) {
  return open_loop("serial", start, stop, {}, at);
}
ScopeRange<1> serial(const Operand& start, const Operand& stop, const Operand& step, Location at) {
  ir::LoopOptions loop;
  loop.step = expr_of(step, "serial");
  return open_loop("serial", start, stop, std::move(loop), at);
}
ScopeRange<1> unroll(const Operand& stop, Location at) {
  return open_loop("unroll", 0, stop, of_kind(ir::LoopKind::Unroll), at);
}
ScopeRange<1> unroll(const Operand& start, const Operand& stop, Location at) {
  return open_loop("unroll", start, stop, of_kind(ir::LoopKind::Unroll), at);
}
ScopeRange<1> vectorized(const Operand& stop, Location at) {
  return open_loop("vectorized", 0, stop, of_kind(ir::LoopKind::Vectorized), at);
}

IfChain If(const Operand& condition, const Block& body, Location at) {
  ir::Builder& b = recording("If", at);
  b.open_if(expr_of(condition, "If"));
  body();
  b.close();
  return IfChain(0);
}
void IfChain::Else(const Block& body, Location at) const {
  ir::Builder& b = recording("Else", at);
  b.open_else();
  body();
  b.close();
}
IfChain IfChain::ElseIf(const Operand& condition, const Block& body, Location at) const {
  ir::Builder& b = recording("ElseIf", at);
  b.open_else();
  b.open_if(expr_of(condition, "ElseIf"));
  body();
  b.close();
  return IfChain(std::exchange(depth_, 0) + 1);
}
IfChain::~IfChain() {
  for (; depth_ > 0 && current_builder; --depth_) current_builder->close();
}

void While(const Operand& condition, const Block& body, Location at) {
  ir::Builder& b = recording("While", at);
  b.open_while(expr_of(condition, "While"));
  body();
  b.close();
}

void ws(std::initializer_list<int64_t> groups, const Block& body, Location at) {
  ir::Builder& b = recording("ws", at);
  b.open_groups(groups);
  body();
  b.close();
}
void on_threads(int64_t begin, int64_t end, const Block& body, Location at) {
  ir::Builder& b = recording("on_threads", at);
  b.open_role(begin, end);
  body();
  b.close();
}
void break_loop(Location at) { recording("break_loop", at).break_loop(); }
void continue_loop(Location at) { recording("continue_loop", at).continue_loop(); }
void thread_return(Location at) { recording("thread_return", at).return_thread(); }

}  // namespace tilewright
