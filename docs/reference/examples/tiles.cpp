// The examples of tiles.py in C++: each section ends with the function that records the same program.

// --- alloc_barrier
Program example() {
  Tensor X("X", {64}, f32), Y("Y", {64}, f32);
  return prim_func("handed_over", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 256})) {
      auto x = alloc_shared({64}, f32);
      auto full = alloc_barrier({128});
      ws({0}, [&] {
        for (auto i : Parallel(64)) x(i) = X(i) * 2;
        barrier_arrive(full);
      });
      ws({1}, [&] {
        barrier_wait(full, 0);
        for (auto i : Parallel(64)) Y(i) = x(i);
      });
    }
  });
}

// --- barrier_arrive = alloc_barrier
// --- barrier_wait = alloc_barrier
// --- mbarrier_arrive = alloc_barrier
// --- mbarrier_wait_parity = alloc_barrier

// --- alloc_fragment
Program example() {
  Tensor X("X", {16, 64}, f32), Y("Y", {16, 64}, f32);
  return prim_func("scaled", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto x = alloc_fragment({16, 64}, f32);
      copy(X, x);
      for (auto [i, j] : Parallel(16, 64)) x(i, j) = x(i, j) * 2;
      copy(x, Y);
    }
  });
}

// --- alloc_shared = alloc_fragment: alloc_fragment -> alloc_shared

// --- alloc_global
Program example() {
  Tensor X("X", {256}, f32), Y("Y", {256}, f32);
  return prim_func("in_two_launches", {X, Y}, [&] {
    auto half = alloc_global({256}, f32);
    for (auto bx : Kernel(2, {.threads = 128}))
      for (auto i : Parallel(128)) half(bx * 128 + i) = X(bx * 128 + i) * 0.5;
    for (auto bx : Kernel(2, {.threads = 128}))
      for (auto i : Parallel(128)) Y(bx * 128 + i) = half(255 - (bx * 128 + i));
  });
}

// --- alloc_local
Program example() {
  Tensor X("X", {128, 4}, f32), Y("Y", {128}, f32);
  return prim_func("neighbours", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto mine = alloc_local({4}, f32);
      Value tx = get_thread_binding();
      for (auto j : unroll(4)) mine(j) = X(tx, j);
      Y(tx) = mine(0) + mine(1) + mine(2) + mine(3);
    }
  });
}

// --- alloc_reducer
Program example() {
  Tensor X("X", {32, 64}, f32), Y("Y", {64}, f32);
  return prim_func("column_sums", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 64})) {
      auto total = alloc_reducer({64}, f32, ReducerOp::Sum);
      clear(total);
      for (auto [i, j] : Parallel(32, 64)) total(j) += X(i, j);
      finalize_reducer(total);
      copy(total, Y);
    }
  });
}

// --- finalize_reducer = alloc_reducer

// --- make_tensor
Program example() {
  Tensor X("X", {64}, f32), Y("Y", {64}, f32);
  return prim_func("by_address", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 64})) {
      auto second_half = make_tensor(address_of(X(32)), {32}, f32);
      for (auto i : Parallel(32)) Y(i) = second_half(i);
      for (auto i : Parallel(32)) Y(32 + i) = X(i);
    }
  });
}

// --- address_of = make_tensor

// --- reshape
Program example() {
  Tensor X("X", {8, 16}, f32), Y("Y", {128}, f32);
  return prim_func("flat", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto x = alloc_shared({8, 16}, f32);
      copy(X, x);
      auto line = reshape(x, {128});
      for (auto i : Parallel(128)) Y(i) = line(i);
    }
  });
}

// --- view
Program example() {
  Tensor X("X", {64}, i32), Y("Y", {128}, i16);
  return prim_func("halves", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto x = alloc_shared({64}, i32);
      copy(X, x);
      auto shorter = view(x, {128}, i16);
      for (auto i : Parallel(128)) Y(i) = shorter(i);
    }
  });
}

// --- clear
Program example() {
  Tensor A("A", {64, 32}, f16), B("B", {32, 64}, f16), C("C", {64, 64}, f32);
  return prim_func("product", {A, B, C}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto a = alloc_shared({64, 32}, f16);
      auto b = alloc_shared({32, 64}, f16);
      auto c = alloc_fragment({64, 64}, f32);
      copy(A, a);
      copy(B, b);
      clear(c);
      gemm(a, b, c);
      copy(c, C);
    }
  });
}

// --- gemm = clear

// --- fill
Program example() {
  Tensor Y("Y", {16, 64}, f32);
  return prim_func("filled", {Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto y = alloc_fragment({16, 64}, f32);
      fill(y, 3);
      copy(y, Y);
    }
  });
}

// --- copy
Program example() {
  Tensor X("X", {100, 64}, f32), Y("Y", {100, 64}, f16);
  return prim_func("converted", {X, Y}, [&] {
    for (auto by : Kernel(ceildiv(100, 32), {.threads = 128})) {
      auto tile = alloc_shared({32, 64}, f16);
      copy(X(by * 32, 0), tile);
      copy(tile, Y(by * 32, 0));
    }
  });
}

// --- async_copy
Program example() {
  Tensor X("X", {16, 64}, f32), Y("Y", {16, 64}, f32);
  return prim_func("not_waiting", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto x = alloc_shared({16, 64}, f32);
      async_copy(X, x);
      cp_async_wait(0);
      sync_threads();
      for (auto [i, j] : Parallel(16, 64)) Y(i, j) = x(i, j) + 1;
    }
  });
}

// --- cp_async_wait = async_copy
// --- ptx_wait_group = async_copy

// --- copy_cluster = cluster_arrive: cluster_arrive(); cluster_wait() -> cluster_sync()
// --- cluster_sync = copy_cluster

// --- cumsum
Program example() {
  Tensor X("X", {16, 64}, f32), Y("Y", {16, 64}, f32);
  return prim_func("running", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto x = alloc_shared({16, 64}, f32);
      auto y = alloc_shared({16, 64}, f32);
      copy(X, x);
      cumsum(x, y, {.dim = 1});
      copy(y, Y);
    }
  });
}

// --- cummax = cumsum: cumsum -> cummax

// --- gemm_sp
Program example() {
  Tensor A("A", {64, 32}, f16), E("E", {64, 8}, i16), B("B", {64, 64}, f16), C("C", {64, 64}, f32);
  return prim_func("sparse", {A, E, B, C}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto a = alloc_shared({64, 32}, f16);
      auto e = alloc_shared({64, 4}, i16);
      auto b = alloc_shared({64, 64}, f16);
      auto c = alloc_fragment({64, 64}, f32);
      copy(A, a);
      copy(E(0, 0), e);
      copy(B, b);
      clear(c);
      gemm_sp(a, e, b, c);
      copy(c, C);
    }
  });
}

// --- im2col
Program example() {
  Tensor X("X", {1, 8, 8, 16}, f16), Y("Y", {64, 16}, f16);
  return prim_func("patches", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto columns = alloc_shared({64, 16}, f16);
      im2col(X, columns, 0, 0, {.kernel = 1});
      copy(columns, Y);
    }
  });
}

// --- reduce_sum
Program example() {
  Tensor X("X", {16, 64}, f32), Y("Y", {16}, f32);
  return prim_func("along_rows", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto x = alloc_fragment({16, 64}, f32);
      auto y = alloc_fragment({16}, f32);
      copy(X, x);
      reduce_sum(x, y, {.dim = 1});
      copy(y, Y);
    }
  });
}

// --- reduce_max = reduce_sum: reduce_sum -> reduce_max
// --- reduce_min = reduce_sum: reduce_sum -> reduce_min
// --- reduce_abssum = reduce_sum: reduce_sum -> reduce_abssum
// --- reduce_absmax = reduce_sum: reduce_sum -> reduce_absmax
// --- reduce_bitand = reduce_sum: reduce_sum -> reduce_bitand ;; f32 -> i32
// --- reduce_bitor = reduce_sum: reduce_sum -> reduce_bitor ;; f32 -> i32
// --- reduce_bitxor = reduce_sum: reduce_sum -> reduce_bitxor ;; f32 -> i32

// --- tma_copy
Program example() {
  Tensor X("X", {64, 64}, f16), Y("Y", {64, 64}, f16);
  return prim_func("by_tma", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto tile = alloc_shared({64, 64}, f16);
      auto arrived = alloc_barrier({128});
      mbarrier_expect_tx(arrived, 64 * 64 * 2);
      tma_copy(X(slice(0, 64), slice(0, 64)), tile, arrived);
      barrier_arrive(arrived);
      barrier_wait(arrived, 0);
      fence_proxy_async();
      tma_store(tile, Y(slice(0, 64), slice(0, 64)));
      tma_store_wait(0);
    }
  });
}

// --- tma_store_wait = tma_copy

// --- wgmma_gemm
Program example() {
  Tensor A("A", {64, 32}, f16), B("B", {32, 64}, f16), C("C", {64, 64}, f32);
  return prim_func("in_the_background", {A, B, C}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto a = alloc_shared({64, 32}, f16);
      auto b = alloc_shared({32, 64}, f16);
      auto c = alloc_fragment({64, 64}, f32);
      copy(A, a);
      copy(B, b);
      wgmma_gemm(a, b, c, {.clear_accum = true});
      wait_wgmma(0);
      copy(c, C);
    }
  });
}

// --- wait_wgmma = wgmma_gemm
// --- warpgroup_wait = wgmma_gemm
