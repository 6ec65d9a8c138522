// The C ABI as a frontend in another language uses it: the table, a program recorded by it, a call, errors.
#include <gtest/gtest.h>

#include <map>

#include "tilewright/c_api.h"

namespace {

std::map<std::string, int> operations() {
  std::map<std::string, int> out;
  for (int i = 0; i < tw_operation_count(); ++i) EXPECT_TRUE(out.emplace(tw_operation_at(i).name, i).second);
  return out;
}

tw_value none() { return {}; }
tw_value integer(int64_t value) {
  tw_value v{};
  v.kind = TW_INT, v.as.integer = value;
  return v;
}
tw_value text(const char* value) {
  tw_value v{};
  v.kind = TW_TEXT, v.as.text = value;
  return v;
}
tw_value list(const std::vector<tw_value>& items) {
  tw_value v{};
  v.kind = TW_LIST, v.count = static_cast<int64_t>(items.size()), v.as.items = items.data();
  return v;
}
tw_value element(const tw_value& buffer, const std::vector<tw_value>& indices) {
  tw_value v = list(indices);
  v.kind = TW_TILE, v.buffer = buffer.buffer;
  return v;
}

// A builder with the operations by name; expressions that it makes are released with it.
class Recorder {
 public:
  Recorder() : builder_(tw_builder_create("doubled")) {}
  ~Recorder() {
    for (tw_expr* e : exprs_) tw_expr_release(e);
    tw_builder_release(builder_);
  }
  tw_error* try_apply(const char* name, const std::vector<tw_value>& operands, tw_value* result) {
    const tw_place place = {"program.x", 3, 7};
    return tw_apply(builder_, operations_.at(name), &place, operands.data(), operands.size(), result);
  }
  tw_value apply(const char* name, const std::vector<tw_value>& operands) {
    tw_value result{};
    tw_error* error = try_apply(name, operands, &result);
    EXPECT_EQ(error, nullptr) << name;
    if (result.kind == TW_EXPR) exprs_.push_back(result.as.expr);
    if (result.kind == TW_LIST)
      for (int64_t i = 0; i < result.count; ++i) exprs_.push_back(result.as.items[i].as.expr);
    return result;
  }
  tw_builder* builder() { return builder_; }

 private:
  std::map<std::string, int> operations_ = operations();
  tw_builder* builder_;
  std::vector<tw_expr*> exprs_;
};

// B[i] = A[i] * 2 over 8 elements.
tw_program* doubled() {
  Recorder r;
  const std::vector<tw_value> shape = {integer(8)}, grid = {integer(1)}, threads = {integer(32)}, names = {text("i")};
  const tw_value A = r.apply("tensor", {text("A"), list(shape), text("float32")});
  const tw_value B = r.apply("tensor", {text("B"), list(shape), text("float32")});
  r.apply("open_launch", {list(grid), list(threads)});
  const tw_value point = r.apply("open_map", {list(names), list(shape)});
  const std::vector<tw_value> i = {point.as.items[0]};
  const tw_value value = r.apply("mul", {element(A, i), integer(2)});
  EXPECT_STREQ(tw_expr_dtype(value.as.expr), "float32");
  r.apply("store", {element(B, i), value});
  r.apply("close", {});
  r.apply("close_launch", {});
  tw_program* program = nullptr;
  EXPECT_EQ(tw_builder_finish(r.builder(), &program), nullptr);
  return program;
}

tw_error_info taken(tw_error* error) {
  tw_error_info info{};
  if (error) tw_error_get(error, &info);
  return info;
}

TEST(CApi, RecordsCompilesAndCalls) {
  EXPECT_GE(tw_abi_version(), TW_ABI_VERSION);
  tw_program* program = doubled();
  ASSERT_NE(program, nullptr);
  tw_program* again = nullptr;
  ASSERT_EQ(tw_program_parse(tw_program_text(program), "doubled.tile", &again), nullptr);
  EXPECT_STREQ(tw_program_text(again), tw_program_text(program));

  tw_kernel* kernel = nullptr;
  ASSERT_EQ(tw_compile(program, "interpreter", "", &kernel), nullptr);
  EXPECT_STREQ(tw_kernel_name(kernel), "doubled");
  EXPECT_STREQ(tw_kernel_engine(kernel), "interpreter");
  ASSERT_EQ(tw_kernel_parameter_count(kernel), 2);
  EXPECT_STREQ(tw_kernel_parameter(kernel, 1).name, "B");

  float a[8] = {0, 1, 2, 3, 4, 5, 6, 7}, b[8] = {};
  int64_t shape[1] = {8};
  tw_tensor A{a, 1, 0, 1, 2, 32, 1, shape, nullptr, 0}, B{b, 1, 0, 1, 2, 32, 1, shape, nullptr, 0};
  tw_argument arguments[2] = {{TW_TENSOR, {}}, {TW_NONE, {}}};
  arguments[0].as.tensor = &A;
  int64_t wanted[8] = {};
  ASSERT_EQ(tw_kernel_shape(kernel, arguments, 2, 1, wanted), nullptr);
  EXPECT_EQ(wanted[0], 8);
  arguments[1].kind = TW_TENSOR, arguments[1].as.tensor = &B;
  ASSERT_EQ(tw_kernel_call(kernel, arguments, 2), nullptr);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(b[i], 2 * a[i]);

  tw_error* error = tw_kernel_call(kernel, arguments, 1);
  ASSERT_NE(error, nullptr);
  EXPECT_STREQ(taken(error).kind, "LaunchError");
  EXPECT_STREQ(taken(error).code, "TW4001");
  tw_error_release(error);
  tw_kernel_release(kernel);
  tw_program_release(again);
  tw_program_release(program);
}

TEST(CApi, PagesAndSimulations) {
  tw_program* program = doubled();
  tw_text *text = nullptr, *trace = nullptr;
  ASSERT_EQ(tw_program_studio(program, "sm_80", nullptr, nullptr, 0, &text), nullptr);
  EXPECT_NE(std::string_view(tw_text_get(text)).find("\"name\":\"CUDA C++\""), std::string::npos);
  tw_text_release(text);
  ASSERT_EQ(tw_program_simulate(program, "sm_80", nullptr, nullptr, 0, 1, &text, &trace), nullptr);
  EXPECT_NE(std::string_view(tw_text_get(text)).find("\"bytes_moved\""), std::string::npos);
  EXPECT_NE(std::string_view(tw_text_get(trace)).find("\"traceEvents\""), std::string::npos);
  tw_text_release(text), tw_text_release(trace);
  ASSERT_EQ(tw_program_simulate(program, "sm_80", nullptr, nullptr, 0, 1, &text, nullptr), nullptr);
  tw_text_release(text);
  const char* names[] = {"N"};
  const double values[] = {3};
  tw_error* error = tw_program_simulate(program, "sm_80", names, values, 1, 1, &text, &trace);
  ASSERT_NE(error, nullptr);
  EXPECT_STREQ(taken(error).message, "'doubled' has no symbol or number 'N'");
  tw_error_release(error);
  for (const int wanted : {0, 1}) {
    tw_kernel* kernel = nullptr;
    ASSERT_EQ(tw_compile_simulated(program, "sm_80", wanted, &kernel), nullptr);
    float a[8] = {}, b[8] = {};
    int64_t shape[1] = {8};
    tw_tensor A{a, 1, 0, 1, 2, 32, 1, shape, nullptr, 0}, B{b, 1, 0, 1, 2, 32, 1, shape, nullptr, 0};
    tw_argument arguments[2] = {{TW_TENSOR, {}}, {TW_TENSOR, {}}};
    arguments[0].as.tensor = &A, arguments[1].as.tensor = &B;
    ASSERT_EQ(tw_kernel_trace(kernel, &trace), nullptr);
    EXPECT_STREQ(tw_text_get(trace), "") << "before a call";
    tw_text_release(trace);
    ASSERT_EQ(tw_kernel_call(kernel, arguments, 2), nullptr);
    ASSERT_EQ(tw_kernel_trace(kernel, &trace), nullptr);
    EXPECT_EQ(std::string_view(tw_text_get(trace)).empty(), wanted == 0);
    tw_text_release(trace);
    tw_kernel_release(kernel);
  }
  tw_program_release(program);
}

TEST(CApi, ExplainsAndCounts) {
  tw_program* program = doubled();
  tw_text* text = nullptr;
  ASSERT_EQ(tw_program_explain(program, "sm_90a", 1, nullptr, nullptr, 0, &text), nullptr);
  const std::string gpu = tw_text_get(text);
  tw_text_release(text);
  EXPECT_NE(gpu.find("\"engine\": \"cuda\""), std::string::npos) << gpu;
  ASSERT_EQ(tw_program_explain(program, "", 0, nullptr, nullptr, 0, &text), nullptr);
  EXPECT_TRUE(std::string_view(tw_text_get(text)).starts_with("doubled on the cpu engine")) << tw_text_get(text);
  tw_text_release(text);
  tw_error* error = tw_program_explain(program, "sm_12", 0, nullptr, nullptr, 0, &text);
  ASSERT_NE(error, nullptr);
  EXPECT_STREQ(taken(error).code, "TW8201");
  tw_error_release(error);

  tw_kernel* kernel = nullptr;
  ASSERT_EQ(tw_compile_counting(program, "sm_90a", &kernel), nullptr);
  EXPECT_STREQ(tw_kernel_engine(kernel), "simulator");
  ASSERT_EQ(tw_kernel_counts(kernel, &text), nullptr);
  EXPECT_STREQ(tw_text_get(text), "");
  tw_text_release(text);
  float a[8] = {0, 1, 2, 3, 4, 5, 6, 7}, b[8] = {};
  int64_t shape[1] = {8};
  tw_tensor A{a, 1, 0, 1, 2, 32, 1, shape, nullptr, 0}, B{b, 1, 0, 1, 2, 32, 1, shape, nullptr, 0};
  tw_argument arguments[2] = {{TW_TENSOR, {}}, {TW_TENSOR, {}}};
  arguments[0].as.tensor = &A, arguments[1].as.tensor = &B;
  ASSERT_EQ(tw_kernel_call(kernel, arguments, 2), nullptr);
  EXPECT_EQ(b[7], 14);
  ASSERT_EQ(tw_kernel_counts(kernel, &text), nullptr);
  EXPECT_NE(std::string(tw_text_get(text)).find("\"bytes_used\": 64"), std::string::npos) << tw_text_get(text);
  tw_text_release(text);
  tw_kernel_release(kernel);
  tw_program_release(program);
}

TEST(CApi, ErrorsAreObjectsWithTheirPlace) {
  Recorder r;
  tw_value result{};
  tw_error* error = r.try_apply("copy", {integer(3), none()}, &result);
  ASSERT_NE(error, nullptr);
  const tw_error_info info = taken(error);
  EXPECT_STREQ(info.kind, "CompileError");
  EXPECT_STREQ(info.code, "TW1101");
  EXPECT_STREQ(info.area, "build");
  EXPECT_STREQ(info.message, "copy: 'src' is a buffer, an element or a tile, but an integer is given");
  EXPECT_STREQ(info.file, "program.x");
  EXPECT_EQ(info.line, 3);
  EXPECT_EQ(info.column, 7);
  tw_error_release(error);
}

TEST(CApi, OperationsOnScalarsNeedNoBuilder) {
  const auto table = operations();
  const tw_value operands[] = {integer(7), integer(2)};
  tw_value result{};
  ASSERT_EQ(tw_apply(nullptr, table.at("ceildiv"), nullptr, operands, 2, &result), nullptr);
  ASSERT_EQ(result.kind, TW_EXPR);
  EXPECT_EQ(tw_expr_constant(result.as.expr).as.integer, 4);
  tw_expr_release(result.as.expr);

  tw_error* error = tw_apply(nullptr, table.at("sync_threads"), nullptr, nullptr, 0, &result);
  ASSERT_NE(error, nullptr);
  EXPECT_STREQ(taken(error).code, "TW1077");
  tw_error_release(error);
}

TEST(CApi, EveryOperationSaysWhatItIs) {
  for (int i = 0; i < tw_operation_count(); ++i) {
    const tw_operation o = tw_operation_at(i);
    EXPECT_NE(std::string(o.doc), "") << o.name;
    EXPECT_TRUE(std::set<std::string>({"scalar", "buffer", "tile", "thread", "order", "scope"}).contains(o.group));
  }
}

}  // namespace
