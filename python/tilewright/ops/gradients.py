"""The functions as operators of PyTorch: torch.compile takes them whole, and gradients go through them."""
from __future__ import annotations

import functools
import sys
import threading


def wanted(*tensors):
    """Whether a call is to be an operator: a gradient goes through it, or torch.compile traces it."""
    torch = sys.modules["torch"]
    if torch.compiler.is_compiling():
        return True
    if torch.is_grad_enabled():
        for t in tensors:
            if t is not None and getattr(t, "requires_grad", False):
                return True
    return False


def operator(name, schema, function):
    """Defines torch.ops.tilewright.<name>. `direct` of it, for code of gradients, is the function itself where nobody sees the
    difference: PyTorch's way to an operator takes longer than all else that is done before a kernel runs."""
    import torch

    made = torch.library.custom_op(f"tilewright::{name}", function, mutates_args=(), schema=schema)

    @functools.wraps(function)
    def direct(*given, **named):
        return (function if _is_unseen(torch, *given) else made)(*given, **named)

    made.direct = direct
    return made


def _is_unseen(torch, *given):
    """Whether nothing of PyTorch's looks at which operators run: no compiler, mode or transform, no gradient of this gradient, which
    there is none of, and no tensors of other kinds."""
    if torch.compiler.is_compiling() or torch.is_grad_enabled():
        return False
    inside = torch._C
    if inside._len_torch_dispatch_stack() or inside._functorch.peek_interpreter_stack() is not None:
        return False
    plain = torch.Tensor, torch.nn.Parameter
    return all(type(x) in plain for x in given if isinstance(x, torch.Tensor))


def at_first_call(define):
    """A function that runs `define` when it is called first, and True. Threads that call it meanwhile wait until it has run."""
    lock, begun, done = threading.RLock(), [], []

    @functools.wraps(define)
    def ensured():
        if not done:
            with lock:
                if not begun:
                    begun.append(True)
                    define()
                    done.append(True)
        return True

    ensured._dynamo_marked_constant = True  # torch.compile calls it while it traces
    return ensured


@at_first_call
def _registered():
    """Defines the operators torch.ops.tilewright.*, at the first call that wants one."""
    import torch

    from . import products, rows
    from .calls import product

    def define(name, schema):
        return functools.partial(operator, name, schema)

    def result(a, b, transpose_a, transpose_b, out_dtype):
        m, n = (a.shape[-1] if transpose_a else a.shape[-2]), (b.shape[-2] if transpose_b else b.shape[-1])
        name = products._RESULTS[str(a.dtype).removeprefix("torch.")]
        return a.new_empty((*a.shape[:-2], m, n), dtype=out_dtype or getattr(torch, name))

    @define("matmul", "(Tensor a, Tensor b, Tensor? bias, bool transpose_a, bool transpose_b, ScalarType? out_dtype, bool tf32) -> Tensor")
    def matmul(a, b, bias, transpose_a, transpose_b, out_dtype, tf32):
        return products.run(a, b, transpose_a, transpose_b, bias, None, None, out_dtype, tf32)

    @matmul.register_fake
    def _(a, b, bias, transpose_a, transpose_b, out_dtype, tf32):
        return result(a, b, transpose_a, transpose_b, out_dtype)

    def keep(ctx, inputs, output):
        a, b, bias, ctx.transpose_a, ctx.transpose_b, _, ctx.tf32 = inputs
        ctx.save_for_backward(a, b)
        ctx.of_bias = None if bias is None else bias.dtype

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        ta, tb = ctx.transpose_a, ctx.transpose_b
        grad = grad.to(a.dtype)
        times = functools.partial(matmul.direct, bias=None, out_dtype=None, tf32=ctx.tf32)
        of_a = of_b = of_bias = None
        one_for_all = b.dim() < a.dim()
        if ctx.needs_input_grad[0]:
            of_rows = ta and not one_for_all
            of_a = times(b, grad, transpose_a=tb, transpose_b=True) if of_rows else times(grad, b, transpose_a=False, transpose_b=not tb)
            of_a = of_a.mT if ta and one_for_all else of_a
        if ctx.needs_input_grad[1]:
            x, g, turned = a, grad, ta
            if one_for_all:  # the rows of all matrices are those of one
                x, g, turned = (a.mT if ta else a).flatten(0, -2), grad.flatten(0, -2), False
            of_b = times(g, x, transpose_a=True, transpose_b=turned) if tb else times(x, g, transpose_a=not turned, transpose_b=False)
        if ctx.of_bias is not None and ctx.needs_input_grad[2]:
            of_bias = grad.sum(tuple(range(grad.dim() - 1)), dtype=torch.float32).to(ctx.of_bias)
        return of_a, of_b, of_bias, None, None, None, None

    matmul.register_autograd(backward, setup_context=keep)

    def compact_like(x, *rest):  # results are row-major, whatever their arguments are
        return x.new_empty(x.shape)

    def of_rows(name, run, backward):  # of what is known by its result
        @define(name, "(Tensor x) -> Tensor")
        def made(x):
            return run(x)

        made.register_fake(compact_like)
        made.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))

    @define("softmax_backward", "(Tensor grad, Tensor y) -> Tensor")
    def softmax_backward(grad, y):
        return rows.run("softmax_backward", grad, [("", "y", y, tuple(grad.shape))])

    softmax_backward.register_fake(compact_like)

    def of_log(ctx, grad):
        (y,) = ctx.saved_tensors
        wide = grad.float()
        return (wide - y.float().exp() * wide.sum(-1, keepdim=True)).to(grad.dtype)

    of_rows("softmax", lambda x: rows.run("softmax", x), lambda ctx, grad: softmax_backward.direct(grad.contiguous(), *ctx.saved_tensors))
    of_rows("log_softmax", lambda x: rows.run("log_softmax", x), of_log)

    def norm(function, centred):
        @define(function, "(Tensor x, Tensor? weight, Tensor? bias, float epsilon) -> Tensor")
        def made(x, weight, bias, epsilon):
            return rows.run(function, x, rows._weights(x, weight, bias), epsilon)

        made.register_fake(compact_like)

        def keep(ctx, inputs, output):
            x, weight, bias, ctx.epsilon = inputs
            ctx.save_for_backward(x, weight)
            ctx.of_bias = None if bias is None else bias.dtype

        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            wide, g = x.float(), grad.float()
            if centred:
                wide = wide - wide.mean(-1, keepdim=True)
            scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + ctx.epsilon)
            normal = wide * scale

            def over_rows(t):
                return t.reshape(product(t.shape[:-1]), t.shape[-1]).sum(0)

            of_weight = None if weight is None else over_rows(g * normal).to(weight.dtype)
            of_bias = None if ctx.of_bias is None else over_rows(g).to(ctx.of_bias)
            if weight is not None:
                g = g * weight.float()
            of_x = g - normal * (g * normal).mean(-1, keepdim=True)
            if centred:
                of_x = of_x - g.mean(-1, keepdim=True)
            return (of_x * scale).to(x.dtype), of_weight, of_bias, None

        made.register_autograd(backward, setup_context=keep)

    norm("rms_norm", False), norm("layer_norm", True)
    from . import attending as module
    _of_attention(define, "attention", "str layout", module.run, module.backward, lambda layout: module._LAYOUTS[layout])
    starts = "Tensor query_starts, Tensor key_starts, int? longest_query, int? longest_key"
    _of_attention(define, "attention_varlen", starts, module.run_varlen, module.backward_varlen, lambda *packed: (0, 1))
    return True


def _of_attention(define, name, more, run, backward_of, axes_of):
    """Defines attention of a kind: `more` are its arguments beside those of all, axes_of(*more) the dimensions of positions and heads."""
    import torch

    options = f"bool causal, float scale, int? left, int? right, {more}"

    @define(name, f"(Tensor q, Tensor k, Tensor v, Tensor? sink, {options}) -> (Tensor, Tensor)")
    def forward(q, k, v, sink, causal, scale, left, right, *more):
        return run(q, k, v, sink, causal, scale, (left, right), *more)

    @forward.register_fake
    def _(q, k, v, sink, causal, scale, left, right, *more):
        positions, heads = axes_of(*more)
        rows = (*q.shape[: q.dim() - 3], q.shape[heads], q.shape[positions])
        return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(rows, dtype=torch.float32)

    @define(f"{name}_backward", f"(Tensor grad, Tensor? grad_lse, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, {options}) -> (Tensor, Tensor, Tensor)")
    def backward_operator(*given):
        return backward_of(*given)

    @backward_operator.register_fake
    def _(grad, grad_lse, q, k, v, *rest):
        return tuple(x.new_empty(x.shape) for x in (q, k, v))

    def keep(ctx, inputs, output):
        q, k, v, sink, *options = inputs
        starts = [x for x in options if isinstance(x, torch.Tensor)]
        ctx.options = [None if isinstance(x, torch.Tensor) else x for x in options]
        ctx.at = [i for i, x in enumerate(options) if isinstance(x, torch.Tensor)]
        ctx.save_for_backward(q, k, v, sink, *output, *starts)
        ctx.set_materialize_grads(False)

    def backward(ctx, grad, grad_lse):
        q, k, v, sink, out, lse, *starts = ctx.saved_tensors
        options = list(ctx.options)
        for i, x in zip(ctx.at, starts):
            options[i] = x
        grad = torch.zeros_like(out) if grad is None else grad.to(out.dtype)
        of_sink = None
        if sink is not None and ctx.needs_input_grad[3]:
            # Its weight in each row, times what the row's sum changes.
            positions, heads = axes_of(*options[4:])
            sums = -(grad.float() * out.float()).sum(-1)
            sums = sums.transpose(positions, heads) if positions < heads else sums
            sums = sums if grad_lse is None else sums + grad_lse
            weights = torch.where(lse == -torch.inf, 0, torch.exp(sink.float()[:, None] - lse))
            of_sink = (weights * sums).sum([d for d in range(lse.dim()) if d != lse.dim() - 2]).to(sink.dtype)
        return *backward_operator.direct(grad, grad_lse, q, k, v, out, lse, *options), of_sink, *[None] * len(options)

    forward.register_autograd(backward, setup_context=keep)


def _operator(name):
    import torch

    _registered()
    return getattr(torch.ops.tilewright, name)


def matmul(a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype, tf32):
    """As the function; what comes behind the product is PyTorch's, which knows its gradients."""
    import torch

    from . import products

    made = products.check("matmul", a, b, transpose_a, transpose_b, bias, activation, residual, out_dtype)
    out_dtype = None if out_dtype is None else getattr(torch, made.result)
    if a.dim() < 2 or b.dim() < 2:
        rows, columns = a.dim() < 2, b.dim() < 2
        a = a.unsqueeze(-1 if transpose_a else 0) if rows else a
        b = b.unsqueeze(0 if transpose_b else -1) if columns else b
        y = matmul(a, b, transpose_a, transpose_b, None, None, None, out_dtype, tf32)
        y = y.squeeze(-1) if columns else y
        y = y.squeeze(-1 if columns else -2) if rows else y
        y = y if bias is None else y + bias
    else:
        y = _operator("matmul")(a, b, bias, bool(transpose_a), bool(transpose_b), out_dtype, bool(tf32))
    if activation is not None:
        f = torch.nn.functional
        y = {"relu": f.relu, "silu": f.silu, "gelu": f.gelu, "gelu_tanh": functools.partial(f.gelu, approximate="tanh")}[activation](y)
    return y if residual is None else y + residual


def softmax(x):
    return _operator("softmax")(x)


def log_softmax(x):
    return _operator("log_softmax")(x)


def rms_norm(x, weight, epsilon):
    return _operator("rms_norm")(x, weight, None, float(epsilon))


def attention(q, k, v, sink, causal, scale, left, right, layout):
    return _operator("attention")(q, k, v, sink, causal, scale, left, right, layout)


def attention_varlen(q, k, v, sink, causal, scale, left, right, *packed):
    return _operator("attention_varlen")(q, k, v, sink, causal, scale, left, right, *packed)


def layer_norm(x, weight, bias, epsilon):
    return _operator("layer_norm")(x, weight, bias, float(epsilon))
