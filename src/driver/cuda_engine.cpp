#include "driver/cuda_engine.h"

#include "analysis/block_reads.h"
#include "driver/build_plan.h"
#include "driver/cpu_engine.h"
#include "driver/versions.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "runtime/build_id.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_report.h"
#include "runtime/lowered_kernel.h"
#include "support/diagnostic.h"
#include "tilewright/cuda.h"

namespace tilewright {
namespace {

namespace rt = runtime::cuda;

// Where a call has each tensor, symbol and scalar.
class Places {
 public:
  explicit Places(const ir::ProgramTables& p) {
    int buffers = 0, scalars = 0, symbols = 0;
    for (const ir::Param& param : p.params) {
      if (param.is_tensor())
        buffers_[param.buffer] = buffers++;
      else
        values_[param.var] = runtime::scalar(scalars++);
    }
    for (uint32_t i = 0; i < p.buffers.size(); ++i)
      if (p.buffers[i].workspace && !p.buffers[i].is_view()) buffers_[ir::BufferId{i}] = buffers++;
    for (ir::VarId id : p.symbols) values_[id] = runtime::symbol(symbols++);
  }
  int buffer(ir::BufferId id) const { return buffers_.at(id); }
  const runtime::IntProgram& value(ir::VarId id) const { return values_.at(id); }

 private:
  std::map<ir::BufferId, int> buffers_;
  std::map<ir::VarId, runtime::IntProgram> values_;
};

rt::KernelLaunch launch_of(const ir::ThreadProgram& p, size_t number, const codegen::CudaKernel& kernel,
                           const Places& places) {
  const ir::Launch& launch = p.launches[number];
  rt::KernelLaunch out;
  out.function = kernel.function;
  for (size_t d = 0; d < 3; ++d) {
    out.grid[d] = d < launch.grid.size() ? host_expression(launch.grid[d], launch.location, p) : runtime::constant(1);
    out.block[d] = d < launch.threads.size() ? static_cast<int>(launch.threads[d]) : 1;
    out.cluster[d] = d < launch.cluster.size() ? static_cast<int>(launch.cluster[d]) : 1;
  }
  out.dynamic_shared_bytes = static_cast<int>(kernel.shared_bytes), out.cooperative = kernel.cooperative;
  // Blocks that wait for each other are all there at once, which takes the room of those before.
  out.programmatic_serialization = kernel.waits && !kernel.cooperative;
  for (const codegen::CudaArgument& a : kernel.arguments) {
    if (a.map >= 0) {
      out.parameters.push_back(rt::TensorMapParameter{a.map});
      continue;
    }
    if (a.buffer.valid()) {
      out.parameters.push_back(rt::BufferParameter{places.buffer(a.buffer)});
      continue;
    }
    const DType type = p.var(a.var).type;
    const bool wide = type.is_pointer() || type.bits == 64;
    out.parameters.push_back(rt::ValueParameter{places.value(a.var), wide ? 8 : 4});
  }
  if (kernel.reports) out.parameters.push_back(rt::ReportParameter{});
  return out;
}

// What a miss brings into the L2 cache. Neighbours of a row that other blocks want, too, are wanted soon: of products
// with tiles of 128x128, 128 bytes at a time cost 4%. What one block alone reads it asks for at its own time: MLA
// decoding of 16 heads takes 311 us of an H200 with 256 bytes, and 279 with 128.
rt::TensorMapPlan::L2Promotion promotion_of(bool read_by_single_blocks) {
  using Promotion = rt::TensorMapPlan::L2Promotion;
  return read_by_single_blocks ? Promotion::Bytes128 : Promotion::Bytes256;
}

rt::TensorMapPlan map_of(const ir::ThreadProgram& p, const codegen::CudaTensorMap& map, const Places& places) {
  const ir::Buffer& b = p.buffer(map.buffer);
  rt::TensorMapPlan out;
  out.name = b.name, out.buffer = places.buffer(p.root(map.buffer)), out.dtype = b.type;
  ir::Expr stride = ir::constant(i64, int64_t{1});
  for (size_t d = b.rank(); d-- > 0;) {
    if (auto at = std::find(map.dims.begin(), map.dims.end(), d); at != map.dims.end()) {
      out.dims.push_back(host_expression(b.shape[d], b.location, p));
      out.box.push_back(static_cast<uint32_t>(map.box[static_cast<size_t>(at - map.dims.begin())]));
      if (d + 1 < b.rank())
        out.strides.push_back(host_expression(b.strides.empty() ? stride : b.strides[d], b.location, p));
    }
    stride = ir::mul(stride, ir::cast(b.shape[d], i64));
  }
  using Swizzle = rt::TensorMapPlan::Swizzle;
  out.swizzle = map.swizzle_bytes == 128  ? Swizzle::Bytes128
                : map.swizzle_bytes == 64 ? Swizzle::Bytes64
                : map.swizzle_bytes == 32 ? Swizzle::Bytes32
                                          : Swizzle::None;
  return out;
}

}  // namespace

target::GpuTarget gpu_target(const std::string& arch) {
  if (const target::GpuTarget* found = target::GpuTarget::named(arch)) return *found;
  fail(Code::GpuUnsupported, {}, fmt::format("kernels for {} are not something we write", arch),
       fmt::format("it is one of {}", fmt::join(target::gpu_names(), ", ")));
}

namespace {

SourceLocation location_of(const ir::ProgramTables& p) {
  return p.launches.empty() ? SourceLocation{} : p.location(p.launches.front().location);
}

CudaText text_of(const ir::ThreadProgram& threads, const std::string& arch, codegen::CudaStyle style,
                 const std::set<ir::BufferId>& read_by_single_blocks) {
  codegen::CudaSource source = codegen::emit_cuda(threads, gpu_target(arch), rt::report_text_head(), style);
  CudaText out;
  out.kernel.name = threads.name, out.kernel.text = std::move(source.text), out.kernel.arch = arch;
  out.kernel.location = location_of(threads);
  out.sites = sites_of(source.sites), out.marks = std::move(source.marks);
  const Places places(threads);
  for (const codegen::CudaTensorMap& map : source.tensor_maps) {
    out.kernel.plan.tensor_maps.push_back(map_of(threads, map, places));
    out.kernel.plan.tensor_maps.back().l2_promotion =
        promotion_of(read_by_single_blocks.contains(threads.root(map.buffer)));
  }
  for (size_t i = 0; i < source.kernels.size(); ++i)
    out.kernel.plan.launches.push_back(launch_of(threads, i, source.kernels[i], places));
  for (const ir::Param& p : threads.params)
    if (p.is_tensor()) out.alignments.push_back(threads.buffer(p.buffer).alignment);
  out.workspaces = workspaces_of(threads);
  return out;
}

void write(const DeviceChoice& choice, Dump& dump) {
  choice.stages.write(dump);
  dump.write_text("cuda", "cu", choice.text.kernel.text);
}

DeviceChoice planned(const ir::TileProgram& program, const std::string& arch, bool stages, plan::Limits limits) {
  DeviceChoice out;
  out.stages = GpuStages(stages);
  out.lowering = passes::lower_to_threads(program, gpu_target(arch), limits, out.stages);
  const codegen::CudaStyle style{limits.one_branch, program.options.fast_math, limits.plain_integers};
  out.text = text_of(out.lowering.threads, arch, style, analysis::read_by_single_blocks(program));
  return out;
}

// Spilled bytes that may be those of names that are alive across a role which needs none of them.
constexpr int64_t kFewSpilled = 64;

// What the device compiler lacked registers for: whether products wait for each other, bytes that it spills.
struct Shortage {
  bool serialized = false;
  int64_t spilled = 0;
  bool any() const { return serialized || spilled > 0; }
  auto operator<=>(const Shortage&) const = default;
  std::string text() const {
    return fmt::format("the device compiler spills {} bytes{}", spilled,
                       serialized ? " and lets products wait for each other" : "");
  }
};
Shortage shortage_of(const runtime::DeviceLog& log) {
  Shortage out;
  for (const runtime::PtxasRemark& r : log.remarks) out.serialized = out.serialized || r.serializes_wgmma();
  for (const runtime::KernelResources& k : log.kernels) out.spilled += k.spill_store_bytes + k.spill_load_bytes;
  return out;
}

bool has_loader(const passes::ThreadLowering& l) {
  return std::any_of(l.plans.begin(), l.plans.end(), [](const plan::Plan& p) { return p.has_loader(); });
}

// Launches without products of which few registers less a thread let a multiprocessor hold one block more, where it
// holds at most three, or all of its blocks at once: with that many blocks asked for. None: there are no such. (Softmax
// of half of 32,768 columns by 256 threads of 144 registers: one block, 1,050 us on an H200; the same with 128
// registers: two, 565 us. 768 blocks of a matrix times a vector: five at once 71 us, six 63 us.)
std::optional<ir::TileProgram> with_more_blocks(const ir::TileProgram& program, const DeviceChoice& choice,
                                                const target::GpuTarget& target) {
  constexpr int64_t kFew = 3;
  constexpr double kNearly = 0.85;  // of the registers that the compiler took: with less it would spill
  constexpr double kForAll = 0.75;  // ... it may have taken them for nothing but loads that come early
  const auto& kernels = choice.text.kernel.plan.launches;
  if (kernels.size() != program.launches.size()) return std::nullopt;
  std::optional<ir::TileProgram> out;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const ir::Launch& launch = program.launches[i];
    const runtime::KernelResources* made = choice.binary->log.kernel(kernels[i].function);
    bool multiplies = false;
    ir::walk(launch.body, [&](const ir::Stmt& s) { multiplies = multiplies || s.as<ir::Gemm>() || s.as<ir::Mma>(); });
    if (!made || multiplies || launch.min_blocks > 0 || choice.lowering.plans[i].has_loader()) continue;
    const int64_t threads = launch.thread_count(), shared = kernels[i].dynamic_shared_bytes + made->shared_bytes;
    const int64_t now = target.occupancy(threads, made->registers, shared).blocks;
    const auto all = ir::constant_int(ir::blocks_of(launch));
    const int64_t of_one = all ? (*all + target.multiprocessors - 1) / target.multiprocessors : 0;
    const auto holds = [&](int64_t blocks, double part) {
      const int64_t left = target.registers_at_launch(threads, blocks);
      // Else registers are not what keeps them out.
      return static_cast<double>(left) >= part * made->registers &&
             target.occupancy(threads, left, shared).blocks >= blocks;
    };
    const int64_t more = now > 0 && now < of_one && holds(of_one, kForAll)   ? of_one
                         : now > 0 && now <= kFew && holds(now + 1, kNearly) ? now + 1
                                                                             : 0;
    if (more == 0) continue;
    if (!out) out = program;
    out->launches[i].min_blocks = more;
  }
  return out;
}

// The first of the plans of which the device compiler's verdict is the best. CompileError where there is none.
DeviceChoice chosen(const ir::TileProgram& program, const std::string& arch, const std::string& code_arch,
                    bool stages) {
  std::optional<DeviceChoice> best;
  Shortage least;
  std::set<std::string> seen;
  std::vector<passes::TriedPlan> lost;
  const auto compile = [&](DeviceChoice& plan) {
    plan.text.kernel.arch = code_arch;
    plan.binary = rt::compile_cuda(plan.text.kernel);
  };
  std::optional<CompileError> refused;  // the first
  std::vector<plan::Limits> turns(passes::limits_in_turn().begin(), passes::limits_in_turn().end());
  turns.push_back({.slots = 0});  // without a loader, whose warps need registers too
  for (const plan::Limits& limits : turns) {
    if (limits.one_branch && (refused || least.serialized || least.spilled > kFewSpilled)) continue;
    if (limits.slots == 0 && best) break;
    DeviceChoice now = planned(program, arch, stages, limits);
    if (!seen.insert(now.text.kernel.text).second) continue;
    runtime::Nvrtc::get();  // no other plan helps where there is none
    try {
      compile(now);
    } catch (const CompileError& error) {  // some instructions need more registers than a thread of so many has
      if (!has_loader(now.lowering)) throw;
      if (!refused) refused = error;
      continue;
    }
    if (now.binary->doubtful) {
      plan::Limits plain = limits;
      plain.plain_integers = true;
      now = planned(program, arch, stages, plain);
      compile(now);
    }
    const Shortage shortage = shortage_of(now.binary->log);
    const bool better = !best || shortage < least;
    DeviceChoice& loser = better && best ? *best : now;
    if (best) {
      passes::TriedPlan tried = loser.lowering.tried.back();
      tried.why_not = (better ? least : shortage).text();
      lost.push_back(std::move(tried));
    }
    if (better) best = std::move(now), least = shortage;
    if (!least.any() || !has_loader(best->lowering)) break;
  }
  if (!best) throw *refused;
  if (const auto more = with_more_blocks(program, *best, gpu_target(arch))) {
    DeviceChoice now = planned(*more, arch, stages, {});
    compile(now);
    const Shortage shortage = shortage_of(now.binary->log);
    if (!now.binary->doubtful && !shortage.serialized && shortage.spilled <= least.spilled + kFewSpilled)
      best = std::move(now);
  }
  best->lost = std::move(lost);
  return std::move(*best);
}

}  // namespace

CudaText write_cuda(const ir::TileProgram& program, const std::string& arch, Dump& dump, plan::Limits limits) {
  DeviceChoice choice = planned(program, arch, dump.wanted(), limits);
  write(choice, dump);
  return std::move(choice.text);
}

DeviceChoice choose_unseen(const ir::TileProgram& program, const std::string& arch, Dump& dump, bool stages) {
  DeviceChoice out = planned(program, arch, stages || dump.wanted(), {});
  write(out, dump);
  out.no_binary = "not asked";
  return out;
}

DeviceChoice choose_by_compiler(const ir::TileProgram& program, const std::string& arch, Dump& dump, bool stages) {
  DeviceChoice out = chosen(program, arch, arch, stages || dump.wanted());
  write(out, dump);
  return out;
}

std::string code_architecture(const std::string& planned, const std::string& here) {
  const target::GpuTarget plan = gpu_target(planned);
  const int device = here.starts_with("sm_") ? std::atoi(here.c_str() + 3) : 0;
  return !plan.has.wgmma && device > plan.arch ? here : planned;
}

std::string cuda_origin(const ir::TileProgram& program, const std::string& arch, const std::string& code_arch) {
  return fmt::format("cuda\n{}\n{}\nNVRTC {}\n{}", arch, code_arch, runtime::Nvrtc::get().version(),
                     ir::print(program, {.locations = true}));
}

runtime::Version build_cuda(const ir::TileProgram& program, const std::string& arch, Dump& dump) {
  const bool runs = rt::device_count() > 0;
  if (!runs && !runtime::Nvrtc::is_there())  // the text is all there is to ask for, and nobody has to compile it
    return load_cuda_text(choose_unseen(program, arch, dump).text, build_plan(program), {});
  const std::string code_arch = code_architecture(arch, runs ? cuda::architecture() : "");
  const runtime::LoweredPlace place(cuda_origin(program, arch, code_arch), runtime::own_build_id());
  // A dump shows stages, which only lowering has.
  if (std::optional<runtime::LoweredKernel> found = dump.wanted() ? std::nullopt : place.find()) {
    CudaText text{{program.name, std::move(found->text), code_arch, std::move(found->plan)},
                  std::move(found->sites),
                  std::move(found->alignments),
                  std::move(found->workspaces)};
    text.kernel.location = location_of(program);
    runtime::DeviceBinary binary = rt::compile_cuda(text.kernel);
    return load_cuda_text(std::move(text), build_plan(program), std::move(binary));
  }
  DeviceChoice choice = chosen(program, arch, code_arch, dump.wanted());
  write(choice, dump);
  place.keep({choice.text.kernel.text, choice.text.sites, choice.text.kernel.plan, choice.text.alignments,
              choice.text.workspaces});
  return load_cuda_text(std::move(choice.text), build_plan(program), std::move(*choice.binary));
}

runtime::LaunchPlan plan_of_text(const CudaText& text, runtime::LaunchPlan plan) {
  plan.memory = runtime::LaunchPlan::Memory::Cuda;
  plan.sites = text.sites;
  const auto tensors = std::count_if(plan.parameters.begin(), plan.parameters.end(), [](const runtime::Parameter& p) {
    return p.kind == runtime::Parameter::Kind::Tensor;
  });
  check_internal(text.alignments.size() == static_cast<size_t>(tensors), "{}: {} alignments of {} tensors", plan.name,
                 text.alignments.size(), tensors);
  size_t tensor = 0;
  for (runtime::Parameter& p : plan.parameters)
    if (p.kind == runtime::Parameter::Kind::Tensor)
      p.alignment = std::max(p.alignment, static_cast<int>(text.alignments[tensor++]));
  add_workspaces(text.workspaces, plan);
  return plan;
}

runtime::Version load_cuda_text(CudaText text, runtime::LaunchPlan plan, runtime::DeviceBinary binary) {
  plan = plan_of_text(text, std::move(plan));
  auto callee = rt::load_cuda(text.kernel, std::move(binary), plan);
  return {std::move(plan), std::move(callee), std::move(text.kernel.text)};
}

}  // namespace tilewright
