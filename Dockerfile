# CPU:    docker build -t torchspore .
# CUDA:   docker build -t torchspore:cuda --build-arg TORCH_INDEX=https://pypi.org/simple .
#         docker run --gpus all -v "$PWD:/work" torchspore:cuda run train.py
# The wheel of torch for CUDA contains its libraries; the host needs the driver and NVIDIA's container toolkit.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG EXTRAS=export,encryption,server,summary,text

# g++ compiles generated kernels (jit_level O1 and O2 on the CPU). Debian removes old versions from its archive, so none is pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir --index-url "${TORCH_INDEX}" "torch>=2.11"

COPY pyproject.toml hatch_build.py README.md LICENSE NOTICE /source/
COPY src /source/src
RUN pip install --no-cache-dir "/source[${EXTRAS}]" && rm -rf /source

RUN useradd --create-home --uid 1000 user
USER 1000
# The C++ short paths of operators.
RUN torchspore doctor --build
WORKDIR /work
ENTRYPOINT ["torchspore"]
CMD ["doctor"]
