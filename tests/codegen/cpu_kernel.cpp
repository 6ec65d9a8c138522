#include "codegen/cpu_kernel.h"

#include "passes/canonicalize.h"
#include "passes/lower_to_loops.h"

namespace tilewright {

namespace {
target::CpuFeatures features_of(const runtime::ProcessorFeatures& f) {
  return {f.avx2, f.fma, f.f16c, f.avx512, f.avx512_bf16, f.avx512_vnni};
}
codegen::CpuKernelSource source_of(const Program& program, const target::CpuFeatures& features) {
  const target::CpuTarget target = codegen::cpu_target(features);
  return codegen::emit_cpu(passes::lower_to_loops(passes::canonicalize(program.box().program), target), features);
}
}  // namespace

CpuKernelUnderTest::CpuKernelUnderTest(const Program& program) {
  const runtime::ProcessorFeatures features = runtime::processor_features();
  source_ = source_of(program, features_of(features));
  plan_.name = program.box().program.name;
  for (const codegen::ReportSite& s : source_.sites) {
    runtime::Site site;
    site.kind = static_cast<runtime::Site::Kind>(s.kind), site.message = s.message, site.location = s.location;
    for (const auto& o : s.operands) site.operands.push_back({o.name, o.type});
    plan_.sites.push_back(std::move(site));
  }
  callee_ = runtime::build_cpu_kernel({program.box().program.name, source_.text, features});
}

void CpuKernelUnderTest::run(std::initializer_list<NDArray> arrays, std::vector<int64_t> integers) const {
  runtime::BoundCall call;
  call.plan = &plan_;
  for (const NDArray& a : arrays) call.buffers[static_cast<size_t>(call.buffer_count++)] = a.data();
  for (int64_t i : integers) call.integers[static_cast<size_t>(call.integer_count++)] = i;
  runtime::CallReport report(plan_);
  callee_->run(call, report);
  report.throw_if_failed();
}

std::string cpu_text_of(const Program& program, const target::CpuFeatures& features) {
  return source_of(program, features).text;
}

}  // namespace tilewright
