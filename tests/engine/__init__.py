"""Behaviour of the stand-in engine, over real HTTP against a real engine process."""
