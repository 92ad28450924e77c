"""Worked examples. They use the SDK (`from client import Canvass`) and nothing else of Canvass."""
