// The functions of tilewright/c_api.h on errors, values, builders and programs. Kernels are in kernels.cpp.
#include "capi/handles.h"
#include "driver/check_program.h"
#include "driver/explain.h"
#include "driver/hand_in_plan.h"
#include "driver/machine.h"
#include "driver/simulate_program.h"
#include "driver/studio.h"
#include "ir/options.h"
#include "scalar/dtype_rows.h"
#include "tilewright/cost.h"
#include "tilewright/version.h"

#include <mutex>

using namespace tilewright;
using capi::guarded;

struct tw_builder {
  ir::Builder builder;
};

namespace tilewright::capi {

tw_error* error_of(const Diagnostic& d, const char* kind) {
  return new tw_error{d, kind, d.code_text(), d.to_string()};
}

const char* lasting_name(DType type) {
  static std::mutex mutex;
  static std::map<uint32_t, std::string> names;
  std::lock_guard lock(mutex);
  std::string& name = names[static_cast<uint32_t>(type.kind) << 8 | type.bits];
  if (name.empty()) name = type.name();
  return name.c_str();
}

}  // namespace tilewright::capi

namespace {

tw_value value_of(const ir::Expr& e) {
  tw_value v{};
  v.kind = TW_EXPR;
  v.as.expr = new tw_expr{e};
  return v;
}

// What a result points at until the next call of this thread.
struct ResultStorage {
  std::vector<tw_value> items;
  std::string text;
};
thread_local ResultStorage last_result;

tw_value value_of(capi::Result result) {
  tw_value v{};
  if (const auto* e = std::get_if<ir::Expr>(&result)) return value_of(*e);
  if (const auto* list = std::get_if<capi::Exprs>(&result)) {
    last_result.items.clear();
    for (const ir::Expr& e : *list) last_result.items.push_back(value_of(e));
    v.kind = TW_LIST, v.count = static_cast<int64_t>(list->size()), v.as.items = last_result.items.data();
  } else if (const auto* buffer = std::get_if<ir::BufferId>(&result)) {
    v.kind = TW_BUFFER, v.buffer = buffer->index;
  } else if (const auto* integer = std::get_if<int64_t>(&result)) {
    v.kind = TW_INT, v.as.integer = *integer;
  } else if (auto* text = std::get_if<std::string>(&result)) {
    last_result.text = std::move(*text);
    v.kind = TW_TEXT, v.as.text = last_result.text.c_str();
  }
  return v;
}

}  // namespace

extern "C" {

int tw_abi_version() { return TW_ABI_VERSION; }
const char* tw_version() { return TILEWRIGHT_VERSION; }

void tw_error_get(const tw_error* error, tw_error_info* info) {
  const Diagnostic& d = error->diagnostic;
  *info = {error->kind,         error->code.c_str(),     d.area(),        d.message.c_str(), d.help.c_str(),
           error->text.c_str(), d.location.file.c_str(), d.location.line, d.location.column};
}
void tw_error_release(tw_error* error) { delete error; }

void tw_expr_release(tw_expr* expr) { delete expr; }
const char* tw_expr_dtype(const tw_expr* expr) { return capi::lasting_name(expr->value->type); }
tw_value tw_expr_constant(const tw_expr* expr) {
  tw_value v{};
  const DType type = expr->value->type;
  if (const auto integer = ir::constant_int(expr->value)) {
    v.kind = type.is_bool() ? TW_BOOL : type.is_signed() || type.bits < 64 ? TW_INT : TW_UINT;
    v.as.integer = *integer;
  } else if (const auto number = ir::constant_float(expr->value)) {
    v.kind = TW_FLOAT, v.as.number = *number;
  }
  return v;
}
int tw_expr_equal(const tw_expr* a, const tw_expr* b) { return ir::equal(a->value, b->value); }
const char* tw_dtype_name(const char* name) {
  const auto type = parse_dtype(name);
  return type ? capi::lasting_name(*type) : nullptr;
}
int tw_dtype_bits(const char* name) {
  const auto type = parse_dtype(name);
  return type ? type->bits : 0;
}
int tw_dtype_as_bytes(const char* name) {
  const auto type = parse_dtype(name);
  const DTypeRow* row = type ? dtype_row(*type) : nullptr;
  return row && row->as_bytes;
}
const char* tw_tensor_dtype_at(int index) {
  const auto rows = dtype_rows();
  const auto at = static_cast<size_t>(index);
  return at < rows.size() && rows[at].dlpack_code >= 0 ? rows[at].name : nullptr;
}
int tw_tensor_set_dtype(tw_tensor* tensor, const char* name) {
  const auto type = parse_dtype(name);
  const DTypeRow* row = type ? dtype_row(*type) : nullptr;
  if (!row || row->dlpack_code < 0) return 0;
  tensor->type_code = static_cast<uint8_t>(row->dlpack_code);
  tensor->type_bits = static_cast<uint8_t>(type->storage_bits());
  tensor->type_lanes = 1;
  return 1;
}

int tw_operation_count() { return static_cast<int>(capi::operations().size()); }
tw_operation tw_operation_at(int index) {
  const capi::Operation& o = capi::operations()[static_cast<size_t>(index)];
  return {o.name.c_str(), o.group, o.signature.c_str(), o.doc.c_str()};
}

tw_builder* tw_builder_create(const char* program_name) { return new tw_builder{ir::Builder(program_name)}; }
void tw_builder_release(tw_builder* builder) { delete builder; }

tw_error* tw_apply(tw_builder* builder, int index, const tw_place* place, const tw_value* operands, size_t count,
                   tw_value* result) {
  return guarded([&] {
    SourceLocation at;
    if (place && place->file) at = {place->file, place->line, place->column};
    const auto& table = capi::operations();
    if (index < 0 || index >= static_cast<int>(table.size()))
      fail(Code::UnknownOperation, at, fmt::format("there is no operation {}", index),
           fmt::format("the table has operations 0 to {}", table.size() - 1));
    const capi::Operation& operation = table[static_cast<size_t>(index)];
    ir::Builder* b = builder ? &builder->builder : nullptr;
    if (b) b->set_location(at);
    *result = value_of(operation.apply(operation, capi::Operands(operation, b, at, {operands, count})));
  });
}

tw_error* tw_builder_finish(tw_builder* builder, tw_program** out) {
  return guarded([&] {
    auto box = std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{builder->builder.finish()});
    *out = new tw_program{Program(std::move(box)), {}};
    (*out)->text = (*out)->program.text();
  });
}

void tw_program_release(tw_program* program) { delete program; }
const char* tw_program_text(tw_program* program) { return program->text.c_str(); }
tw_error* tw_program_parse(const char* text, const char* file_name, tw_program** out) {
  return guarded([&] {
    *out = new tw_program{parse_program(text, file_name), {}};
    (*out)->text = (*out)->program.text();
  });
}

tw_error* tw_program_with_plan(const tw_program* program, const char* plan, tw_program** out) {
  return guarded([&] {
    *out = new tw_program{with_plan(program->program, plan), {}};
    (*out)->text = (*out)->program.text();
  });
}

tw_error* tw_program_with_option(const tw_program* program, const char* name, int value, tw_program** out) {
  return guarded([&] {
    ir::TileProgram tiles = program->program.box().program;
    ir::set_option(tiles.options, name, value != 0);
    *out =
        new tw_program{Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{std::move(tiles)})), {}};
    (*out)->text = (*out)->program.text();
  });
}

const char* tw_text_get(const tw_text* text) { return text->text.c_str(); }
void tw_text_release(tw_text* text) { delete text; }

tw_error* tw_program_explain(const tw_program* program, const char* arch, int json, const char* const* names,
                             const int64_t* values, size_t count, tw_text** out) {
  return guarded([&] {
    NamedValues known;
    for (size_t i = 0; i < count; ++i) known[names[i]] = values[i];
    const ir::TileProgram& p = program->program.box().program;
    const Explanation e = *arch ? explain_gpu(p, known, arch) : explain(p, known, runtime::processor_features());
    *out = new tw_text{json ? to_json(e) : to_text(e)};
  });
}

tw_error* tw_program_studio(const tw_program* program, const char* arch, const char* const* names,
                            const int64_t* values, size_t count, tw_text** out) {
  return guarded([&] {
    NamedValues known;
    for (size_t i = 0; i < count; ++i) known[names[i]] = values[i];
    *out = new tw_text{studio_json(program->program.box().program, known, arch)};
  });
}

tw_error* tw_program_cost(const tw_program* program, const char* machine, const char* const* names,
                          const int64_t* values, size_t count, tw_text** out) {
  return guarded([&] {
    NamedValues known;
    for (size_t i = 0; i < count; ++i) known[names[i]] = values[i];
    *out = new tw_text{CostModel(program->program, machine).prediction(known)};
  });
}
tw_error* tw_machines(tw_text** out) {
  return guarded([&] { *out = new tw_text{machines_json()}; });
}

tw_error* tw_program_check(const tw_program* program, const char* const* names, const double* values, size_t count,
                           uint64_t seed, int json, tw_text** out) {
  return guarded([&] {
    std::map<std::string, double> known;
    for (size_t i = 0; i < count; ++i) known[names[i]] = values[i];
    const std::string& name = program->program.name();
    const std::vector<EngineOutcome> outcomes = check_program(program->program, known, seed);
    *out = new tw_text{json ? to_json(name, outcomes) : to_text(name, outcomes)};
  });
}

tw_error* tw_program_simulate(const tw_program* program, const char* arch, const char* const* names,
                              const double* values, size_t count, uint64_t seed, tw_text** counts, tw_text** trace) {
  return guarded([&] {
    std::map<std::string, double> known;
    for (size_t i = 0; i < count; ++i) known[names[i]] = values[i];
    Simulation simulation = simulate_program(program->program, arch, known, seed, trace != nullptr);
    *counts = new tw_text{std::move(simulation.counts)};
    if (trace) *trace = new tw_text{std::move(simulation.trace)};
  });
}

tw_error* tw_machine(int trying, tw_text** out) {
  return guarded([&] { *out = new tw_text{machine_report(trying != 0)}; });
}

}  // extern "C"
