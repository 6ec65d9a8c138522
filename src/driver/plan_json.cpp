#include "driver/plan_json.h"

namespace tilewright {

using Json = nlohmann::ordered_json;

std::string expression_text(const runtime::IntProgram& e, const runtime::LaunchPlan& plan) {
  std::vector<std::string> symbols, scalars;
  for (const runtime::Symbol& s : plan.symbols) symbols.push_back(s.name);
  for (const runtime::Parameter& p : plan.parameters)
    if (p.kind == runtime::Parameter::Kind::Scalar) scalars.push_back(p.name);
  return runtime::to_string(e, symbols, scalars);
}

Json plan_json(const runtime::LaunchPlan& plan) {
  auto text = [&](const runtime::IntProgram& p) { return expression_text(p, plan); };
  auto texts = [&](const std::vector<runtime::IntProgram>& list) {
    Json out = Json::array();
    for (const runtime::IntProgram& p : list) out.push_back(text(p));
    return out;
  };
  Json out = {{"name", plan.name}, {"parameters", Json::array()}, {"symbols", Json::array()}};
  for (const runtime::Parameter& p : plan.parameters) {
    Json row = {{"name", p.name}, {"dtype", p.dtype.name()}};
    if (p.kind == runtime::Parameter::Kind::Tensor) {
      row["shape"] = texts(p.shape);
      if (!p.strides.empty()) row["strides"] = texts(p.strides);
    }
    out["parameters"].push_back(std::move(row));
  }
  for (const runtime::Symbol& s : plan.symbols) {
    const char* source = s.source == runtime::Equation::Source::Shape ? "shape" : "strides";
    Json row = {
        {"name", s.name},
        {"from", fmt::format("{}.{}[{}]", plan.parameters[static_cast<size_t>(s.parameter)].name, source, s.dim)}};
    if (s.coefficient != 1) row["coefficient"] = s.coefficient;
    if (!s.rest.ops.empty()) row["rest"] = text(s.rest);
    out["symbols"].push_back(std::move(row));
  }
  out["assumes"] = Json::array(), out["workspaces"] = Json::array();
  for (const runtime::AssumeCheck& a : plan.assumes) out["assumes"].push_back(text(a.condition));
  for (const runtime::Workspace& w : plan.workspaces)
    out["workspaces"].push_back({{"name", w.name}, {"dtype", w.dtype.name()}, {"elements", text(w.size)}});
  return out;
}

}  // namespace tilewright
