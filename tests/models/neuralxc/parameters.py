"""The parameters of a NeuralXCNet by name, for its tests."""

STACKS = ("phi_i", "f", "phi_o", "psi_o", "psi_i")


def parameters(net):
    """What Adam updates, and the tables whose rows Adagrad updates."""
    stacks = dict(zip(STACKS, (net.phi_i.mlp, net.f, net.phi_o.mlp, net.psi_o, net.psi_i.mlp), strict=True))
    dense = {
        f"{name}{at}{kind}": getattr(layer, kind)
        for name, stack in stacks.items()
        for at, layer in enumerate(stack.layers)
        for kind in ("rows", "bias")
    }
    dense |= {"phi_i": net.phi_i.bias, "phi_o": net.phi_o.bias}
    tables = {"E_i": net.phi_i.features, "E_o": net.phi_o.features, "D_i": net.psi_i.features}
    if hasattr(net.output, "rows"):
        tables["W"] = net.output.rows
    else:
        dense |= {"W": net.output.weights, "b": net.output.bias}
    return dense, tables


def copies(net):
    """Copies of all of them."""
    dense, tables = parameters(net)
    return {
        **{key: part.value.copy() for key, part in dense.items()},
        **{key: part.vectors.copy() for key, part in tables.items()},
    }
