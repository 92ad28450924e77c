# One image for the API, the workers and the stand-in engine; the command says which.
FROM python:3.12-slim

RUN useradd --create-home canvass
WORKDIR /app

COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN pip install --no-cache-dir --no-deps -r requirements.lock

COPY planner planner
COPY workers workers
COPY api api
COPY engine engine
COPY client client
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e .

# The stand-in model's tokenizer, so that the API and the workers can plan without a model hub.
RUN python -m engine.tokenizer --out /app/tokenizers/smollm2 && chown -R canvass /app/tokenizers
ENV CANVASS_TOKENIZER=/app/tokenizers/smollm2

USER canvass
EXPOSE 8011
CMD ["python", "-m", "api"]
