// Programs, launches and buffers of .tile text, and what all parts of the parser share: tokens, names, locations.
#include "ir/parse.h"

#include <charconv>

#include "ir/options.h"
#include "ir/parse_text.h"

namespace tilewright::ir {
namespace {

// Deeper than any program; shallow enough for the stack of a thread, sanitizers included.
constexpr int kMaxNesting = 400;

}  // namespace

Parser::Parser(std::string_view text, std::string file) : file_(std::move(file)), tokens_(tokenize(text, file_)) {}

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (++parser.nesting_ > kMaxNesting) {
    --parser.nesting_;
    fail(Code::TextNesting, parser.place(parser.peek()), fmt::format("nested more than {} levels deep", kMaxNesting));
  }
}

// ---- tokens -------------------------------------------------------------------------------------------------------

const Token& Parser::take() {
  const Token& token = peek();
  if (token.kind != TokenKind::End) ++next_;
  return token;
}

bool Parser::take_if(std::string_view symbol_or_word) {
  if (!peek().is(symbol_or_word)) return false;
  take();
  return true;
}

const Token& Parser::expect(std::string_view symbol_or_word, const char* where) {
  if (!peek().is(symbol_or_word)) fail_expected(fmt::format("'{}' {}", symbol_or_word, where).c_str(), peek());
  return take();
}

void Parser::fail_expected(const char* what, const Token& found) const {
  const std::string text = found.kind == TokenKind::End ? "the end of the text" : fmt::format("'{}'", found.text);
  fail(Code::TextExpected, place(found), fmt::format("expected {}, but found {}", what, text));
}

std::string Parser::spelled(const Token& token) const {
  return token.kind == TokenKind::Name ? std::string(token.text) : unquoted(token, file_);
}

std::string Parser::name(const char* what) {
  const Token& token = take();
  if (!token.is_name()) fail_expected(what, token);
  return spelled(token);
}

std::string Parser::string() {
  const Token& token = take();
  if (token.kind != TokenKind::String) fail_expected("a string", token);
  return unquoted(token, file_);
}

int64_t Parser::integer(const char* what) {
  const bool negative = take_if("-");
  const Token& token = take();
  if (token.kind != TokenKind::Int) fail_expected(what, token);
  const std::string digits = (negative ? "-" : "") + std::string(token.text);
  int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec == std::errc::result_out_of_range)
    fail(Code::TextNumberRange, place(token), fmt::format("{} does not fit 64 bits", digits));
  if (result.ptr != digits.data() + digits.size()) fail_expected(what, token);
  return value;
}

DType Parser::type() {
  const Token& token = take();
  if (!token.is_name()) fail_expected("a data type", token);
  auto type = parse_dtype(token.text);
  if (!type) fail(Code::TextUnknownType, place(token), fmt::format("no data type is called '{}'", token.text));
  return *type;
}

LocationId Parser::add_location(SourceLocation location) {
  const std::tuple key(location.file, location.line, location.column);
  auto [row, is_new] = locations_.try_emplace(key, static_cast<uint32_t>(program_.locations.size()));
  if (is_new) program_.locations.push_back(std::move(location));
  return LocationId{row->second};
}

LocationId Parser::location_of(const Token& token) { return add_location(place(token)); }

LocationId Parser::location_after(const Token& begin) {
  if (!take_if("@")) return location_of(begin);
  if (take_if("unknown")) return {};
  SourceLocation location;
  const auto number = [&](const char* what) {
    const Token& at = peek();
    const int64_t value = integer(what);
    if (value < 0 || value > INT32_MAX)
      fail(Code::TextNumberRange, place(at), fmt::format("{} is no line or column", value));
    return static_cast<int>(value);
  };
  location.file = string();
  expect(":", "after the file of a location");
  location.line = number("a line");
  expect(":", "after the line of a location");
  location.column = number("a column");
  return add_location(std::move(location));
}

// ---- names --------------------------------------------------------------------------------------------------------

const Parser::Named* Parser::find(const std::string& name) const {
  auto found = names_.find(name);
  return found == names_.end() ? nullptr : &found->second;
}

void Parser::check_free(const std::string& name, const Token& at) const {
  if (find(name) && !launch_vars_.contains(name))
    fail(Code::TextNameTaken, place(at), fmt::format("'{}' is defined already", name),
         "names do not shadow: choose another");
}

VarId Parser::define_var(const std::string& name, DType type, const Token& at) {
  check_free(name, at);
  if (auto own = launch_vars_.find(name); own != launch_vars_.end()) {
    if (type != i32) fail(Code::TextNameTaken, place(at), fmt::format("'{}' is int32 in this launch", name));
    return own->second;
  }
  const VarId id = program_.new_var(name, type);
  names_[name] = Named{false, id, {}};
  scope_.push_back(name);
  return id;
}

BufferId Parser::define_buffer(Buffer buffer, const Token& at) {
  check_free(buffer.name, at);
  if (launch_vars_.contains(buffer.name))
    fail(Code::TextNameTaken, place(at), fmt::format("'{}' is an index of this launch", buffer.name));
  const std::string name = buffer.name;
  if (buffer.launch >= 0) launch_buffers_.push_back(name);
  const BufferId id = program_.new_buffer(std::move(buffer));
  names_[name] = Named{true, {}, id};
  return id;
}

BufferId Parser::buffer_named(const char* what) {
  const Token& token = take();
  if (!token.is_name()) fail_expected(what, token);
  const Named* found = find(spelled(token));
  if (!found) fail(Code::TextUnknownName, place(token), fmt::format("nothing in scope is called '{}'", spelled(token)));
  if (!found->is_buffer)
    fail(Code::TextNotBuffer, place(token),
         fmt::format("'{}' is a variable, but a buffer belongs here", spelled(token)),
         "variables do not change: a mutable scalar is a buffer without dimensions, local x: int32");
  return found->buffer;
}

void Parser::leave_scope(size_t depth) {
  while (scope_.size() > depth) {
    names_.erase(scope_.back());
    scope_.pop_back();
  }
}

// ---- program ------------------------------------------------------------------------------------------------------

TileProgram Parser::program(std::string_view header_words) {
  is_loop_program_ = header_words == "loop program";
  const Token& begin = peek();
  const bool two_words = (begin.is("loop") || begin.is("thread")) && peek(1).is("program");
  const std::string found = two_words ? fmt::format("{} program", begin.text) : "program";
  if (found != header_words && (two_words || begin.is("program")))
    fail(Code::TextLevel, place(begin), fmt::format("the text is a {}, but a {} was asked for", found, header_words));
  if (two_words) take();
  expect("program", "at the begin of the text");
  program_.name = name("the name of the program");
  expect("{", "after the name of the program");
  header();
  while (!peek().is("}")) launch();
  take();
  if (peek().kind != TokenKind::End)
    fail(Code::TextAfterEnd, place(peek()), fmt::format("'{}' stands after the end of the program", peek().text),
         "a file holds one program");
  return std::move(program_);
}

void Parser::header() {
  announce_scalars();
  while (!peek().is("}") && !peek().is("launch")) {
    const Token& at = take();
    if (at.is("symbol")) {
      program_.symbols.push_back(scalar());
    } else if (at.is("param")) {
      param();
    } else if (at.is("assume")) {
      Expr fact = condition();
      program_.assumptions.push_back({std::move(fact), location_after(at)});
    } else if (at.is("option")) {
      option();
    } else if (at.kind == TokenKind::Name && peek().is_name()) {
      --next_;
      buffer(word<Space>("memory space, symbol, param, assume, option or launch"), false);
    } else {
      fail_expected("symbol, param, assume, option, a buffer, launch or }", at);
    }
  }
}

// A shape may mention a scalar parameter that comes later: all scalars of the header are defined first.
void Parser::announce_scalars() {
  const size_t begin = next_;
  for (; peek().kind != TokenKind::End && !peek().is("launch"); take()) {
    const bool declares = (peek().is("param") || peek().is("symbol")) && peek(1).is_name() && peek(2).is(":");
    if (!declares || !peek(3).is_name() || peek(4).is("[")) continue;
    take();
    const size_t at = next_;
    const VarId id = scalar();
    announced_[at] = id;
    --next_;  // the loop takes the type
  }
  next_ = begin;
}

// name: type
VarId Parser::scalar() {
  const Token& at = peek();
  auto announced = announced_.find(next_);
  const std::string scalar_name = name("a name");
  expect(":", "after the name");
  const DType scalar_type = type();
  return announced != announced_.end() ? announced->second : define_var(scalar_name, scalar_type, at);
}

void Parser::param() {
  Param param;
  if (peek().is_name() && peek(1).is(":") && peek(2).is_name() && !peek(3).is("["))
    param.var = scalar();
  else
    param.buffer = buffer(Space::Global, true);
  program_.params.push_back(param);
}

void Parser::option() {
  const Token& at = peek();
  const std::string key = name("the name of an option");
  expect("=", "after the name of the option");
  bool value = false;
  field(value, {});
  set_option(program_.options, key, value, place(at));
}

std::vector<int64_t> Parser::extents_in_parentheses() {
  std::vector<int64_t> extents;
  expect("(", "before the extents");
  do extents.push_back(integer("an extent"));
  while (take_if(","));
  expect(")", "after the extents");
  return extents;
}

void Parser::launch() {
  const size_t depth = scope_.size();
  const Token& at = expect("launch", "or } after the header");
  Launch launch;
  launch.name = name("the name of the launch");
  expect("(", "before the grid");
  do {
    const Token& var_at = peek();
    const std::string var = name("the name of a block index");
    check_free(var, var_at);
    expect(":", "after the name of the block index");
    launch.grid.push_back(expression());
    launch.block.push_back(define_var(var, i32, var_at));
  } while (take_if(","));
  expect(")", "after the grid");
  expect("threads", "after the grid");
  expect("(", "before the threads");
  do {
    const Token& var_at = peek();
    const std::string var = name("the name of a thread index");
    expect(":", "after the name of the thread index");
    launch.threads.push_back(integer("the number of threads"));
    launch.thread.push_back(define_var(var, i32, var_at));
  } while (take_if(","));
  expect(")", "after the threads");
  if (take_if("cluster")) launch.cluster = extents_in_parentheses();
  if (take_if("min_blocks")) {
    expect("(", "before the number of blocks");
    launch.min_blocks = integer("the least blocks of a multiprocessor");
    expect(")", "after the number of blocks");
  }
  if (take_if("swizzle")) {
    expect("(", "before the panel");
    launch.swizzle.panel = integer("the panel of the swizzle");
    expect(",", "after the panel");
    launch.swizzle.order = word<RasterOrder>("order of blocks");
    expect(")", "after the order");
  }
  if (take_if("plan")) {
    expect("(", "before the lines of the plan");
    do launch.plan.push_back(string());
    while (take_if(","));
    expect(")", "after the lines of the plan");
  }
  launch.location = location_after(at);
  if (is_loop_program_)
    for (const auto* vars : {&launch.block, &launch.thread})
      for (VarId id : *vars) launch_vars_[program_.var(id).name] = id;
  launch_ = static_cast<int32_t>(program_.launches.size());
  launch.body = block();
  program_.launches.push_back(std::move(launch));
  launch_ = -1;
  for (const std::string& buffer : launch_buffers_) names_.erase(buffer);
  launch_buffers_.clear();
  launch_vars_.clear();
  leave_scope(depth);
}

// ---- buffers ------------------------------------------------------------------------------------------------------

BufferId Parser::buffer(Space space, bool is_param) {
  const Token& at = peek();
  Buffer b;
  b.space = space;
  b.name = name("the name of the buffer");
  check_free(b.name, at);
  expect(":", "after the name of the buffer");
  b.type = type();
  if (is_param) expect("[", "before the shape");
  if (is_param || take_if("[")) b.shape = expressions_until("]");
  b.launch = space == Space::Global ? -1 : launch_;
  std::set<std::string> seen;
  while (peek().is_name() && !peek().first_on_line) {
    const Token& attribute_at = peek();
    const std::string attribute = name("a property of the buffer");
    if (!seen.insert(attribute).second)
      fail(Code::TextRepeatedField, place(attribute_at), fmt::format("'{}' is given twice", attribute));
    buffer_attribute(b, attribute, attribute_at);
  }
  b.location = location_after(at);
  return define_buffer(std::move(b), at);
}

void Parser::buffer_attribute(Buffer& b, const std::string& attribute, const Token& at) {
  if (attribute == "workspace" || attribute == "zeroed") {
    (attribute == "zeroed" ? b.zeroed : b.workspace) = true;
    return;
  }
  static constexpr std::string_view kAttributes[] = {"strides",   "view",      "offset", "cta",   "address",
                                                     "fill",      "reducer",   "arrive", "use",   "layout",
                                                     "replicate", "alignment", "place",  "memory"};
  if (std::find(std::begin(kAttributes), std::end(kAttributes), attribute) == std::end(kAttributes))
    fail(Code::TextUnknownField, place(at), fmt::format("a buffer has no property '{}'", attribute),
         fmt::format("it has: {}, workspace, zeroed", fmt::join(kAttributes, ", ")));
  expect("=", "after the name of the property");
  if (attribute == "strides") field(b.strides, {});
  if (attribute == "view") b.root = buffer_named("the buffer that is viewed");
  if (attribute == "offset") b.offset = expression();
  if (attribute == "cta") b.cta = expression();
  if (attribute == "address") b.address = expression();
  if (attribute == "fill") b.fill = expression(b.type);
  if (attribute == "reducer") b.reducer = word<ReduceOp>("reduction");
  if (attribute == "arrive") field(b.arrive_counts, {});
  if (attribute == "use") b.use = word<BarrierUse>("use of barriers");
  if (attribute == "layout") b.layout = layout();
  if (attribute == "alignment") b.alignment = integer("the alignment of the buffer in bytes");
  if (attribute == "memory") {
    const SourceLocation where = place(peek());
    b.memory = parse_memory_layout(string(), where);
  }
  if (attribute == "place") b.place = integer("the place of the buffer in shared memory");
  if (attribute == "replicate") b.layout.replicate = integer("how often the fragment is replicated");
}

LayoutAnnotation Parser::layout() {
  LayoutAnnotation layout;
  if (!take_if("(")) {
    layout.kind = word<LayoutHint>("layout");
    return layout;
  }
  const size_t depth = scope_.size();
  layout.kind = LayoutHint::Function;
  if (!take_if(")")) {
    do {
      const Token& at = peek();
      const std::string var = name("a variable of the layout");
      layout.vars.push_back(define_var(var, take_if(":") ? type() : i32, at));
    } while (take_if(","));
    expect(")", "after the variables of the layout");
  }
  expect("->", "before the image of the layout");
  expect("(", "before the image of the layout");
  layout.image = expressions_until(")");
  leave_scope(depth);
  return layout;
}

TileProgram parse(std::string_view text, std::string file_name) {
  return Parser(text, std::move(file_name)).program("program");
}

LoopProgram parse_loop_program(std::string_view text, std::string file_name) {
  return with_level<LoopProgram>(Parser(text, std::move(file_name)).program("loop program"));
}

ThreadProgram parse_thread_program(std::string_view text, std::string file_name) {
  return with_level<ThreadProgram>(Parser(text, std::move(file_name)).program("thread program"));
}

}  // namespace tilewright::ir
