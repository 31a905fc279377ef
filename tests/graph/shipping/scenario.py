"""Run beside an installed `scaled_kernel`: prints what it does as one JSON object."""

import json
import sys
import warnings

import torch
from scaled_kernel import CONTRACT, Kernel, forward
from scaled_kernel.reference import Model, get_init_inputs, get_inputs


class Net(torch.nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block
        self.head = torch.nn.Linear(32, 4)

    def forward(self, x):
        y, sums = self.block(x, t=0.75)
        return self.head(y) + sums["sums"][0].unsqueeze(-1)


def said(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught]


def difference(one, two):
    return ((one - two).norm() / two.norm()).item()


def made():
    model = Model(*get_init_inputs()).eval()
    with torch.no_grad():
        model.scale.normal_()
    return model


def gradients(net, x):
    x = x.clone().requires_grad_()
    net.zero_grad()
    net(x).square().sum().backward()
    return [x.grad, *(p.grad for p in net.parameters())]


def refusal(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


def main(parts):
    torch.manual_seed(0)
    model = made()
    plain, fast = Net(model).eval(), Net(Kernel(model)).eval()
    fast.head = plain.head
    x, _ = get_inputs()
    found = {"interface": CONTRACT["interface"]}
    with torch.no_grad():
        found["eager"] = difference(fast(x), plain(x))
        found["silent"] = said(lambda: fast(x))
        found["slice"] = difference(fast(torch.cat([x, x])[3:67]), plain(torch.cat([x, x])[3:67]))
    if "falls" in parts:
        found |= falls(model, plain, fast, x)
    if "opcheck" in parts:
        tests = torch.library.opcheck(forward.default, (x, 0.5, model.scale.detach()))
        found["opcheck"] = tests
        if CONTRACT["gradients"] == "reference":
            given = x.clone().requires_grad_(), 0.5, model.scale.detach().clone().requires_grad_()
            found["opcheck_gradients"] = torch.library.opcheck(forward.default, given)
    if CONTRACT["gradients"] == "reference":
        pairs = zip(gradients(fast, x), gradients(plain, x), strict=True)
        found["gradients"] = max(difference(one, two) for one, two in pairs)
    else:
        found["refused"] = refusal(lambda: fast(x).sum().backward())
    if "compile" in parts:
        found |= compiled(fast, plain, x)
    print(json.dumps(found))


def compiled(fast, plain, x):
    traced = torch.compile(fast, fullgraph=True)
    found = {}
    with torch.no_grad():
        found["compiled"] = difference(traced(x), plain(x))
        found["compiled_fall"] = said(lambda: traced(x[:9]))
    if CONTRACT["gradients"] == "reference":
        pairs = zip(gradients(traced, x), gradients(plain, x), strict=True)
        found["compiled_gradients"] = max(difference(one, two) for one, two in pairs)
    else:
        found["compiled_with_gradients"] = difference(traced(x).detach(), plain(x).detach())
        found["compiled_refused"] = refusal(lambda: traced(x).sum().backward())
    return found


def falls(model, plain, fast, x):
    other = made()
    other.shift = 0.5
    with torch.no_grad():
        shapes = said(lambda: [fast(x[:rows]) for rows in (3, 5, 7)])
        assert torch.equal(fast(x[:3]), plain(x[:3]))
        one = said(lambda: fast.block(x.double(), 0.5))
        kernel = Kernel(other)
        constants = said(lambda: [kernel(x, 0.5), kernel(x, 0.5)])
        assert torch.equal(kernel(x, 0.5)[0], other(x, 0.5)[0])
        transposed = x.T.contiguous().T
        return {
            "shape": shapes,
            "type": one,
            "strides": said(lambda: fast(transposed)),
            "raw_strides": difference(forward(transposed, 0.5, model.scale)[0], model(x, 0.5)[0]),
            "constants": constants,
            "training": said(lambda: fast.train()(x)),
            "autocast": said(lambda: autocast(fast.eval(), x)),
            "number": said(lambda: fast.block(x, 1)),
            "count": said(lambda: fast.block(x, 0.5, None)),
            "raw": refusal_of_value(lambda: forward(x[:3], 0.5, model.scale)),
        }


def autocast(net, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        net(x)


def refusal_of_value(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


main(sys.argv[1:])
