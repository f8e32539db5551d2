# Untested: see docs/howto/deploy.md.
FROM python:3.13-slim AS build
WORKDIR /build
RUN python -m venv /opt/remanence
COPY constraints.txt ./
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN /opt/remanence/bin/pip install --no-cache-dir --constraint constraints.txt ".[models,postgres,server,vectors]"

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data remanence \
    && install --directory --owner=remanence --mode=0700 /data
COPY --from=build /opt/remanence /opt/remanence
ENV PATH="/opt/remanence/bin:$PATH" \
    REMANENCE_URL="sqlite:////data/memory.db"
USER remanence
WORKDIR /data
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz')"]
ENTRYPOINT ["remanence"]
CMD ["serve", "--host", "0.0.0.0", "--allowed-host", "localhost", "--keys"]
