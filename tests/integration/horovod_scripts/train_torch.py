"""Two ranks with data of their own: rank 0 writes what was seen to outputs/seen.json. For every torch since 1.4."""

import json

import horovod
import horovod.torch as hvd
import torch

hvd.init()
rank = hvd.rank()

torch.manual_seed(rank)  # Other weights and other data on each rank.
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
data, wanted = torch.randn(16, 5), torch.randn(16, 1)


def everyones(tensors):
    """One line of numbers per rank."""
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    return hvd.allgather(flat.reshape(1, -1))


began_alike = bool(torch.equal(*everyones(model.parameters())))
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
inner = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
hvd.broadcast_optimizer_state(inner, root_rank=0)

local = torch.autograd.grad(torch.nn.functional.mse_loss(model(data), wanted), list(model.parameters()))
locals_of_all = everyones(local)

optimizer = hvd.DistributedOptimizer(inner, named_parameters=model.named_parameters())
losses = []
averaged = None
for step in range(50):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(data), wanted)
    loss.backward()
    if step == 0:
        optimizer.synchronize()
        averaged = torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()]).clone()
        with optimizer.skip_synchronize():
            optimizer.step()
    else:
        optimizer.step()
    losses.append(loss.item())

weights = everyones(model.parameters())
seen = {
    "framework": torch.__version__,
    "horovod": horovod.__version__,
    "size": hvd.size(),
    "began_alike": began_alike,
    "local_gradients_differ": not torch.equal(locals_of_all[0], locals_of_all[1]),
    "gradients_are_the_mean": bool(torch.allclose(averaged, locals_of_all.mean(0), rtol=1e-5, atol=1e-7)),
    "weights_are_identical": bool(torch.equal(weights[0], weights[1])),
    "learned": losses[-1] < losses[0],
}
if rank == 0:
    with open("outputs/seen.json", "w") as file:
        json.dump(seen, file)
hvd.shutdown()
