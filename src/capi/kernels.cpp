// The functions of tilewright/c_api.h on kernels: compiling, calling, and the shapes of outputs.
#include <cstddef>
#include <memory_resource>

#include "capi/handles.h"
#include "driver/arguments.h"
#include "driver/cuda_engine.h"
#include "driver/simulator_engine.h"
#include "driver/timeline_json.h"
#include "ir/rewrite.h"
#include "runtime/executable.h"
#include "scalar/dtype_rows.h"
#include "tilewright/check.h"
#include "tilewright/compile.h"
#include "tilewright/cuda.h"

using namespace tilewright;
using capi::guarded;

static_assert(sizeof(tw_tensor) == 48, "DLPack's DLTensor");

namespace {

Engine engine_named(std::string_view name) {
  if (name == "cpu") return Engine::Cpu;
  if (name == "interpreter") return Engine::Interpreter;
  if (name == "simulator") return Engine::Simulator;
  if (name == "cuda") return Engine::Cuda;
  if (name == "host") return Engine::Auto;  // whose tensors no device reaches
  if (name != "auto" && !name.empty())
    fail(Code::EngineUnknown, {}, fmt::format("there is no engine '{}'", name),
         "it is auto, cpu, interpreter, simulator or cuda");
  const char* wish = std::getenv("TILEWRIGHT_ENGINE");
  const bool open = !wish || !*wish || std::string_view(wish) == "auto";
  return open && cuda::device_count() > 0 ? Engine::Cuda : Engine::Auto;
}

DType dtype_of(const tw_tensor& t) {
  const uint16_t lanes = t.type_bits < 8 ? 1 : t.type_lanes;  // pairs of what is wanted are none for this
  if (const auto type = dtype_of_dlpack(t.type_code, t.type_bits, lanes)) return *type;
  fail(Code::DlpackInvalid, {},
       t.type_code == 5 ? fmt::format("a tensor of complex numbers of {} bits has no dtype here", t.type_bits)
                        : fmt::format("a tensor of DLPack type code {}, {} bits, {} lanes has no dtype here",
                                      t.type_code, t.type_bits, t.type_lanes),
       t.type_code == 5
           ? "pass its parts, torch.view_as_real(x) or x.view(numpy.float32), as a tensor with one more dimension of 2"
           : "reinterpret it as integers of that width");
}

// Whether bytes stand for two elements of 4 bits each: so libraries have them that know no such type, or one of pairs.
bool holds_pairs(const tw_tensor& t, DType wanted) {
  if (!wanted.is_packed() || t.rank == 0 || (t.strides && t.shape[t.rank - 1] > 1 && t.strides[t.rank - 1] != 1))
    return false;
  const bool bytes = t.type_code <= 1 && t.type_bits == 8 && t.type_lanes == 1;
  return bytes || (t.type_bits == 4 && t.type_lanes == 2);
}

// Whether bytes stand for the codes of a narrow float that few libraries know.
bool holds_codes(const tw_tensor& t, DType wanted) {
  const DTypeRow* row = dtype_row(wanted);
  return row && row->as_bytes && dtype_of_dlpack(t.type_code, t.type_bits, t.type_lanes) == u8;
}

NDArray array_of(const tw_tensor& t, DType wanted = {}) {
  const auto rank = static_cast<size_t>(t.rank);
  if (holds_pairs(t, wanted)) {
    std::vector<int64_t> shape(t.shape, t.shape + rank), strides;
    shape.back() *= 2;
    if (t.strides) strides.assign(t.strides, t.strides + rank);
    for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] *= 2;
    return NDArray::borrow(t.data, shape, wanted, strides, static_cast<int64_t>(t.byte_offset), {},
                           {t.device_type, t.device_index});
  }
  return NDArray::borrow(t.data, {t.shape, rank}, holds_codes(t, wanted) ? wanted : dtype_of(t),
                         t.strides ? std::span<const int64_t>(t.strides, rank) : std::span<const int64_t>(),
                         static_cast<int64_t>(t.byte_offset), {}, {t.device_type, t.device_index});
}

// The arguments of a call. The arrays stay where they are: arguments point at them. Few arrays need no memory of the
// heap.
class Call {
 public:
  Call(const runtime::LaunchPlan& plan, const tw_argument* arguments, size_t count) {
    arrays_.reserve(count);
    if (count > kFew) many_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const tw_argument& a = arguments[i];
      switch (a.kind) {
        case TW_TENSOR:
          arrays_.push_back(array_of(*a.as.tensor, i < plan.parameters.size() ? plan.parameters[i].dtype : DType{}));
          add(arrays_.back());
          break;
        case TW_BOOL:
        case TW_INT: add(a.as.integer); break;
        case TW_UINT: add(static_cast<uint64_t>(a.as.integer)); break;
        case TW_FLOAT: add(a.as.number); break;
        default: add(nullptr);
      }
    }
  }
  std::span<const Argument> arguments() const {
    return many_.empty() ? std::span(reinterpret_cast<const Argument*>(few_), count_) : many_;
  }

 private:
  static_assert(std::is_trivially_destructible_v<Argument>);
  static constexpr size_t kFew = 8;
  template <class T>
  void add(const T& value) {
    if (many_.capacity() > 0)
      many_.emplace_back(value);
    else
      new (few_ + count_++ * sizeof(Argument)) Argument(value);
  }
  alignas(std::max_align_t) std::byte room_[kFew * sizeof(NDArray)];
  std::pmr::monotonic_buffer_resource memory_{room_, sizeof room_};
  std::pmr::vector<NDArray> arrays_{&memory_};
  alignas(Argument) std::byte few_[kFew * sizeof(Argument)];
  std::vector<Argument> many_;
  size_t count_ = 0;
};

// The value of symbol `number` from a tensor that is there, where the symbols that its equation uses are known.
std::optional<int64_t> solve(const runtime::LaunchPlan& plan, std::span<const Argument> arguments, size_t number,
                             const std::vector<std::optional<int64_t>>& known, std::span<const int64_t> scalars) {
  std::vector<int64_t> symbols;
  for (const std::optional<int64_t>& value : known) symbols.push_back(value.value_or(0));
  const auto by = [&](const runtime::Equation& e) -> std::optional<int64_t> {
    const Argument& argument = arguments[static_cast<size_t>(e.parameter)];
    if (argument.kind() != Argument::Kind::Tensor || e.dim >= argument.tensor().rank()) return {};
    for (const runtime::IntOp& op : e.rest.ops)
      if (op.kind == runtime::IntOp::Kind::Symbol && !known[static_cast<size_t>(op.value)]) return {};
    const NDArray& t = argument.tensor();
    const int64_t value = e.source == runtime::Equation::Source::Shape ? t.shape(e.dim) : t.stride(e.dim);
    int64_t rest = 0, difference = 0;
    if (!e.rest.ops.empty() && !evaluate(e.rest, symbols, scalars, rest)) return {};
    if (__builtin_sub_overflow(value, rest, &difference) || difference == INT64_MIN) return {};
    if (difference % e.coefficient != 0) return {};
    return difference / e.coefficient;
  };
  if (auto value = by(plan.symbols[number])) return value;
  for (const runtime::Equation& e : plan.symbols[number].others)
    if (auto value = by(e)) return value;
  return {};
}

void output_shape(const runtime::LaunchPlan& plan, std::span<const Argument> arguments, size_t parameter,
                  int64_t* shape) {
  const runtime::Parameter& p = plan.parameters[parameter];
  if (arguments.size() != plan.parameters.size() || p.kind != runtime::Parameter::Kind::Tensor)
    fail(Code::ArgumentCount, {},
         fmt::format("{}: {} arguments for the shape of parameter {}", plan.name, arguments.size(), parameter));
  std::vector<int64_t> scalars;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (plan.parameters[i].kind == runtime::Parameter::Kind::Scalar)
      scalars.push_back(arguments[i].kind() == Argument::Kind::Int ? arguments[i].integer() : 0);
  std::vector<std::optional<int64_t>> known(plan.symbols.size());
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < known.size(); ++i)
      if (!known[i] && (known[i] = solve(plan, arguments, i, known, scalars))) again = true;
  }
  std::vector<int64_t> symbols;
  for (const std::optional<int64_t>& value : known) symbols.push_back(value.value_or(0));
  for (size_t d = 0; d < p.shape.size(); ++d) {
    for (const runtime::IntOp& op : p.shape[d].ops)
      if (op.kind == runtime::IntOp::Kind::Symbol && !known[static_cast<size_t>(op.value)])
        fail(Code::SymbolUnsolvable, {},
             fmt::format("{}: dimension {} of output '{}' needs '{}', which no given tensor has", plan.name, d, p.name,
                         plan.symbols[static_cast<size_t>(op.value)].name),
             "pass the output as an argument, or give an input that dimension");
    if (!evaluate(p.shape[d], symbols, scalars, shape[d]) || shape[d] < 0)
      fail(Code::ExpressionOverflow, {},
           fmt::format("{}: dimension {} of output '{}' has no value", plan.name, d, p.name));
  }
}

}  // namespace

extern "C" {

tw_error* tw_compile(const tw_program* program, const char* engine, const char* arch, tw_kernel** out) {
  return guarded([&] {
    constexpr std::string_view kCheck = "check ";
    std::string_view name = engine;
    const bool checked = name.starts_with(kCheck);
    if (checked) name.remove_prefix(kCheck.size());
    const CompileOptions options{engine_named(name), arch};
    Executable made = checked ? compile_checked(program->program, options) : compile(program->program, options);
    *out = new tw_kernel{std::move(made), program->program, arch};
  });
}
tw_error* tw_compile_counting(const tw_program* program, const char* arch, tw_kernel** out) {
  return tw_compile_simulated(program, arch, 0, out);
}
tw_error* tw_compile_simulated(const tw_program* program, const char* arch, int trace, tw_kernel** out) {
  return guarded([&] {
    const ir::TileProgram& p = program->program.box().program;
    auto counts = std::make_shared<capi::Counts>();
    simulator::SimulateOptions options;
    options.target = gpu_target(arch);
    const auto keep = [counts, name = p.name](const std::vector<simulator::LaunchReport>& reports,
                                              const simulator::Timeline* timeline) {
      std::lock_guard lock(counts->mutex);
      counts->json = to_json(name, reports);
      if (timeline) counts->trace = to_json(*timeline);
    };
    Executable executable = counting_executable(p, options, keep, trace != 0);
    *out = new tw_kernel{std::move(executable), program->program, arch, std::move(counts)};
  });
}
tw_error* tw_kernel_counts(const tw_kernel* kernel, tw_text** out) {
  return guarded([&] {
    *out = new tw_text{};
    if (!kernel->counts) return;
    std::lock_guard lock(kernel->counts->mutex);
    (*out)->text = kernel->counts->json;
  });
}
tw_error* tw_kernel_trace(const tw_kernel* kernel, tw_text** out) {
  return guarded([&] {
    *out = new tw_text{};
    if (!kernel->counts) return;
    std::lock_guard lock(kernel->counts->mutex);
    (*out)->text = kernel->counts->trace;
  });
}
void tw_kernel_release(tw_kernel* kernel) { delete kernel; }
const char* tw_kernel_name(const tw_kernel* kernel) { return kernel->executable.name().c_str(); }
const char* tw_kernel_engine(const tw_kernel* kernel) { return kernel->executable.engine().c_str(); }
const char* tw_kernel_source(const tw_kernel* kernel) { return kernel->executable.source().c_str(); }
int tw_kernel_assumption_count(const tw_kernel* kernel) {
  return static_cast<int>(kernel->executable.assumptions().size());
}
const char* tw_kernel_assumption(const tw_kernel* kernel, int index) {
  return kernel->executable.assumptions()[static_cast<size_t>(index)].c_str();
}
int64_t tw_kernel_general_calls(const tw_kernel* kernel) { return kernel->executable.general_calls(); }
int tw_kernel_parameter_count(const tw_kernel* kernel) { return static_cast<int>(kernel->plan().parameters.size()); }
tw_parameter tw_kernel_parameter(const tw_kernel* kernel, int index) {
  const runtime::Parameter& p = kernel->plan().parameters[static_cast<size_t>(index)];
  return {p.name.c_str(), capi::lasting_name(p.dtype), p.kind == runtime::Parameter::Kind::Tensor,
          static_cast<int>(p.shape.size())};
}
int tw_kernel_writes(const tw_kernel* kernel, int index) {
  const ir::TileProgram& program = kernel->program.box().program;
  const ir::BufferId buffer = program.params[static_cast<size_t>(index)].buffer;
  for (const ir::Launch& launch : program.launches) {  // who has its address may do so too
    bool shared = false;
    ir::walk_exprs(launch.body, [&](const ir::Expr& e) {
      if (const auto* address = e.as<ir::Address>()) shared = shared || program.root(address->buffer) == buffer;
    });
    if (shared) return TW_WRITES;
  }
  if (added_to_parameters(program).contains(buffer)) return TW_ADDS;
  return written_parameters(program).contains(buffer) ? TW_WRITES : TW_LEAVES;
}

tw_error* tw_kernel_call(tw_kernel* kernel, const tw_argument* arguments, size_t count) {
  return guarded([&] {
    const runtime::LoadedProgram& program = kernel->executable.program();
    runtime::BoundCall bound;
    if (kernel->last.bind(program, arguments, count, bound)) return run_bound(program, program.first(), bound);
    const Call call(program.plan(), arguments, count);
    if (run_call(program, call.arguments(), bound) == &program.first())
      kernel->last.keep(program, arguments, count, bound);
  });
}
tw_error* tw_kernel_shape(tw_kernel* kernel, const tw_argument* arguments, size_t count, int parameter,
                          int64_t* shape) {
  return guarded([&] {
    const Call call(kernel->plan(), arguments, count);
    output_shape(kernel->plan(), call.arguments(), static_cast<size_t>(parameter), shape);
  });
}

int tw_cuda_device_count() {
  int count = 0;
  tw_error* error = guarded([&] { count = cuda::device_count(); });
  if (error) tw_error_release(error);
  return count;
}
void tw_cuda_set_stream(void* stream) { cuda::set_stream(stream); }

}  // extern "C"
