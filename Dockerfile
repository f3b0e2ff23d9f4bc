# The image of fnop, on which images of operators are based:
#     docker build -t fnop:0.2.0.dev0 .
FROM python:3.13-slim-bookworm AS build
RUN python -m venv /tools && /tools/bin/pip install --no-cache-dir "build>=1.2"
WORKDIR /source
COPY LICENSE README.md pyproject.toml ./
COPY adapters ./adapters
COPY core ./core
COPY effects ./effects
COPY interpreters ./interpreters
# Its links lead to the folders above.
COPY fnop ./fnop
RUN /tools/bin/python -m build --wheel --outdir /dist .
# The environment has no pip of its own.
RUN python -m venv --without-pip /venv \
    && wheel="$(echo /dist/fnop-*.whl)" \
    && /tools/bin/pip --python /venv/bin/python install --no-cache-dir "${wheel}[metrics,tls,uvloop]"

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="fnop" \
      org.opencontainers.image.description="Kubernetes operators in Python as pure functions" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="0.2.0.dev0"
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=build /venv /venv
WORKDIR /operator
# A number, so that Kubernetes can check runAsNonRoot.
USER 10001:10001
# Options come from the Deployment, as FNOP_RUN_... variables.
ENTRYPOINT ["fnop", "run"]
CMD ["--help"]
