# pegsynth with its kernels compiled, run by a user who is not root. Mount the folder of your table:
#
#   docker build -t pegsynth .
#   docker run --rm --network none -v "$PWD:/data" --user "$(id -u):$(id -g)" pegsynth demo
#
# Nothing in it needs a network; "--network none" makes sure of that.
FROM python:3.12-slim AS built
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY requirements/lock.txt requirements/lock.txt
COPY tools tools
COPY src src
RUN python -m venv /opt/pegsynth \
    && /opt/pegsynth/bin/python -m pip install --no-cache-dir --no-deps --require-hashes --requirement requirements/lock.txt \
    && /opt/pegsynth/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim
COPY --from=built /opt/pegsynth /opt/pegsynth
ENV PATH=/opt/pegsynth/bin:$PATH NUMBA_CACHE_DIR=/opt/pegsynth/kernels
# The first command compiles; here once for all, so that no container has to.
RUN useradd --uid 1000 --create-home pegs \
    && mkdir /opt/pegsynth/kernels \
    && pegs demo -o /tmp/demo --rows 100 && rm -rf /tmp/demo \
    && chmod -R a+rX /opt/pegsynth
USER 1000
WORKDIR /data
ENTRYPOINT ["pegs"]
CMD ["--help"]
