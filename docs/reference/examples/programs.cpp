// The examples of programs.py in C++.

// --- Kernel
Program example() {
  Tensor X("X", {100, 200}, f32), Y("Y", {100, 200}, f32);
  return prim_func("shifted", {X, Y}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(200, 64), ceildiv(100, 32)}, {.threads = 128}))
      for (auto [i, j] : Parallel(32, 64)) Y(by * 32 + i, bx * 64 + j) = X(by * 32 + i, bx * 64 + j) + 1;
  });
}

// --- Parallel = Kernel
// --- prim_func = Kernel

// --- Pipelined
Program example() {
  Tensor A("A", {128, 128}, f16), B("B", {128, 128}, f16), C("C", {128, 128}, f32);
  return prim_func("product", {A, B, C}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto a = alloc_shared({128, 32}, f16);
      auto b = alloc_shared({32, 128}, f16);
      auto c = alloc_fragment({128, 128}, f32);
      clear(c);
      for (auto k : Pipelined(4, {.num_stages = 3})) {
        copy(A(0, k * 32), a);
        copy(B(k * 32, 0), b);
        gemm(a, b, c);
      }
      copy(c, C);
    }
  });
}

// --- serial
Program example() {
  Tensor X("X", {128, 6}, f32), Y("Y", {128}, f32);
  return prim_func("sums", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      Value tx = get_thread_binding();
      auto total = alloc_var(f32, 0.0);
      for (auto j : serial(0, 6, 2)) total += X(tx, j);
      Y(tx) = total;
    }
  });
}

// --- alloc_var = serial
// --- unroll = serial: serial(0, 6, 2) -> unroll(6)

// --- vectorized
Program example() {
  Tensor X("X", {128, 4}, f32), Y("Y", {128, 4}, f32);
  return prim_func("copied", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      Value tx = get_thread_binding();
      for (auto j : vectorized(4)) Y(tx, j) = X(tx, j);
    }
  });
}

// --- Persistent
Program example() {
  Tensor Y("Y", {4, 4}, i32);
  return prim_func("shared_out", {Y}, [&] {
    for (auto worker : Kernel(3, {.threads = 128}))
      for (auto [m, n] : Persistent({4, 4}, 3, worker)) Y(m, n) = m * 10 + n;
  });
}

// --- ws
Program example() {
  Tensor X("X", {2, 128}, f32), Y("Y", {2, 128}, f32);
  return prim_func("two_groups", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 256})) {
      ws({0}, [&] {
        for (auto i : Parallel(128)) Y(0, i) = X(0, i) + 1;
      });
      ws({1}, [&] {
        for (auto i : Parallel(128)) Y(1, i) = X(1, i) * 2;
      });
    }
  });
}

// --- dynamic
Program example() {
  Value N = dynamic("N");
  Tensor X("X", {N}, f32), Y("Y", {N}, f32);
  return prim_func("doubled", {X, Y}, [&] {
    for (auto bx : Kernel(ceildiv(N, 128), {.threads = 128}))
      for (auto i : Parallel(128)) Y(bx * 128 + i) = X(bx * 128 + i) * 2;
  });
}

// --- annotate_layout
Program example() {
  Tensor X("X", {32, 32}, f32), Y("Y", {32, 32}, f32);
  return prim_func("padded", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto s = alloc_shared({32, 32}, f32);
      annotate_layout(s, Layout([](const std::vector<Value>& i) { return std::vector<Operand>{i[0] * 33 + i[1]}; }));
      copy(X, s);
      for (auto [i, j] : Parallel(32, 32)) Y(i, j) = s(j, i);
    }
  });
}

// --- Layout = annotate_layout

// --- annotate_safe_value
Program example() {
  Tensor X("X", {100}, f32), Y("Y", {1}, f32);
  return prim_func("largest", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      annotate_safe_value(X, -infinity(f32));
      auto x = alloc_fragment({128}, f32);
      auto y = alloc_fragment({1}, f32);
      copy(X(slice(0, 128)), x);
      reduce_max(x, y, {.dim = 0});
      copy(y, Y);
    }
  });
}
