#include "runtime/nvrtc_log.h"

#include <charconv>
#include <optional>

namespace tilewright::runtime {
namespace {

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text = trim(text.substr(prefix.size()));
  return true;
}

template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

// "'k' for 'sm_90a'" -> k
std::string quoted(std::string_view text) {
  const size_t begin = text.find('\'');
  if (begin == std::string_view::npos) return "";
  const size_t end = text.find('\'', begin + 1);
  return std::string(text.substr(begin + 1, end == std::string_view::npos ? 0 : end - begin - 1));
}

// Sets `slot` to the number before `unit` in one item of a list like "Used 8 registers, used 0 barriers, 360 bytes
// cmem[0]".
bool take(std::string_view item, std::string_view unit, int& slot) {
  const size_t at = item.find(unit);
  if (at == std::string_view::npos) return false;
  const size_t digits = item.find_first_of("0123456789");
  if (digits > at) return false;
  if (const auto number = leading_number<int>(item.substr(digits))) slot = *number;
  return true;
}

template <class Act>
void each_item(std::string_view list, Act&& act) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    act(trim(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

void take_frame(std::string_view list, KernelResources& k) {
  each_item(list, [&](std::string_view item) {
    take(item, "bytes stack frame", k.stack_bytes) || take(item, "bytes spill stores", k.spill_store_bytes) ||
        take(item, "bytes spill loads", k.spill_load_bytes);
  });
}

void take_usage(std::string_view list, KernelResources& k) {
  each_item(list, [&](std::string_view item) {
    int bank = 0;
    if (take(item, "bytes cmem[", bank)) {
      k.constant_bytes += bank;
      return;
    }
    take(item, "registers", k.registers) || take(item, "barriers", k.barriers) ||
        take(item, "bytes smem", k.shared_bytes);
  });
}

class Reader {
 public:
  explicit Reader(DeviceLog& log) : log_(log) {}

  void line(std::string_view text) {
    if (!consume(text, "ptxas")) return;
    if (consume(text, ".")) return take_frame(text, current());
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return;
    std::string_view head = trim(text.substr(0, colon)), rest = trim(text.substr(colon + 1));
    // "application ptx input, line 27; error" names the line of a text of its own.
    const size_t semicolon = head.rfind(';');
    const std::string_view severity = trim(semicolon == std::string_view::npos ? head : head.substr(semicolon + 1));
    if (rest.starts_with("(C") || severity != "info") return remark(severity, head, rest);
    if (consume(rest, "Compiling entry function")) return begin(quoted(rest));
    if (rest.starts_with("Used ")) return take_usage(rest, current());
    if (consume(rest, "Compile time ="))
      if (const auto time = leading_number<double>(rest)) current().milliseconds = *time;
  }

 private:
  void begin(std::string name) {
    log_.kernels.emplace_back();
    log_.kernels.back().name = std::move(name);
  }

  KernelResources& current() {
    if (log_.kernels.empty()) begin("");
    return log_.kernels.back();
  }

  void remark(std::string_view severity, std::string_view head, std::string_view rest) {
    PtxasRemark r;
    r.severity = severity;
    if (const size_t close = rest.find(')'); rest.starts_with("(C") && close != std::string_view::npos) {
      r.code = rest.substr(1, close - 1);
      rest = trim(rest.substr(close + 1));
    }
    r.message = rest;
    if (const size_t at = rest.rfind("function '"); at != std::string_view::npos) r.function = quoted(rest.substr(at));
    if (const size_t semicolon = head.rfind(';'); semicolon != std::string_view::npos)
      r.message += " (" + std::string(trim(head.substr(0, semicolon))) + ")";
    log_.remarks.push_back(std::move(r));
  }

  DeviceLog& log_;
};

}  // namespace

bool PtxasRemark::serializes_wgmma() const { return message.find("are serialized") != std::string::npos; }
bool PtxasRemark::is_performance_loss() const {
  return message.find("Potential Performance Loss") != std::string::npos;
}

const KernelResources* DeviceLog::kernel(std::string_view name) const {
  for (const KernelResources& k : kernels)
    if (k.name == name) return &k;
  return nullptr;
}

DeviceLog parse_device_log(std::string text) {
  DeviceLog log;
  Reader reader(log);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    reader.line(std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
  log.text = std::move(text);
  return log;
}

}  // namespace tilewright::runtime
