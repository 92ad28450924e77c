"""The pool: the engines, which of them can take reads, and how a read gets its result from one.

`engine.py` is what a worker knows of one engine, `breaker.py` when it is out, `canary.py` how it proves
itself; `pool.py` keeps the members; `reading.py` takes a read from engine to engine until one answers;
`hedging.py` and `warming.py` say when a second engine is asked and when a prompt goes alone first;
`vllm.py` is the wire.
"""
