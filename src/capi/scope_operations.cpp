// Launches, loops and branches: what opens has its close. Also the options of a program, and mistakes that only a
// frontend can see.
#include "capi/operations.h"
#include "ir/options.h"
#include "support/diagnostic.h"

namespace tilewright::capi {
namespace {

Result open_launch(const Operation&, const Operands& o) {
  ir::LaunchOptions options;
  if (o.given(1)) options.threads = o.integers(1);
  options.cluster = o.integers(2);
  const std::vector<std::string> names = o.texts(3);
  for (size_t d = 0; d < names.size() && d < options.block_names.size(); ++d) options.block_names[d] = names[d];
  return o.builder().open_launch(o.exprs(0), std::move(options));
}

Result open_for(const Operation&, const Operands& o) {
  ir::LoopOptions options;
  options.step = o.expr_or_none(3);
  options.kind = static_cast<ir::LoopKind>(o.word(4, {"serial", "unroll", "vectorized", "pipelined"}));
  options.stages = o.integer(5, 0);
  options.order = o.integers(6), options.stage = o.integers(7);
  options.factor = o.integer(8, 0);
  return o.builder().open_for(o.text(0), o.expr(1), o.expr(2), std::move(options));
}

Result set_option(const Operation&, const Operands& o) {
  ir::set_option(o.builder().options(), o.text(0), o.flag(1, true), o.place());
  return {};
}

// The codes that only a frontend can raise, by their names.
constexpr std::pair<std::string_view, Code> kFrontendCodes[] = {
    {"UnknownOperation", Code::UnknownOperation},
    {"NameEnded", Code::NameEnded},
    {"UnsupportedSyntax", Code::UnsupportedSyntax},
    {"ValueNotKnown", Code::ValueNotKnown},
    {"ParameterType", Code::ParameterType},
    {"SourceMissing", Code::SourceMissing},
    {"ConstantUnknown", Code::ConstantUnknown},
    {"OutputIndex", Code::OutputIndex},
    {"OutputNeverWritten", Code::OutputNeverWritten},
    {"ReturnValue", Code::ReturnValue},
    {"OutsideProgram", Code::OutsideProgram},
    {"BadOption", Code::BadOption},
    {"LayoutFunction", Code::LayoutFunction},
    {"LayoutSpace", Code::LayoutSpace},
    {"GemmType", Code::GemmType},
    {"GemmInner", Code::GemmInner},
    {"OperandKind", Code::OperandKind},
    {"IndexCount", Code::IndexCount},
    {"OutsideKernel", Code::OutsideKernel},
    {"BarrierCount", Code::BarrierCount},
    {"NeedsBarrier", Code::NeedsBarrier},
    {"NeedsElement", Code::NeedsElement},
    {"NoCommonType", Code::NoCommonType},
    {"BadBitcast", Code::BadBitcast},
    {"ReducerOp", Code::ReducerOp},
    {"ReduceType", Code::ReduceType},
    {"ReduceShape", Code::ReduceShape},
    {"UnknownDtype", Code::UnknownDtype},
    {"ArgumentCount", Code::ArgumentCount},
    {"ArgumentKind", Code::ArgumentKind},
    {"ArgumentRank", Code::ArgumentRank},
    {"ArgumentShape", Code::ArgumentShape},
    {"ArgumentDtype", Code::ArgumentDtype},
    {"GradientLost", Code::GradientLost},
    {"FileNotReadable", Code::FileNotReadable},
    {"FileNotWritten", Code::FileNotWritten},
    {"ScalarRange", Code::ScalarRange},
};

Result report(const Operation&, const Operands& o) {
  const std::string name = o.text(0);
  for (const auto& [known, code] : kFrontendCodes)
    if (known == name) fail(code, o.place(), o.text(1), o.text(2));
  fail(Code::UnknownOperation, o.place(), fmt::format("fail: no frontend raises '{}'", name));
}

}  // namespace

void add_scope_operations(std::vector<Operation>& table) {
  const std::vector<Operation> rows = {
      {"open_launch", "scope", "grid: exprs, threads: list = None, cluster: list = None, names: list = None",
       "A launch; gives the block indices.", open_launch},
      {"close_launch", "scope", "", "Ends the launch.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().close_launch();
         return {};
       }},
      {"open_for", "scope",
       "name: text, begin: expr, end: expr, step: expr = None, kind: text = 'serial', stages: int = 0, "
       "order: list = None, stage: list = None, factor: int = 0",
       "A loop; gives its index.", open_for},
      {"open_map", "scope", "names: list, extents: exprs", "Every point of a box once, in no order; gives the point.",
       [](const Operation&, const Operands& o) -> Result { return o.builder().open_map(o.texts(0), o.exprs(1)); }},
      {"open_persistent", "scope", "names: list, domain: exprs, workers: expr, index: expr, group: int = 8",
       "The share of one worker of the points of a box; gives the point.",
       [](const Operation&, const Operands& o) -> Result {
         return o.builder().open_persistent(o.texts(0), o.exprs(1), o.expr(2), o.expr(3), o.integer(4, 8));
       }},
      {"open_while", "scope", "condition: expr, since: int = -1",
       "A loop while the condition holds; every turn begins with the statements of this body from `since` on.",
       [](const Operation&, const Operands& o) -> Result {
         const int64_t since = o.integer(1, -1);
         o.builder().open_while(o.expr(0), since < 0 ? SIZE_MAX : static_cast<size_t>(since));
         return {};
       }},
      {"open_if", "scope", "condition: expr", "A branch.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().open_if(o.expr(0));
         return {};
       }},
      {"open_else", "scope", "", "The other side of the branch that has just been closed.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().open_else();
         return {};
       }},
      {"open_role", "scope", "begin: int, end: int", "Statements for threads [begin, end) alone.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().open_role(o.integer(0), o.integer(1));
         return {};
       }},
      {"open_groups", "scope", "warpgroups: list", "Statements for these groups of 128 threads alone.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().open_groups(o.integers(0));
         return {};
       }},
      {"close", "scope", "", "Ends the innermost loop, branch or role.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().close();
         return {};
       }},
      {"depth", "scope", "", "How many loops, branches and roles are open.",
       [](const Operation&, const Operands& o) -> Result { return static_cast<int64_t>(o.builder().depth()); }},
      {"statements", "scope", "", "How many statements the innermost of them has so far.",
       [](const Operation&, const Operands& o) -> Result { return static_cast<int64_t>(o.builder().statements()); }},
      {"in_launch", "scope", "", "Whether a launch is open.",
       [](const Operation&, const Operands& o) -> Result { return int64_t{o.builder().in_launch()}; }},
      {"set_option", "scope", "name: text, value: bool",
       "contract, fast_math, strict, tf32 or zero_unwritten of the program.", set_option},
      {"fail", "scope", "code: text, message: text, help: text = ''", "Fails with a mistake that a frontend found.",
       report},
      {"loop_break", "thread", "", "Leaves the innermost loop: this thread only.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().break_loop();
         return {};
       }},
      {"loop_continue", "thread", "", "Leaves this round of the innermost loop: this thread only.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().continue_loop();
         return {};
       }},
      {"thread_return", "thread", "", "This thread is done with the launch.",
       [](const Operation&, const Operands& o) -> Result {
         o.builder().return_thread();
         return {};
       }},
  };
  table.insert(table.end(), rows.begin(), rows.end());
}

}  // namespace tilewright::capi
