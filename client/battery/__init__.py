"""The battery: a live check of a server, with our own material beside its code as JSON.

A file per part (`labels.json` and so on) holds cases: a state, and questions with the answer expected.
"""
