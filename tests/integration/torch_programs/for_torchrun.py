"""Written for `torchrun`: takes its place from the variables, says what torch itself makes of it."""

import json
import os

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main() -> None:
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    dist.init_process_group("gloo")
    place = torch.tensor([rank, local_rank, int(os.environ["GROUP_RANK"])])
    places = [torch.empty_like(place) for _ in range(int(os.environ["WORLD_SIZE"]))]
    dist.all_gather(places, place)
    if rank == 0:
        seen = {
            "places": [each.tolist() for each in places],
            "local_world_size": int(os.environ["LOCAL_WORLD_SIZE"]),
            "group_world_size": int(os.environ["GROUP_WORLD_SIZE"]),
            "role": [os.environ["ROLE_NAME"], int(os.environ["ROLE_RANK"]), int(os.environ["ROLE_WORLD_SIZE"])],
            "restarts": int(os.environ["TORCHELASTIC_RESTART_COUNT"]),
            "launched_by_torchrun": dist.is_torchelastic_launched(),
        }
        with open("outputs/seen.json", "w") as file:
            json.dump(seen, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # torch 2.13 sometimes aborts while Python takes its threads down, under torchrun as well; the work is done.
    os._exit(0)
