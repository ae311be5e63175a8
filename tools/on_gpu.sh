#!/usr/bin/env bash
# Runs every check that needs a GPU, in stages of 8 minutes together, and writes results.jsonl and gpu.md.
#
#     tools/on_gpu.sh                      all stages on this machine's GPU
#     tools/on_gpu.sh --stages b,f         some of them; --help lists them
#     tools/on_gpu.sh --dry                a sample of each on the CPU and on the stand-in accelerator
#     tools/on_gpu.sh --fetch              downloads the packages that a GPU machine without a network lacks, into .wheels
#     tools/on_gpu.sh --publish FILE       writes docs/gpu.json and docs/gpu.md from a results.jsonl
#
# It wants Python with torch (CUDA), numpy, scipy, opencv, pillow, protobuf, msgpack, rich, safetensors, pytest and triton.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${PYTHON:-}" ]; then
    if [ -x .venv/bin/python ]; then PYTHON=.venv/bin/python; else PYTHON=python3; fi
fi
export PYTHONPATH="$PWD/src:$PWD/tools:$PWD/tests${PYTHONPATH:+:$PYTHONPATH}"
exec "$PYTHON" -m on_gpu "$@"
