#include "torch_peer.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace bench {

TorchPeer::TorchPeer(const std::string& python) {
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return;
  signal(SIGPIPE, SIG_IGN);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(down[0], 0), dup2(up[1], 1);
    for (int fd : {down[0], down[1], up[0], up[1]}) close(fd);
    const std::string script = std::string(TILEWRIGHT_SOURCE_DIR) + "/bench/torch_peer.py";
    execlp(python.c_str(), python.c_str(), script.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(down[0]), close(up[1]);
  to_ = fdopen(down[1], "w"), from_ = fdopen(up[0], "r");
  version_ = ask("version");
  ready_ = !version_.empty();
}

TorchPeer::~TorchPeer() {
  if (to_) std::fclose(to_);
  if (from_) std::fclose(from_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

std::string TorchPeer::ask(const std::string& line) {
  char answer[256] = "";
  if (std::fprintf(to_, "%s\n", line.c_str()) < 0 || std::fflush(to_) != 0) return "";
  if (!std::fgets(answer, sizeof answer, from_)) return "";
  std::string text = answer;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

double TorchPeer::seconds(const std::string& command) { return std::strtod(ask(command).c_str(), nullptr); }

}  // namespace bench
