#include "codegen/cpu_kernel.h"

#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "passes/canonicalize.h"

namespace tilewright {

CpuKernelUnderTest::CpuKernelUnderTest(const Program& program) {
  Dump dump(program.name());
  kernel_ = build_cpu(passes::canonicalize(program.box().program), dump);
  plan_.name = program.name();
  plan_.sites = kernel_.sites;
}

void CpuKernelUnderTest::run(const std::vector<NDArray>& arrays, const std::vector<int64_t>& integers) const {
  runtime::BoundCall call;
  call.plan = &plan_;
  for (const NDArray& a : arrays) call.buffers[static_cast<size_t>(call.buffer_count++)] = a.data();
  for (int64_t i : integers) call.integers[static_cast<size_t>(call.integer_count++)] = i;
  runtime::CallReport report(plan_);
  kernel_.callee->run(call, report);
  report.throw_if_failed();
}

NDArray ramp(std::initializer_list<int64_t> shape, DType type, double scale) {
  NDArray a = NDArray::zeros(shape, type);
  std::vector<double> floats;
  std::vector<int64_t> ints;
  for (int64_t i = 0; i < a.size(); ++i) {
    floats.push_back(scale * static_cast<double>(i % 97 - 40));
    ints.push_back(type.is_bool()
                       ? i % 3 == 0
                       : (type.bits == 4 ? i % 8 - (type.is_signed() ? 4 : 0) : i % 97 - (type.is_signed() ? 40 : 0)));
  }
  type.is_float() ? a.assign_floats(floats) : a.assign_ints(ints);
  return a;
}

namespace {

void interpret(const ir::TileProgram& p, const std::vector<NDArray>& arrays, const std::vector<int64_t>& integers) {
  interpreter::Binding binding;
  size_t buffer = 0, integer = 0;
  auto value = [&](ir::VarId v) {
    const int64_t word = integers[integer++];
    const DType type = p.var(v).type;
    const bool narrow = type.is_float() && type.bits < 64;
    const double widened = std::bit_cast<float>(static_cast<uint32_t>(word));
    binding.values.emplace_back(v, narrow ? std::bit_cast<uint64_t>(widened) : static_cast<uint64_t>(word));
  };
  for (ir::VarId v : p.symbols) value(v);
  for (const ir::Param& param : p.params)
    if (param.is_tensor())
      binding.buffers.push_back({param.buffer, arrays[buffer++].data()});
    else
      value(param.var);
  for (uint32_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers[i].workspace) binding.buffers.push_back({{i}, arrays[buffer++].data()});
  interpreter::interpret(p, binding);
}

}  // namespace

std::vector<NDArray> expect_same(const Program& program, const std::vector<NDArray>& arrays,
                                 const std::vector<int64_t>& integers, double bound) {
  std::vector<NDArray> expected, actual;
  for (const NDArray& a : arrays) expected.push_back(a.clone()), actual.push_back(a.clone());
  interpret(passes::canonicalize(program.box().program), expected, integers);
  const CpuKernelUnderTest kernel(program);
  kernel.run(actual, integers);
  for (size_t a = 0; a < arrays.size(); ++a) {
    const std::vector<double> x = expected[a].to_floats(), y = actual[a].to_floats();
    double largest = 0;
    for (double v : x) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < x.size(); ++i) {
      const bool same = bound > 0 ? std::abs(x[i] - y[i]) <= bound * largest
                                  : std::bit_cast<uint64_t>(x[i]) == std::bit_cast<uint64_t>(y[i]);
      if (same || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
      ADD_FAILURE() << "array " << a << ", element " << i << ": the interpreter has " << x[i] << ", the CPU " << y[i]
                    << "\n"
                    << kernel.text().substr(kernel.text().find("static void tw_"));
      return actual;
    }
  }
  return actual;
}

std::string cpu_text_of(const Program& program, const runtime::ProcessorFeatures& features) {
  Dump dump(program.name());
  return write_cpu(passes::canonicalize(program.box().program), features, dump).text;
}

}  // namespace tilewright
