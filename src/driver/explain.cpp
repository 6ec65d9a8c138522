#include "driver/explain.h"

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "ir/effects.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/print.h"
#include "ir/print_lines.h"
#include "ir/rewrite.h"
#include "passes/pipeline.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright {
namespace {

using Count = std::optional<int64_t>;

Count times(Count a, Count b) {
  int64_t out = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &out)) return std::nullopt;
  return out;
}
Count plus(Count a, Count b) {
  int64_t out = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &out)) return std::nullopt;
  return out;
}

// Operations on floats that evaluating an expression takes.
int64_t flops_of(const ir::Expr& e) {
  int64_t n = 0;
  ir::walk(e, [&](const ir::Expr& x) {
    if (x.as<ir::Binary>() || x.as<ir::Unary>() || x.as<ir::Intrinsic>()) {
      bool floats = x->type.is_float();
      ir::for_each_operand(x, [&](const ir::Expr& operand) { floats = floats || operand->type.is_float(); });
      n += floats;
    } else if (x.as<ir::Fma>()) {
      n += 2;
    }
  });
  return n;
}

class Costs {
 public:
  Costs(const ir::TileProgram& program, const NamedValues& values) : program_(program), values_(values) {}

  Count value(const ir::Expr& e) const { return value_of(e, program_, values_); }
  Count product(const std::vector<ir::Expr>& extents) const {
    Count n = 1;
    for (const ir::Expr& e : extents) n = times(n, value(e));
    return n;
  }
  bool is_global(ir::BufferId id) const { return program_.buffer(program_.root(id)).space == ir::Space::Global; }

  Count products(const ir::Gemm& n) const {
    const std::vector<ir::Expr>& a = n.a.extent;
    return times(2, times(product(n.c.extent), value(n.transpose_a ? a[a.size() - 2] : a[a.size() - 1])));
  }
  Count flops(const ir::Stmt& s) const {
    if (const auto* n = s.as<ir::Gemm>()) return program_.buffer(n->c.buffer).type.is_float() ? products(*n) : Count(0);
    if (const auto* n = s.as<ir::Map>()) return times(product(n->extents), flops_of_body(n->body));
    return ir::match(s->op, [&]<class Op>(const Op& n) -> Count {
      if constexpr (ir::CombinesAlong<Op>)
        if (program_.buffer(n.to.buffer).type.is_float()) return product(n.from.extent);
      return 0;
    });
  }

  // Of global memory that one execution touches.
  Count bytes(const ir::Stmt& s) const {
    if (const auto* n = s.as<ir::Map>()) {
      int64_t bits = 0;
      bool loops = false;
      ir::walk(n->body, [&](const ir::Stmt& inner) {
        loops = loops || inner.as<ir::For>() || inner.as<ir::While>();
        for (const ir::Effect& e : ir::effects_of(inner).list) bits += bits_of(e.region, 1).value_or(0);
      });
      if (loops && bits > 0) return std::nullopt;
      const Count all = times(product(n->extents), bits);
      return all ? Count((*all + 7) / 8) : std::nullopt;
    }
    Count bits = 0;
    for (const ir::Effect& e : ir::effects_of(s).list) bits = plus(bits, bits_of(e.region, product(e.region.extent)));
    return bits ? Count((*bits + 7) / 8) : std::nullopt;
  }

 private:
  Count bits_of(const ir::Region& region, Count elements) const {
    if (!region.valid() || !is_global(region.buffer)) return 0;
    return times(elements, program_.buffer(region.buffer).type.storage_bits());
  }
  Count flops_of_body(const ir::Body& body) const {
    Count n = 0;
    for (const ir::Stmt& s : body) {
      ir::for_each_expr(s, [&](const ir::Expr& e) { n = plus(n, flops_of(e)); });
      Count inside = 0;
      ir::for_each_body(s, [&](const ir::Body& b) { inside = plus(inside, flops_of_body(b)); });
      if (const auto* loop = s.as<ir::For>()) inside = times(inside, value(loop->extent));
      if (s.as<ir::While>()) inside = std::nullopt;
      n = plus(n, inside);
    }
    return n;
  }

  const ir::TileProgram& program_;
  const NamedValues& values_;
};

// The first line of the program's text that says a statement, by its place.
using Lines = std::map<uint32_t, std::string>;

Lines lines_of(const ir::TileProgram& program) {
  const ir::PrintedLines printed = ir::print_lines(program);
  Lines lines;
  size_t begin = 0;
  for (const ir::PrintedPlace& place : printed.places) {
    const size_t end = printed.text.find('\n', begin);
    std::string line = printed.text.substr(begin, end - begin);
    begin = end + 1;
    if (!place.is_statement || place.location.index == 0) continue;
    if (line.ends_with(" {")) line.resize(line.size() - 2);
    lines.emplace(place.location.index, line.substr(line.find_first_not_of(' ')));
  }
  return lines;
}

class LaunchWalk {
 public:
  LaunchWalk(const ir::TileProgram& program, const Costs& costs, const Lines& lines, LaunchFacts& out)
      : program_(program), costs_(costs), lines_(lines), out_(out) {}

  void body(const ir::Body& b, Count executions, bool conditional) {
    for (const ir::Stmt& s : b) {
      if (ir::is_tile_op(s)) {
        add(s, executions, conditional);
        continue;  // what a Map holds is thread code
      }
      Count inside = executions;
      if (const auto* loop = s.as<ir::For>()) {
        inside = times(executions, costs_.value(loop->extent));
        orders_ = !loop->order.empty() || !loop->stage.empty();
      }
      if (s.as<ir::While>()) inside = std::nullopt;
      const bool guarded = conditional || s.as<ir::If>();
      ir::for_each_body(s, [&](const ir::Body& inner) { body(inner, inside, guarded); });
    }
  }

 private:
  void add(const ir::Stmt& s, Count executions, bool conditional) {
    OperationFacts facts;
    facts.operation = ir::name_of(s);
    if (const auto at = lines_.find(s->location.index); at != lines_.end()) facts.text = at->second;
    facts.location = program_.location(s->location);
    facts.executions = executions, facts.conditional = conditional;
    facts.flops = costs_.flops(s), facts.bytes = costs_.bytes(s);
    if (const auto* n = s.as<ir::Gemm>()) facts.products = costs_.products(*n);
    if (std::exchange(orders_, false))
      facts.warnings.push_back(
          "the order and the stages that its loop asks for are not taken: the compiler has its own");
    out_.operations.push_back(std::move(facts));
  }

  const ir::TileProgram& program_;
  const Costs& costs_;
  const Lines& lines_;
  LaunchFacts& out_;
  bool orders_ = false;  // the loop that begins asks for an order or stages of its statements
};

LaunchFacts facts_of(const ir::TileProgram& program, size_t number, const Costs& costs, const Lines& lines) {
  const ir::Launch& launch = program.launches[number];
  LaunchFacts out;
  out.name = launch.name, out.threads = launch.threads, out.blocks = costs.product(launch.grid);
  for (const ir::Expr& e : launch.grid) {
    const Count extent = costs.value(e);
    out.grid.push_back(extent ? std::to_string(*extent) : ir::print(e, program));
  }
  for (const ir::Buffer& b : program.buffers) {
    if (b.space == ir::Space::Global || b.launch != static_cast<int32_t>(number)) continue;
    OnChipBuffer row{b.name, ir::name_of(b.space), b.type.name(), {}, 0, b.is_view()};
    int64_t elements = 1;
    for (const ir::Expr& e : b.shape) row.shape.push_back(costs.value(e).value_or(0)), elements *= row.shape.back();
    if (b.space == ir::Space::Local) elements *= launch.thread_count();
    row.bytes = bytes_of(b.type, elements);
    if (!row.is_view) out.bytes_on_chip += row.bytes;
    out.buffers.push_back(std::move(row));
  }
  LaunchWalk(program, costs, lines, out).body(launch.body, out.blocks, false);
  return out;
}

// Innermost loops of the CPU's text by place: all, and vectorized ones.
struct LoopCount {
  int64_t all = 0, vectorized = 0;
};
using Place = std::pair<int, int>;  // line, column
Place place_of(const SourceLocation& at) { return {at.line, at.column}; }

std::map<Place, LoopCount> count_loops(const ir::LoopProgram& loops) {
  std::map<Place, LoopCount> out;
  for (const ir::Launch& launch : loops.launches)
    ir::walk(launch.body, [&](const ir::Stmt& s) {
      const auto* loop = s.as<ir::For>();
      if (!loop) return;
      bool innermost = true;
      ir::walk(loop->body, [&](const ir::Stmt& inner) { innermost = innermost && !inner.as<ir::For>(); });
      if (!innermost) return;
      LoopCount& count = out[place_of(loops.location(s->location))];
      ++count.all;
      count.vectorized += loop->kind == ir::LoopKind::Vectorized;
    });
  return out;
}

void add_cpu_facts(const ir::TileProgram& program, const runtime::ProcessorFeatures& processor, Explanation& out) {
  const std::map<Place, LoopCount> loops = count_loops(lower_cpu(program, processor));
  Dump dump(program.name);
  const CpuKernel kernel = write_cpu(program, processor, dump);
  for (LaunchFacts& launch : out.launches) {
    for (OperationFacts& op : launch.operations) {
      if (const auto at = loops.find(place_of(op.location)); at != loops.end())
        op.loops = at->second.all, op.vectorized = at->second.vectorized;
      for (const passes::LaneChoice& r : kernel.lanes) {
        if (place_of(r.location) != place_of(op.location)) continue;
        std::string fact = r.lanes > 0 ? fmt::format("in vectors, {} elements at a time, for {}", r.lanes, r.function)
                                       : fmt::format("{} as the host's compiler has it, for {}", r.function, r.why);
        if (std::find(op.becomes.begin(), op.becomes.end(), fact) == op.becomes.end())
          op.becomes.push_back(std::move(fact));
      }
      for (const codegen::GemmReport& g : kernel.gemms) {
        if (op.operation != "gemm" || place_of(g.location) != place_of(op.location)) continue;
        op.becomes.push_back(fmt::format("{} x {} x {} by {}", g.m, g.n, g.k, g.kernel));
        op.becomes.push_back(fmt::format("a {}, b {}, c {}", g.a_layout, g.b_layout, g.c_layout));
        if (g.packs_a) op.warnings.push_back("a is copied into the kernel's form at every execution");
        if (g.packs_b) op.warnings.push_back("b is copied into the kernel's form at every execution");
        if (g.updates_elements) op.warnings.push_back("c is updated element by element, in whole or in part");
      }
    }
  }
}

void add_costs(const ir::TileProgram& tiles, const NamedValues& values, Explanation& out) {
  out.program = tiles.name;
  const Costs costs(tiles, values);
  const Lines lines = lines_of(tiles);
  out.flops = out.moved_bytes = out.tensor_bytes = 0;
  for (size_t i = 0; i < tiles.launches.size(); ++i) {
    out.launches.push_back(facts_of(tiles, i, costs, lines));
    for (const OperationFacts& op : out.launches.back().operations) {
      out.flops = plus(out.flops, times(op.executions, op.flops));
      out.moved_bytes = plus(out.moved_bytes, times(op.executions, op.bytes));
    }
  }
  for (const ir::Param& p : tiles.params) {
    if (!p.is_tensor()) continue;
    const Count elements = costs.product(tiles.buffer(p.buffer).shape);
    out.tensor_bytes =
        plus(out.tensor_bytes, elements ? Count(bytes_of(tiles.buffer(p.buffer).type, *elements)) : std::nullopt);
  }
}

// The facts that every engine shares, then those of one.
template <class AddFacts>
Explanation explained(const ir::TileProgram& program, const NamedValues& values, const AddFacts& add_facts) {
  Explanation out;
  const WarningSink before = replace_warning_sink([&](const Diagnostic& d) { out.warnings.push_back(d); });
  const std::shared_ptr<void> restore(nullptr, [&](void*) { replace_warning_sink(before); });
  check_values(program, values);
  const ir::TileProgram tiles = canonical(program);
  build_plan(tiles);
  add_costs(tiles, values, out);
  try {
    add_facts(tiles, out);
  } catch (const CompileError& e) {
    out.refused = e.diagnostic();
  }
  return out;
}

}  // namespace

Explanation explain(const ir::TileProgram& program, const NamedValues& values,
                    const runtime::ProcessorFeatures& processor) {
  Explanation e = explained(
      program, values, [&](const ir::TileProgram& tiles, Explanation& out) { add_cpu_facts(tiles, processor, out); });
  e.processor = processor.to_string();
  return e;
}

Explanation explain_gpu(const ir::TileProgram& program, const NamedValues& values, const std::string& arch,
                        bool compile, size_t plans, const std::function<void(const DeviceChoice&)>& chosen) {
  const target::GpuTarget target = gpu_target(arch);  // a mistake of the caller's, not of the program
  Explanation e = explained(program, values, [&](const ir::TileProgram& tiles, Explanation& out) {
    add_gpu_facts(tiles, values, arch, compile, plans, chosen, out);
  });
  if (!e.gpu) e.gpu.emplace();
  e.gpu->arch = arch, e.gpu->device = target.rates.device;
  return e;
}

}  // namespace tilewright
