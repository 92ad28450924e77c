"""The stand-in engine: vLLM's OpenAI server with the canvas dialect, where there is no GPU.

Imports nothing from the floors above it (planner, workers, api, client). Start it with
`python -m engine`; `engine/README.md` lists every flag and the script format.
"""
