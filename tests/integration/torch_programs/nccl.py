"""Asks for NCCL, as scripts for GPUs do."""

import os

import torch.distributed as dist

print("share of GPUs:", os.environ["CUDA_VISIBLE_DEVICES"] or "none", flush=True)
dist.init_process_group("nccl", init_method="env://")
