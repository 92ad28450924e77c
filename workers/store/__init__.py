"""The store: everything Canvass keeps, in Redis. One module per thing kept; nothing without an expiry.

`store.py` sends commands; `decisions.py` keeps decisions while they run and their outcomes after;
`scripts.py` holds what must be atomic, in Lua.
"""
