#include "ir/print.h"

#include "ir/match.h"
#include "ir/options.h"
#include "ir/print_expr.h"
#include "ir/print_lines.h"
#include "ir/rewrite.h"

namespace tilewright::ir {
namespace {

void add_buffers(const Expr& e, std::set<BufferId>& buffers) {
  if (!e) return;
  walk(e, [&](const Expr& part) {
    if (const auto* load = part.as<Load>()) buffers.insert(load->buffer);
    if (const auto* address = part.as<Address>()) buffers.insert(address->buffer);
  });
}

class Printer {
 public:
  Printer(const ProgramTables& program, PrintOptions options);
  std::string run(const char* header);
  // Of the lines of what run() gave.
  std::vector<PrintedPlace> take_places() { return std::move(places_); }

 private:
  // ---- names
  std::string fresh_name(std::string_view base, const char* instead);
  std::string define(VarId id);
  std::string define(BufferId id);
  std::string typed(VarId id);  // "k" or "k: int64": int32 goes without saying
  void leave_scope(size_t depth);

  // ---- program
  void header();
  void launch(const Launch& launch, int32_t index);
  void declare(BufferId id);
  void declare_used(const std::set<BufferId>& used);
  bool can_declare(BufferId id);
  std::string buffer_text(const Buffer& buffer, bool tensor_param);
  std::string layout_text(const LayoutAnnotation& layout);

  // ---- statements
  void body(const Body& body);
  void block(const std::string& opening, const Body& body, LocationId location);
  void statement(const Stmt& stmt);
  void operator_text(const Stmt& stmt);
  void if_text(std::string opening, const If& node, LocationId location);
  std::string for_text(const For& node);
  std::string value_text(const Element& to, const Expr& value);
  template <class T>
  void generic(const T& node, LocationId location);

  // ---- fields
  template <class T>
  bool is_default(const T& value, const T& standard) const;
  template <class T>
  std::string fields_text(const T& node, const char* separator);
  template <class T>
  std::string field_text(const T& value, std::optional<DType> known);

  std::string at(LocationId location) const;
  void line(const std::string& text) { line(text, {}); }
  void line(const std::string& text, PrintedPlace place) {
    out_ += std::string(indent_ * 2, ' ') + text + '\n';
    places_.push_back(place);
  }
  // A line that begins a statement, and one that says a launch or a buffer, with its place.
  void statement_line(const std::string& text, LocationId location, const char* tail = "") {
    line(text + at(location) + tail, {location, true});
  }
  void table_line(const std::string& text, LocationId location, const char* tail = "") {
    line(text + at(location) + tail, {location, false});
  }

  const ProgramTables& program_;
  PrintOptions options_;
  std::string out_;
  std::vector<PrintedPlace> places_;  // of its lines
  size_t indent_ = 0;
  std::unordered_map<VarId, std::string> var_names_;
  std::unordered_map<BufferId, std::string> buffer_names_;
  std::unordered_set<std::string> visible_;
  std::vector<VarId> scope_;            // variables in order of definition: leaving a scope drops a tail
  std::set<BufferId> pending_buffers_;  // not declared yet
  // Of a loop program: the launch names them, its loops bind them.
  std::set<VarId> launch_vars_;
  bool is_loop_program_ = false;
  ExprPrinter exprs_;
};

Printer::Printer(const ProgramTables& program, PrintOptions options)
    : program_(program),
      options_(options),
      exprs_({
          [this](VarId id) {
            auto found = var_names_.find(id);
            return found == var_names_.end() ? fmt::format("?v{}", static_cast<int32_t>(id.index)) : found->second;
          },
          [this](BufferId id) {
            auto found = buffer_names_.find(id);
            return found == buffer_names_.end() ? fmt::format("?b{}", static_cast<int32_t>(id.index)) : found->second;
          },
          [this](BufferId id) { return id.index < program_.buffers.size() ? &program_.buffer(id) : nullptr; },
      }) {}

std::string Printer::fresh_name(std::string_view base, const char* instead) {
  const std::string wanted(base.empty() ? instead : base);
  std::string name = name_text(wanted);
  for (int n = 1; !visible_.insert(name).second; ++n) name = name_text(fmt::format("{}_{}", wanted, n));
  return name;
}

std::string Printer::define(VarId id) {
  if (id.index >= program_.vars.size()) return exprs_.name(id);
  if (launch_vars_.contains(id)) return exprs_.name(id);
  scope_.push_back(id);
  return var_names_[id] = fresh_name(program_.var(id).name, "v");
}

std::string Printer::define(BufferId id) { return buffer_names_[id] = fresh_name(program_.buffer(id).name, "b"); }

std::string Printer::typed(VarId id) {
  const std::string name = define(id);
  const bool unsaid = id.index >= program_.vars.size() || program_.var(id).type == i32;
  return unsaid ? name : fmt::format("{}: {}", name, program_.var(id).type.name());
}

void Printer::leave_scope(size_t depth) {
  while (scope_.size() > depth) {
    auto found = var_names_.find(scope_.back());
    if (found != var_names_.end()) {
      visible_.erase(found->second);
      var_names_.erase(found);
    }
    scope_.pop_back();
  }
}

std::string Printer::at(LocationId id) const {
  if (!options_.locations) return "";
  const bool exists = id.index < program_.locations.size();
  const SourceLocation& location = program_.locations[exists ? id.index : 0];
  if (!location.known()) return " @ unknown";
  return fmt::format(" @ {}:{}:{}", quoted(location.file, '"'), location.line, location.column);
}

// ---- program ------------------------------------------------------------------------------------------------------

std::string Printer::run(const char* header_words) {
  is_loop_program_ = std::string_view(header_words) == "loop program";
  line(fmt::format("{} {} {{", header_words, name_text(program_.name)));
  ++indent_;
  header();
  for (size_t i = 0; i < program_.launches.size(); ++i) launch(program_.launches[i], static_cast<int32_t>(i));
  --indent_;
  line("}");
  return std::move(out_);
}

void Printer::header() {
  std::set<BufferId> params;
  for (VarId symbol : program_.symbols) {
    const std::string name = define(symbol);
    line(fmt::format("symbol {}: {}", name, program_.var(symbol).type.name()));
  }
  for (const Param& param : program_.params) {  // all names first: a shape may mention a later parameter
    if (param.is_tensor())
      define(param.buffer), params.insert(param.buffer);
    else
      define(param.var);
  }
  for (const Param& param : program_.params) {
    if (param.is_tensor())
      table_line("param " + buffer_text(program_.buffer(param.buffer), true), program_.buffer(param.buffer).location);
    else
      line(fmt::format("param {}: {}", exprs_.name(param.var), program_.var(param.var).type.name()));
  }
  for (uint32_t i = 0; i < program_.buffers.size(); ++i)
    if (program_.buffers[i].launch < 0 && !params.contains(BufferId{i})) pending_buffers_.insert(BufferId{i});
  for (BufferId id : std::set<BufferId>(pending_buffers_))
    if (can_declare(id)) declare(id);
  for (const Assumption& a : program_.assumptions) table_line("assume " + exprs_.text(a.condition), a.location);
  const Options standard;
  for (const auto& [name, value] : kOptions)
    if (program_.options.*value != standard.*value) line(fmt::format("option {}={}", name, program_.options.*value));
}

void Printer::launch(const Launch& launch, int32_t index) {
  const size_t depth = scope_.size();
  std::string grid, threads;
  for (size_t d = 0; d < launch.grid.size(); ++d) {
    const std::string extent = exprs_.text(launch.grid[d]);
    const std::string var = d < launch.block.size() ? define(launch.block[d]) : "?";
    grid += fmt::format("{}{}: {}", d ? ", " : "", var, extent);
  }
  for (size_t d = 0; d < launch.threads.size(); ++d) {
    const std::string var = d < launch.thread.size() ? define(launch.thread[d]) : "?";
    threads += fmt::format("{}{}: {}", d ? ", " : "", var, launch.threads[d]);
  }
  if (is_loop_program_) {
    launch_vars_.insert(launch.block.begin(), launch.block.end());
    launch_vars_.insert(launch.thread.begin(), launch.thread.end());
  }
  std::string opening = fmt::format("launch {}({}) threads({})", name_text(launch.name), grid, threads);
  if (!launch.cluster.empty()) opening += fmt::format(" cluster({})", fmt::join(launch.cluster, ", "));
  if (launch.min_blocks != 0) opening += fmt::format(" min_blocks({})", launch.min_blocks);
  if (launch.swizzle.panel != 0 || launch.swizzle.order != RasterOrder::Row)
    opening += fmt::format(" swizzle({}, {})", launch.swizzle.panel, name_of(launch.swizzle.order));
  std::vector<std::string> plan;
  for (const std::string& fixed : launch.plan) plan.push_back(quoted(fixed, '"'));
  if (!plan.empty()) opening += fmt::format(" plan({})", fmt::join(plan, ", "));
  table_line(opening, launch.location, " {");
  ++indent_;
  std::vector<BufferId> own;
  for (uint32_t i = 0; i < program_.buffers.size(); ++i)
    if (program_.buffers[i].launch == index) own.push_back(BufferId{i});
  pending_buffers_.insert(own.begin(), own.end());
  for (BufferId id : own)
    if (pending_buffers_.contains(id) && can_declare(id)) declare(id);
  body(launch.body);
  --indent_;
  line("}");
  for (BufferId id : own) {
    pending_buffers_.erase(id);
    if (auto found = buffer_names_.find(id); found != buffer_names_.end()) {
      visible_.erase(found->second);
      buffer_names_.erase(found);
    }
  }
  launch_vars_.clear();
  leave_scope(depth);
}

// Whether everything that a buffer's row mentions has a name already.
bool Printer::can_declare(BufferId id) {
  const Buffer& buffer = program_.buffer(id);
  if (buffer.is_view() && !buffer_names_.contains(buffer.root)) return false;
  std::vector<Expr> mentioned = buffer.shape;
  mentioned.insert(mentioned.end(), buffer.strides.begin(), buffer.strides.end());
  mentioned.insert(mentioned.end(), {buffer.offset, buffer.cta, buffer.address, buffer.fill});
  bool named = true;
  for (const Expr& e : mentioned) {
    if (!e) continue;
    walk(e, [&](const Expr& part) {
      if (const auto* var = part.as<Var>()) named = named && var_names_.contains(var->id);
      if (const auto* load = part.as<Load>()) named = named && buffer_names_.contains(load->buffer);
      if (const auto* address = part.as<Address>()) named = named && buffer_names_.contains(address->buffer);
    });
  }
  return named;
}

void Printer::declare(BufferId id) {
  pending_buffers_.erase(id);
  const Buffer& buffer = program_.buffer(id);
  define(id);
  table_line(fmt::format("{} {}", name_of(buffer.space), buffer_text(buffer, false)), buffer.location);
}

// A buffer whose address or shape is computed in the body is declared before the first statement that uses it.
void Printer::declare_used(const std::set<BufferId>& used) {
  for (BufferId id : used) {
    if (!pending_buffers_.contains(id)) continue;
    const Buffer& buffer = program_.buffer(id);
    pending_buffers_.erase(id);
    std::set<BufferId> needed;
    if (buffer.is_view()) needed.insert(buffer.root);
    add_buffers(buffer.offset, needed);
    add_buffers(buffer.cta, needed);
    add_buffers(buffer.address, needed);
    declare_used(needed);
    declare(id);
  }
}

std::string Printer::layout_text(const LayoutAnnotation& layout) {
  if (layout.kind != LayoutHint::Function) return name_of(layout.kind);
  const size_t depth = scope_.size();
  std::string vars;
  for (VarId id : layout.vars) vars += (vars.empty() ? "" : ", ") + typed(id);
  std::string text = fmt::format("({}) -> ({})", vars, exprs_.list(layout.image));
  leave_scope(depth);
  return text;
}

std::string Printer::buffer_text(const Buffer& buffer, bool tensor_param) {
  const BufferId id{static_cast<uint32_t>(&buffer - program_.buffers.data())};
  std::string text = fmt::format("{}: {}", exprs_.name(id), buffer.type.name());
  if (tensor_param || !buffer.shape.empty()) text += fmt::format("[{}]", exprs_.list(buffer.shape));
  if (!buffer.strides.empty()) text += fmt::format(" strides=[{}]", exprs_.list(buffer.strides));
  if (buffer.is_view()) text += fmt::format(" view={}", exprs_.name(buffer.root));
  if (buffer.offset) text += fmt::format(" offset={}", exprs_.text(buffer.offset));
  if (buffer.cta) text += fmt::format(" cta={}", exprs_.text(buffer.cta));
  if (buffer.address) text += fmt::format(" address={}", exprs_.text(buffer.address));
  if (buffer.fill) text += fmt::format(" fill={}", exprs_.text(buffer.fill, buffer.type));
  if (buffer.reducer) text += fmt::format(" reducer={}", name_of(*buffer.reducer));
  if (!buffer.arrive_counts.empty()) text += fmt::format(" arrive=[{}]", fmt::join(buffer.arrive_counts, ", "));
  if (buffer.use != BarrierUse::None) text += fmt::format(" use={}", name_of(buffer.use));
  if (buffer.layout.kind != LayoutHint::None) text += fmt::format(" layout={}", layout_text(buffer.layout));
  if (buffer.layout.replicate != 1) text += fmt::format(" replicate={}", buffer.layout.replicate);
  if (buffer.workspace) text += " workspace";
  if (buffer.zeroed) text += " zeroed";
  if (buffer.alignment > 0) text += fmt::format(" alignment={}", buffer.alignment);
  if (buffer.place >= 0) text += fmt::format(" place={}", buffer.place);
  if (buffer.memory) text += fmt::format(" memory=\"{}\"", buffer.memory->text());
  return text;
}

// ---- statements ---------------------------------------------------------------------------------------------------

void Printer::body(const Body& body) {
  const size_t depth = scope_.size();
  for (const Stmt& stmt : body) statement(stmt);
  leave_scope(depth);
}

void Printer::block(const std::string& opening, const Body& inner, LocationId location) {
  statement_line(opening, location, " {");
  ++indent_;
  body(inner);
  --indent_;
  line("}");
}

void Printer::statement(const Stmt& stmt) {
  if (!pending_buffers_.empty()) {
    bool nested = false;
    for_each_body(stmt, [&](const Body&) { nested = true; });
    std::set<BufferId> used;
    if (!nested) used = used_buffers(Body{stmt});
    for_each_expr(stmt, [&](const Expr& e) { add_buffers(e, used); });
    declare_used(used);
  }
  operator_text(stmt);
}

// What a value stored to an element is known to be: the buffer's type.
std::string Printer::value_text(const Element& to, const Expr& value) {
  const Buffer* buffer = exprs_.row(to.buffer);
  return exprs_.text(value, buffer ? std::optional(buffer->type) : std::nullopt);
}

void Printer::operator_text(const Stmt& stmt) {
  const LocationId location = stmt->location;
  match(stmt->op,
        Overloaded{
            [&](const Let& node) {
              const bool exists = node.var.index < program_.vars.size();
              const DType type = exists ? program_.var(node.var).type : i32;
              const std::string value = exprs_.text(node.value, type);
              statement_line(fmt::format("{}: {} = {}", define(node.var), type.name(), value), location);
            },
            [&](const Store& node) {
              const std::string queue = node.queue == Queue::None ? "" : fmt::format("{} ", name_of(node.queue));
              statement_line(fmt::format("{}{} = {}", queue, exprs_.element(node.to.buffer, node.to.indices),
                                         value_text(node.to, node.value)),
                             location);
            },
            [&](const For& node) {
              const size_t depth = scope_.size();
              const std::string opening = for_text(node);
              block(opening, node.body, location);
              leave_scope(depth);
            },
            [&](const While& node) { block("while " + exprs_.text(node.condition), node.body, location); },
            [&](const If& node) { if_text("if ", node, location); },
            [&](const Map& node) {
              const size_t depth = scope_.size();
              std::string opening = "map ";
              std::vector<std::string> extents;
              for (size_t d = 0; d < node.extents.size(); ++d) {
                const bool exists = d < node.vars.size() && node.vars[d].index < program_.vars.size();
                extents.push_back(exprs_.text(node.extents[d], exists ? program_.var(node.vars[d]).type : i32));
              }
              for (size_t d = 0; d < std::max(node.vars.size(), node.extents.size()); ++d)
                opening += fmt::format("{}{} in {}", d ? ", " : "", d < node.vars.size() ? typed(node.vars[d]) : "?",
                                       d < extents.size() ? extents[d] : "?");
              block(opening, node.body, location);
              leave_scope(depth);
            },
            [&](const Role& node) { block(fmt::format("role {}..{}", node.begin, node.end), node.body, location); },
            [&](const Elect& node) { block("elect", node.body, location); },
            [&](const auto& node) { generic(node, location); },
        });
}

std::string Printer::for_text(const For& node) {
  const bool exists = node.var.index < program_.vars.size();
  const DType type = exists ? program_.var(node.var).type : i32;
  const std::string begin = exprs_.text(node.begin, type), extent = exprs_.text(node.extent, type);
  const bool from_zero = node.begin && node.begin->type == type && constant_int(node.begin) == 0;
  std::string text = "for " + typed(node.var) + " in ";
  text += from_zero ? fmt::format("0..{}", extent) : fmt::format("{} : {}", begin, extent);
  std::string details;
  if (node.stages != 0) details += fmt::format("stages={}", node.stages);
  if (node.factor != 0) details += fmt::format("factor={}", node.factor);
  if (node.lanes != 0) details += fmt::format("lanes={}", node.lanes);
  const auto list = [&](const char* name, const std::vector<int64_t>& values) {
    if (!values.empty())
      details += fmt::format("{}{}=[{}]", details.empty() ? "" : ", ", name, fmt::join(values, ", "));
  };
  list("order", node.order);
  list("stage", node.stage);
  if (node.kind != LoopKind::Serial || !details.empty()) text += fmt::format(" {}", name_of(node.kind));
  return details.empty() ? text : text + "(" + details + ")";
}

void Printer::if_text(std::string opening, const If& node, LocationId location) {
  statement_line(opening + exprs_.text(node.condition), location, " {");
  ++indent_;
  body(node.then_body);
  --indent_;
  if (node.else_body.empty()) return line("}");
  const If* chained = node.else_body.size() == 1 ? node.else_body[0].as<If>() : nullptr;
  std::set<BufferId> used;
  if (chained) add_buffers(chained->condition, used);
  const bool declares =
      std::any_of(used.begin(), used.end(), [&](BufferId id) { return pending_buffers_.contains(id); });
  if (chained && !declares) return if_text("} else if ", *chained, node.else_body[0]->location);
  line("} else {");
  ++indent_;
  body(node.else_body);
  --indent_;
  line("}");
}

template <class T>
void Printer::generic(const T& node, LocationId location) {
  std::string text = T::name, result;
  const Body* inner = nullptr;
  std::optional<DType> known;  // of `value` and `compare`: the type of the buffer that `to` names
  const T standard{};
  std::vector<const void*> standard_fields;
  T::fields(standard, [&](const char*, const auto& value) { standard_fields.push_back(&value); });
  size_t index = 0;
  T::fields(node, [&](std::string_view name, const auto& value) {
    using Field = std::decay_t<decltype(value)>;
    const auto& unset = *static_cast<const Field*>(standard_fields[index]);
    const bool leading = index++ == 0;
    if constexpr (std::is_same_v<Field, VarId>) {
      if (value.valid()) result = exprs_.name(value);
    } else if constexpr (std::is_same_v<Field, Body>) {
      inner = &value;
    } else {
      if constexpr (std::is_same_v<Field, Region> || std::is_same_v<Field, Element>) {
        const Buffer* buffer = exprs_.row(value.buffer);
        if (name == "to" && buffer) known = buffer->type;
      }
      const bool bare = leading && (std::is_enum_v<Field> || name == "condition");
      if (!bare && is_default(value, unset)) return;
      text += bare ? " " : fmt::format(" {}=", name);
      text += field_text(value, name == "value" || name == "compare" ? known : std::nullopt);
    }
  });
  T::fields(node, [&](const char*, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, VarId>) {
      if (!value.valid()) return;
      const std::string name = define(value);
      text = fmt::format("{}: {} = {}", name,
                         value.index < program_.vars.size() ? program_.var(value).type.name() : "?", text);
    }
  });
  if (inner) return block(text, *inner, location);
  statement_line(text, location);
}

// ---- fields -------------------------------------------------------------------------------------------------------

template <class T>
bool Printer::is_default(const T& value, const T& standard) const {
  if constexpr (std::is_same_v<T, Expr>) {
    return !value;
  } else if constexpr (IsVector<T>::value) {
    return value.empty();
  } else if constexpr (std::is_same_v<T, Region> || std::is_same_v<T, Element>) {
    return !value.valid();
  } else if constexpr (HasFields<T>) {
    std::vector<const void*> standards;
    T::fields(standard, [&](const char*, const auto& field) { standards.push_back(&field); });
    bool same = true;
    size_t index = 0;
    T::fields(value, [&](const char*, const auto& field) {
      same = is_default(field, *static_cast<const std::decay_t<decltype(field)>*>(standards[index++])) && same;
    });
    return same;
  } else {
    return value == standard;
  }
}

template <class T>
std::string Printer::fields_text(const T& node, const char* separator) {
  std::string text;
  const T standard{};
  std::vector<const void*> standards;
  T::fields(standard, [&](const char*, const auto& field) { standards.push_back(&field); });
  size_t index = 0;
  T::fields(node, [&](const char* name, const auto& field) {
    if (is_default(field, *static_cast<const std::decay_t<decltype(field)>*>(standards[index++]))) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : separator, name, field_text(field, {}));
  });
  return text;
}

template <class T>
std::string Printer::field_text(const T& value, std::optional<DType> known) {
  if constexpr (std::is_same_v<T, Expr>) {
    return exprs_.text(value, known);
  } else if constexpr (std::is_same_v<T, Region>) {
    return exprs_.region(value);
  } else if constexpr (std::is_same_v<T, Element>) {
    return exprs_.element(value.buffer, value.indices);
  } else if constexpr (std::is_same_v<T, BufferId>) {
    return exprs_.name(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return quoted(value, '"');
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return fmt::format("{}", value);
  } else if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else if constexpr (IsVector<T>::value) {
    std::string text;
    for (const auto& item : value) text += (text.empty() ? "" : ", ") + field_text(item, {});
    return "[" + text + "]";
  } else {
    return "(" + fields_text(value, ", ") + ")";
  }
}

// Names as the tables have them, for messages.
ExprPrinter plain_names(const ProgramTables& program) {
  return ExprPrinter({
      [&](VarId id) { return id.index < program.vars.size() ? program.var(id).name : "?"; },
      [&](BufferId id) { return id.index < program.buffers.size() ? program.buffer(id).name : "?"; },
      [&](BufferId id) { return id.index < program.buffers.size() ? &program.buffer(id) : nullptr; },
  });
}

}  // namespace

std::string print(const TileProgram& program, PrintOptions options) { return Printer(program, options).run("program"); }

std::string print(const LoopProgram& program, PrintOptions options) {
  return Printer(program, options).run("loop program");
}
std::string print(const ThreadProgram& program, PrintOptions options) {
  return Printer(program, options).run("thread program");
}

namespace {

PrintedLines lines_of(const ProgramTables& program, const char* header) {
  Printer printer(program, {});
  PrintedLines out;
  out.text = printer.run(header), out.places = printer.take_places();
  return out;
}

}  // namespace

PrintedLines print_lines(const TileProgram& program) { return lines_of(program, "program"); }
PrintedLines print_lines(const LoopProgram& program) { return lines_of(program, "loop program"); }
PrintedLines print_lines(const ThreadProgram& program) { return lines_of(program, "thread program"); }

std::string print(const Expr& e, const ProgramTables& program) { return plain_names(program).text(e); }
std::string print(const Region& region, const ProgramTables& program) { return plain_names(program).region(region); }

}  // namespace tilewright::ir
