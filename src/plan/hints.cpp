#include "plan/hints.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <span>

#include <fmt/ranges.h>

#include "ir/stmt.h"
#include "plan/schedule.h"
#include "plan/words.h"
#include "support/diagnostic.h"

namespace tilewright::plan {

namespace {

constexpr int64_t kMostSlots = 64;  // of a ring

// Words of a line, without commas; behind a colon stands a reason, for people.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == ':') break;
    if (c != ' ' && c != ',' && c != '\t')
      out.back() += c;
    else if (!out.back().empty())
      out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

class Reader {
 public:
  explicit Reader(const SourceLocation& at) : at_(at) {}

  Hints run(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) read(line);
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& help) const {
    fail(Code::GpuPlan, at_, fmt::format("no plan has the line '{}': {}", line_, what), help);
  }
  void read(const std::string& line) {
    line_ = line, words_ = words_of(line), next_ = 0;
    if (words_.empty()) return;
    const std::string kind = take();
    // What was rejected is for people, and follows from the rest; but a launch may be wanted without a loader.
    const bool demands = kind != "not" || words_.back() == "loader";
    if (demands) out_.lines.push_back(line);
    if (kind == "fit")
      fit();
    else if (kind == "work")
      work();
    else if (kind == "role")
      role();
    else if (kind == "ring")
      ring();
    else if (kind == "overlap")
      fix(out_.overlap, one_of(std::array{"no", "yes"}) == 1);
    else if (kind == "epilogue")
      epilogue();
    else if (kind == "not")
      rejected();
    else if (kind == "clear")
      rest_is(std::array{"in gemms"});
    else if (kind == "order")
      order();
    else
      refuse(fmt::format("'{}' is no part of one", kind),
             "lines begin with fit, work, role, ring, overlap, order, epilogue, clear in gemms, or not a loader");
    if (next_ < words_.size()) refuse(fmt::format("'{}' says nothing there", words_[next_]), kSeePrinted);
  }
  static constexpr const char* kSeePrinted = "tilewright compile FILE --stage plan prints the lines of a plan";

  std::string take() {
    if (next_ == words_.size()) refuse("it ends too early", kSeePrinted);
    return words_[next_++];
  }
  bool take_if(const char* word) {
    const bool is_next = next_ < words_.size() && words_[next_] == word;
    next_ += is_next;
    return is_next;
  }
  size_t one_of(std::span<const char* const> choices) {
    const std::string word = take();
    const auto found = std::ranges::find(choices, word);
    if (found == choices.end()) refuse(fmt::format("'{}' is none of {}", word, fmt::join(choices, ", ")), kSeePrinted);
    return static_cast<size_t>(found - choices.begin());
  }
  void rest_is(std::span<const char* const> choices) {
    const std::string rest = fmt::format("{}", fmt::join(words_.begin() + 1, words_.end(), " "));
    if (std::ranges::find(choices, rest) == choices.end())
      refuse(fmt::format("'{}' is no part of one", rest), kSeePrinted);
    next_ = words_.size();
  }
  // The text behind name= if that is the next word.
  std::optional<std::string> field(const std::string& name) {
    if (next_ == words_.size() || !words_[next_].starts_with(name + "=")) return std::nullopt;
    return words_[next_++].substr(name.size() + 1);
  }
  std::optional<int64_t> number(const std::string& name, int64_t least, int64_t most, int64_t unit = 1) {
    const auto text = field(name);
    if (!text) return std::nullopt;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size() || value < least || value > most ||
        value % unit != 0)
      refuse(fmt::format("{} is '{}'", name, *text),
             fmt::format("it is a {} from {} to {}", unit == 1 ? "number" : fmt::format("multiple of {}", unit), least,
                         most));
    return value;
  }
  void derived(const std::vector<const char*>& names) {
    for (const char* name : names) field(name);
  }

  template <class T>
  void fix(std::optional<T>& what, T value) {
    if (what && *what != value) refuse("another line says otherwise", "leave one of them");
    what = value;
  }

  void fit() {
    if (take_if("none")) {
      out_.own_threads_and_steps = true;
      return;
    }
    out_.half_steps_of = field("half_steps");
    out_.wide_steps_of = field("wide_steps");
    derived({"at_once"});
    out_.threads = number("threads", 128, 256, 128);
    derived({"live", "of"});
    if (!out_.half_steps_of && !out_.wide_steps_of && !out_.threads)
      refuse("it changes neither steps nor threads", kSeePrinted);
  }
  void rejected() {
    std::vector<const char*> choices = {Rejection::kLoader, Rejection::kIterationTeams, Rejection::kStaging,
                                        Rejection::kOverlap};
    for (const Schedule* s : kSchedules) choices.push_back(s->word);
    rest_is(choices), out_.no_loader = out_.no_loader || words_[1] == "a";
  }
  // A kind of schedule in the place of the kind of work leaves the grid's blocks one tile each, as far as others see.
  void work() {
    std::vector<const char*> choices(kWorkWords.begin(), kWorkWords.end());
    std::vector<const Schedule*> instead(choices.size(), nullptr);
    for (const Schedule* s : kSchedules)
      if (s->is_work) choices.push_back(s->word), instead.push_back(s);
    const size_t chosen = one_of(choices);
    fix(work_, chosen);
    const Schedule* own = instead[chosen];
    out_.work = own ? Work::Kind::OneTile : static_cast<Work::Kind>(chosen);
    if (out_.work == Work::Kind::Persistent) out_.blocks = number("blocks", 1, 1 << 20);
    if (own) schedule(*own);
    const bool several_tiles = own && own->several_tiles;
    if (!several_tiles && take_if("reverse_odd_waves")) out_.reverse_odd_waves = true;
    for (const bool drawn : {false, true})
      if (!own && take_if(word(kNextTileWords, drawn) + 1)) fix(out_.drawn, drawn);
    if (out_.work != Work::Kind::Persistent && !several_tiles)
      fix(out_.blocks_per_multiprocessor, number("blocks_per_multiprocessor", 1, 2).value_or(1));
    for (const Schedule* s : kSchedules)
      if (s->find && !s->is_work && !own) schedule(*s);
  }
  void schedule(const Schedule& s) {
    const Schedule::Field& f = s.field;
    Wish wish{&s};
    if (f.most > 0)
      wish.number = number(f.name, f.least, f.most);
    else
      wish.tile = field(f.name);
    const bool open = !wish.number && !wish.tile;
    if (open && f.missing) refuse(f.missing, fmt::format("work {} {}={}", s.word, f.name, f.least));
    if (!open || s.is_work) out_.wish(std::move(wish));
  }
  void role() {
    const bool loads = static_cast<Role::Job>(one_of(kJobWords)) == Role::Job::Load;
    derived({"warps"});
    using Registers = ir::SetRegisters;
    if (const auto registers = number("registers", Registers::kFewest, Registers::kMost, Registers::kUnit))
      (loads ? out_.load_registers : out_.compute_registers) = registers;
    derived({"loading"});
    if (loads) return;
    for (const Role::Takes takes : {Role::Takes::All, Role::Takes::TilesInTurn, Role::Takes::IterationsInTurn})
      if (const char* name = word(kTakesWords, takes); take_if(name) || (takes != Role::Takes::All && field(name)))
        fix(out_.takes, takes);
  }
  void ring() {
    std::vector<std::string> tiles;
    const std::set<std::string> behind = {"ahead", "clipped", "unclipped"};
    while (next_ < words_.size() && words_[next_].find('=') == std::string::npos && !behind.contains(words_[next_]))
      tiles.push_back(take());
    if (tiles.empty()) refuse("it names no tile", kSeePrinted);
    if (const auto slots = number("slots", 1, kMostSlots))
      for (const std::string& tile : tiles) out_.slots[tile] = *slots;
    derived({"bytes"});
    take_if("ahead");
    const bool clipped = take_if("clipped");
    if (clipped || take_if("unclipped"))
      for (const std::string& tile : tiles) out_.clips[tile] = clipped;
  }
  void order() {
    const auto how = static_cast<Order::How>(one_of(kOrderWords));
    if (!take_if("of")) refuse("it does not say of which loop", kSeePrinted);
    out_.orders[take()] = how;
  }
  void epilogue() {
    fix(out_.staging, static_cast<Staging>(one_of(kStagingWords)));
    take_if("by_columns");
    if (take_if("of")) next_ = words_.size();
  }

  const SourceLocation& at_;
  Hints out_;
  std::optional<size_t> work_;  // by the number of its word
  std::string line_;
  std::vector<std::string> words_;
  size_t next_ = 0;
};

// Whether a printed line says all that a fixed one does, of the same thing.
bool says(const std::string& printed, const std::vector<std::string>& words) {
  const std::vector<std::string> all = words_of(printed);
  const std::set<std::string> has(all.begin(), all.end());
  return all.front() == words.front() && std::ranges::all_of(words, [&](const std::string& word) {
           return has.contains(word) ||
                  std::ranges::any_of(all, [&](const std::string& w) { return w.starts_with(word + "="); });
         });
}

}  // namespace

std::optional<int64_t> Hints::slots_of(const std::vector<ir::BufferId>& tiles, const ir::ProgramTables& program) const {
  for (ir::BufferId id : tiles)
    for (const char* part : kHalfWords)
      if (const auto found = slots.find(program.buffer(id).name + part); found != slots.end()) return found->second;
  return std::nullopt;
}

const Wish* Hints::wish_for(const Schedule& schedule) const {
  const auto found = std::ranges::find(wishes, &schedule, &Wish::of);
  return found == wishes.end() ? nullptr : &*found;
}

void Hints::wish(Wish wish) {
  std::erase_if(wishes, [&](const Wish& w) { return w.of == wish.of; });
  wishes.push_back(std::move(wish));
}

Hints parse_hints(const std::vector<std::string>& lines, const SourceLocation& at) { return Reader(at).run(lines); }

std::optional<std::string> first_unmet(const Hints& hints, const Plan& plan, const ir::ProgramTables& program) {
  using Words = std::vector<std::string>;
  const Words printed = lines_of(plan, program);
  const bool as_written = !plan.changes();  // which prints no line of its work
  for (const std::string& line : hints.lines) {
    const Words words = words_of(line);
    const bool met = words == Words{"fit", "none"}
                         ? !plan.fit.any()
                         : (as_written && words == Words{"work", "one_tile"}) ||
                               std::ranges::any_of(printed, [&](const auto& p) { return says(p, words); });
    if (!met) return line;
  }
  return std::nullopt;
}

}  // namespace tilewright::plan
